"""The default arms of a bench: the series without the patches for the bench's mail, with them, and the whole series.

Only then does a ratio measure these patches alone. A second arm without them shows the noise. The patches for a mail
are those whose message links to it, as far as they follow one another. The whole series has later ones, too.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from urllib.parse import unquote_to_bytes

from fuzz.bench.bench import Bench
from fuzz.servers.arm import UP_TO, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.series import Patch

_REFERENCE, _AGAIN, _WITH = "without", "again", "with"


def default_arms(bench: Bench, base: Base, beside: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arms in the form of `--arm`, or () if the shipped series has no patch for the bench's mail.

    `beside` are further shipped arms. Raises SourceError.
    """
    if not bench.mail.message_id:
        return ()
    baseline = len(shipped_series("master", base).patches)
    patches = shipped_series("patched", base).patches[baseline:]
    cited = [number for number, patch in enumerate(patches) if _links_to(patch, bench.mail.message_id)]
    if not cited:
        return ()
    consecutive = [number for number, expected in zip(cited, count(cited[0]), strict=False) if number == expected]
    return (*_arms(patches, consecutive[0], consecutive[-1]), *beside)


def _arms(patches: Sequence[Patch], first: int, last: int) -> Iterator[str]:
    before = _prefix(patches[first - 1]) if first else "master"
    yield f"{_REFERENCE}={before}"
    yield f"{_AGAIN}={before}"
    yield f"{_WITH}={_prefix(patches[last])}"
    if last + 1 < len(patches):
        yield "patched"


def _prefix(patch: Patch) -> str:
    return f"patched{UP_TO}{patch.name.partition('-')[0]}"


def _links_to(patch: Patch, message_id: str) -> bool:
    return message_id.encode() in unquote_to_bytes(patch.content)
