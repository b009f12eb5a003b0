"""Text that Moses' tokenizer has escaped, ``&apos;`` for an apostrophe and ``@-@`` for a hyphen inside a word, or
HTML and SGML, as newswire has them: ``&ldquo;``, ``&#8220;``, ``&LR;``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from treesyntax.remarks import Remark, remark

_ESCAPES = re.compile(r"&(?:apos|quot|amp|lt|gt|bar|bra|ket|#91|#93|#124);|(?<!\S)@[-/]@(?!\S)")
_ENTITIES = re.compile(r"&(?:[A-Za-z]{2,8}|#[0-9]{2,6}|#x[0-9A-Fa-f]{2,6});")
ENTITIES = Remark(
    "escapes of HTML or SGML (&ldquo; &#8220;)",
    "they are read as words: unescape them first, as with Python's html.unescape",
)
ESCAPES = Remark(
    "escapes of Moses' tokenizer (&apos; &quot; &amp; @-@)",
    "they are read as words: detokenize both sides before text is parsed: pip install sacremoses, then sacremoses -l en detokenize < old > new",
)


def check_escapes(text: str, words: Iterable[str] | None = None) -> None:
    """Remark on escapes in a line, or in these words of a record with that text."""
    if "&" not in text and "@-@" not in text and "@/@" not in text:
        return
    parts = [text] if words is None else list(words)
    if found := sum(len(_ESCAPES.findall(part)) for part in parts):
        remark(ESCAPES, found)
    entities = (entity for part in parts for entity in _ENTITIES.findall(part))
    if others := sum(not _ESCAPES.fullmatch(entity) for entity in entities):
        remark(ENTITIES, others)
