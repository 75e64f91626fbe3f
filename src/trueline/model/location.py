"""Where in the user's code something happened."""

from __future__ import annotations

import msgspec


class Location(msgspec.Struct, frozen=True):
    """A line of the user's code, and the module it concerns when one does.

    `file` is relative to the directory the script was started in when it lies below it, as users write it themselves.
    """

    file: str
    line: int
    module: str | None = None
    function: str | None = None
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def of_module(self, module: str | None) -> Location:
        """The same line, said of one module."""
        return msgspec.structs.replace(self, module=module)
