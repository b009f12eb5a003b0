"""Records of ours as JSON, one a file or one a line: what is written is read back, and nothing else is.

Types are checked strictly: no text for a number, no fraction for a whole number, nothing infinite. Fields with a
default may be missing. Unknown ones may not be there, unless the kind of record says ``__pydantic_config__ = OPEN``:
other versions of treesyntax write more of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

from treesyntax.errors import InputError
from treesyntax.files import read_lines, read_record, unreadable, write_text

Record = TypeVar("Record")
CONFIG = "__pydantic_config__"
OPEN = {"extra": "ignore"}
STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}


def parse_record(
    kind: type[Record],
    text: str | bytes,
    path: Path,
    line: int | None,
    cause: str,
    remedy: str,
) -> Record:
    """The record in a text.

    Args:
        kind: a dataclass, a named tuple, or a dictionary of some.
        text: JSON.
        path: where the text stands, for messages.
        line: the number of its line; None for a whole file.
        cause: what is said of a text that is no record; the field and its fault are added.
        remedy: what to do about it.

    Raises:
        InputError: with file, line and field, if it is none.
    """
    from pydantic import ValidationError

    hashable: Any = kind
    try:
        record: Record = _adapter(hashable).validate_json(text, strict=True)
        return record
    except ValidationError as error:
        fault: Any = error.errors(include_url=False)[0]
        field = ".".join(map(str, fault["loc"]))
        message = fault["msg"][:1].lower() + fault["msg"][1:]
        said = f"{field}: {message}" if field else message
        raise InputError(path, line, f"{cause} ({said})", remedy) from None


def read_record_of(kind: type[Record], path: Path, cause: str, remedy: str) -> Record:
    """The record in a file, see `parse_record`.

    Raises:
        InputError: with file and field, if it cannot be read or is none.
    """
    try:
        text = read_record(path)
    except OSError as error:
        raise unreadable(path, error) from None
    return parse_record(kind, text, path, None, cause, remedy)


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    for inner in (kind, *get_args(kind)):
        if is_dataclass(inner):
            setattr(inner, CONFIG, STRICT | getattr(inner, CONFIG, {}))
    return TypeAdapter(kind)


class Lines(Generic[Record]):
    """How a file with a record on each line is read and written.

    Args:
        kind: a dataclass.
        cause: what is said of a line that is no such record, such as "is not a result".
        remedy: what to do about it.
    """

    def __init__(self, kind: type[Record], cause: str, remedy: str) -> None:
        self.kind, self.cause, self.remedy = kind, cause, remedy

    def parse(self, text: str | bytes, path: Path, line: int) -> Record:
        """The record of a line, see `parse_record`."""
        return parse_record(self.kind, text, path, line, self.cause, self.remedy)

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
