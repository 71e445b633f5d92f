"""The console of all commands: Rich's, without control characters and markup of foreign text."""

from collections.abc import Iterable
from typing import IO, Any, TextIO, cast

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fuzz.output import reader_ended, terminal_of, visible

_UNLIMITED = 10_000  # characters


def plain(text: str, style: str = "") -> Text:
    """Return visible text in one style."""
    return Text(visible(text), style)


class Console(RichConsole):
    """A Rich console without markup, emoji codes and highlighting."""

    def __init__(self, **options: Any) -> None:
        """Make a console. `options` are Rich's."""
        super().__init__(**options, markup=False, emoji=False, highlight=False)

    def say(self, text: str, style: str = "") -> None:
        """Print a line without wrapping."""
        self.print(plain(text, style), soft_wrap=True)

    def print_whole(self, table: Table) -> None:
        """Print a table as wide as necessary, so that nothing is cut."""
        table.width = self.measure(table, options=self.options.update(max_width=_UNLIMITED)).maximum
        self.print(table, crop=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string, such as a title or a table's cell, as visible text."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield visible segments. Rich calls this for all output, including Text objects of other code."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def on_broken_pipe(self) -> None:
        """Raise PgduelError. Rich would exit with the status of a campaign with findings."""
        raise reader_ended()

    @property
    def file(self) -> IO[str]:
        """Return the stream beneath guards, because styles are escape sequences."""
        return terminal_of(cast(TextIO, super().file))

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream
