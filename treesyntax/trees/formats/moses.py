"""Text that Moses' tokenizer has escaped: ``&apos;`` for an apostrophe, ``@-@`` for a hyphen inside a word."""

from __future__ import annotations

import re
from collections.abc import Iterable

from treesyntax.remarks import Remark, remark

_ESCAPES = re.compile(r"&(?:apos|quot|amp|lt|gt|bar|bra|ket|#91|#93|#124);|(?<!\S)@[-/]@(?!\S)")
ESCAPES = Remark(
    "escapes of Moses' tokenizer (&apos; &quot; &amp; @-@)",
    "they are read as words: unescape them before text is parsed, as with sacremoses -l en detokenize",
)


def check_escapes(text: str, words: Iterable[str] | None = None) -> None:
    """Remark on escapes in a line, or in these words of a record with that text."""
    if "&" not in text and "@-@" not in text and "@/@" not in text:
        return
    found = sum(len(_ESCAPES.findall(word)) for word in ([text] if words is None else words))
    if found:
        remark(ESCAPES, found)
