"""Changes of a table's children, made and unmade: what invalidates the plans that a session keeps."""

import random

from fuzz.generators.choices import between, pick
from fuzz.generators.equivalence.parents import INDEXED, Parent, children

_FEW = 24  # children, at most, of a table that is changed


def change(rng: random.Random, parent: Parent) -> tuple[str, str]:
    """Return a statement that changes the table or one of its children, and the one that undoes that."""
    form, name = parent.form, parent.name
    if form.method == "INHERITS" and not form.nested:
        child = f"{name}_{between(rng, 1, form.children)}"
        return f"ALTER TABLE {child} NO INHERIT {name}", f"ALTER TABLE {child} INHERIT {name}"
    if form.method in ("RANGE", "LIST", "HASH") and form.children <= _FEW:
        child, bound = pick(rng, children(parent))
        return f"ALTER TABLE {name} DETACH PARTITION {child}", f"ALTER TABLE {name} ATTACH PARTITION {child} {bound}"
    return (
        f"CREATE INDEX passing ON {'ONLY ' if parent.foreign else ''}{name} ({INDEXED.pick(rng)})",
        "DROP INDEX passing",
    )
