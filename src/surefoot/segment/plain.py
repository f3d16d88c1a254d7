"""Text as a reader of the rendered page sees it: what a model reads in place of Markdown."""

from __future__ import annotations

import re

__all__ = ["plain_text"]

_EMPHASIS = re.compile(r"\*{1,3}|__|~~|`{1,3}")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{1,600}\)")
_CELLS = re.compile(r"[^\S\n]*\|[^\S\n]*")
_QUOTE_MARKS = re.compile(r"\n[ \t]{0,8}(?:>[ \t]{0,3}){1,8}")
_COMMENT = re.compile(r"<!--(?:[^-]|-(?!->)){0,2000}-->")
_BREAK = re.compile(r"\s+")
_MARKUP = re.compile(r"[*_~`\[|\n\r\t]|<!--|  ")


def plain_text(text: str) -> str:
    """``text`` without emphasis, link targets, cell borders, quote marks, comments and line breaks.

    Args:
        text: a sentence, or a few of them; its layout has been dealt with already.
    """
    if _MARKUP.search(text) is None:
        return text.strip()
    if "<!--" in text:
        text = _COMMENT.sub(" ", text)
    text = _QUOTE_MARKS.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    text = _EMPHASIS.sub("", text)
    text = _CELLS.sub(", ", text)
    return _BREAK.sub(" ", text).strip()
