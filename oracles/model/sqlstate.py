"""SQLSTATEs of errors that several parts distinguish (src/backend/utils/errcodes.txt)."""

from typing import Final

DISK_FULL: Final = "53100"
INTERNAL_ERROR: Final = "XX000"
QUERY_CANCELED: Final = "57014"
SYNTAX_ERROR: Final = "42601"
UNDEFINED_FUNCTION: Final = "42883"  # also of operators
