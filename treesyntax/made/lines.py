"""Files of ours with one record a line, as JSON: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from treesyntax.errors import InputError
from treesyntax.files import read_lines, write_text

if TYPE_CHECKING:  # loaded where a record is read
    from pydantic import TypeAdapter

Record = TypeVar("Record")
STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}


class Lines(Generic[Record]):
    """How one kind of file is read and written.

    Args:
        kind: a dataclass. Its types are checked strictly: no text for a number, no fraction for a whole
            number, nothing infinite. Fields with a default may be missing, unknown ones may not be there.
        what: a line of the file is called, for messages.
        remedy: what to do about a line that is none.
    """

    def __init__(self, kind: type[Record], what: str, remedy: str) -> None:
        self.kind, self.what, self.remedy = kind, what, remedy

    @cached_property
    def _adapter(self) -> TypeAdapter[Record]:
        from pydantic import TypeAdapter

        self.kind.__pydantic_config__ = STRICT  # type: ignore[attr-defined]
        return TypeAdapter(self.kind)

    def parse(self, text: str | bytes, path: Path, line: int) -> Record:
        """The record of a line.

        Raises:
            InputError: with file, line and field, if it is none.
        """
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            cause = f"is not {self.what} ({_first(error.errors(include_url=False)[0])})"
            raise InputError(path, line, cause, self.remedy) from None

    def read(self, path: Path) -> list[Record]:
        """All records of a file; none if it is absent.

        Raises:
            InputError: with file, line and field, for a line that is no record.
        """
        lines = read_lines(path, record=True) if path.exists() else ()
        return [self.parse(text, path, number) for number, text in enumerate(lines, start=1)]

    def write(self, path: Path, records: Iterable[Record]) -> None:
        """Write the whole file or nothing."""
        write_text(path, "".join(map(self.text, records)))

    def text(self, record: Record) -> str:
        """The line of a record, with its end."""
        return f"{json.dumps(asdict(record), ensure_ascii=False)}\n"  # type: ignore[call-overload]


def _first(error: Any) -> str:
    """A fault as ``FIELD: what is wrong``."""
    field = ".".join(map(str, error["loc"]))
    message = error["msg"][:1].lower() + error["msg"][1:]
    return f"{field}: {message}" if field else message
