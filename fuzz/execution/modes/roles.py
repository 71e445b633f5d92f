"""Mode of an ordinary role: the session checks privileges, row security and leakproofness, which superusers bypass.

The role is a start-up option of a superuser's session. So it is the value to which RESET ROLE returns, and other
start-up options may still be those of superusers.
"""

import re
from typing import Final

from oracles.model.case import Case
from oracles.model.mode import Mode

ROLE: Final = "pgduel_ordinary"
ORDINARY: Final = Mode("ordinary", (("role", ROLE),))
ROLE_MADE: Final = (
    f"DO $$ BEGIN CREATE ROLE {ROLE}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
)

_SUPERUSERS_ONLY: Final = re.compile(
    r"""\b(?:
        EXTENSION | SERVER | ROLE | SESSION\s+AUTHORIZATION | CREATE\s+USER | PROGRAM | ALTER\s+SYSTEM | LEAKPROOF
      | OPERATOR\s+(?:CLASS|FAMILY) | LANGUAGE\s+'?(?:c|internal)\b | EVENT\s+TRIGGER | PUBLICATION | SUBSCRIPTION
      | pg_cancel_backend | pg_terminate_backend
      | (?:UPDATE|INSERT\s+INTO|DELETE\s+FROM)\s+pg_\w+ | COPY\b[^;]*\b(?:FROM|TO)\s+'
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def may_be_ordinary(case: Case) -> bool:
    """Return whether no statement of the case needs a superuser, by its words."""
    return not any(_SUPERUSERS_ONLY.search(step.sql) for step in case.all_steps)
