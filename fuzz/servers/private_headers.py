"""Headers that pgduel's modules need and PostgreSQL does not install: definitions copied from the build's tree."""

import re

from fuzz.servers import git

_RESOWNER = "src/backend/utils/resowner/resowner.c"
_CONSTANT = re.compile(r"^#define[ \t]+\w*RESOWNER_\w+[ \t]+\d+[ \t]*$", re.MULTILINE)
_ELEMENT = re.compile(r"^typedef struct (Resource\w*Elem)\n\{.*?^\} \1;$", re.MULTILINE | re.DOTALL)
_OWNER = re.compile(r"^struct ResourceOwnerData\n\{.*?^\};$", re.MULTILINE | re.DOTALL)
_NEEDED = ("parent", "narr", "nhash", "capacity")


def private_headers(tree: str) -> dict[str, str]:
    """Return headers by file name. A header is left out if the tree differs too much from PostgreSQL 17."""
    found = {"private_resowner.h": resource_owner_header(git.show(tree, _RESOWNER) or "")}
    return {name: text for name, text in found.items() if text is not None}


def resource_owner_header(source: str) -> str | None:
    """Return the definition of ResourceOwnerData in a resowner.c with its dependencies, or None."""
    elements = [found[0] for found in _ELEMENT.finditer(source)]
    owner = _OWNER.search(source)
    if not elements or not owner or not all(re.search(rf"\b{name}\b", owner[0]) for name in _NEEDED):
        return None
    return "\n".join([*_CONSTANT.findall(source), *elements, owner[0], ""])
