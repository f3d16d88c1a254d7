"""Title and text of HTML and PDF files; both need an extra.

HTML keeps its headings, list items and table rows as Markdown, so that the sentence segmentation sees
them; what a browser does not show is left out.
"""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surefoot.errors import InputError, missing_extra

__all__ = ["html_text", "pdf_text"]

_BLOCKS = frozenset(
    [
        *("p", "div", "section", "article", "main", "header", "footer", "aside", "table", "ul", "ol"),
        *("dl", "dt", "dd", "blockquote", "figure", "form"),
    ]
)
_HIDDEN = frozenset(("script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object"))

_COMPLAINTS = 10  # of a damaged PDF, which may have one for each object


def html_text(markup: str, path: str) -> tuple[str | None, str]:
    """Title and readable text of an HTML document.

    Args:
        markup: the document.
        path: its name, for messages.

    Raises:
        InputError: it is nested too deeply.
        MissingExtraError: beautifulsoup4 is not installed.
    """
    with missing_extra("html", purpose="read HTML files"):
        from bs4 import BeautifulSoup
        from bs4.element import NavigableString, Tag
    try:
        soup = BeautifulSoup(_closed(markup), "html.parser")
        title = " ".join(soup.title.get_text().split()) if soup.title else None
        parts: list[str] = []
        # A walk with a stack, not recursion: the nesting of a stranger's page is the stranger's choice.
        stack: list[Any] = [soup]
        while stack:
            node = stack.pop()
            if isinstance(node, str) and not isinstance(node, NavigableString):
                parts.append(node)
            elif isinstance(node, Tag):
                if node.name in _HIDDEN:
                    continue
                if node.name == "pre":
                    parts.append(f"\n\n{node.get_text()}\n\n")
                    continue
                before, after = _around(node.name)
                stack.extend([after, *reversed(node.contents), before])
            elif type(node) is NavigableString:  # comments and the like are subclasses
                parts.append(" ".join(f"|{node}|".split())[1:-1])
    except RecursionError as error:
        raise InputError(f"{path}: the HTML is nested too deeply") from error
    lines = (" ".join(line.split()).removesuffix(" |") for line in "".join(parts).split("\n"))
    text = "\n".join(lines)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return title or None, text.strip()


def _closed(markup: str) -> str:
    """``markup`` without openers that nothing closes: for each of them the parser reads on to the end."""
    for opener, closer in (("<!--", "-->"), ("<![", "]>"), ("<", ">")):
        end = markup.rfind(closer) + len(closer) if closer in markup else 0
        markup = markup[:end] + markup[end:].replace(opener, "&lt;" + opener[1:])
    return markup


def _around(tag: str) -> tuple[str, str]:
    # Enough Markdown for the segmentation to see headings, list items and rows.
    if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
        return "\n\n" + "#" * max(1, min(6, int(tag[1]))) + " ", "\n\n"
    if tag == "li":
        return "\n- ", "\n"
    if tag in ("td", "th"):
        return "", " | "
    if tag == "br":
        return "\n", ""
    if tag == "tr":
        return "\n", "\n"
    return ("\n\n", "\n\n") if tag in _BLOCKS else ("", "")


def pdf_text(data: bytes, path: str, warnings: list[str]) -> tuple[str | None, str]:
    """Title and text of a PDF, pages parted by an empty line.

    Args:
        data: the file.
        path: its name, for messages.
        warnings: gets a line if it is damaged and may have lost text, or if there is no text in it.

    Raises:
        InputError: it is damaged or encrypted.
        MissingExtraError: pypdf is not installed.
    """
    with missing_extra("pdf", purpose="read PDF files"):
        import pypdf
    with _logged("pypdf") as complaints:
        try:
            reader = pypdf.PdfReader(io.BytesIO(data))
            title = reader.metadata.title if reader.metadata else None
            text = "\n\n".join(page.extract_text() for page in reader.pages).strip()
        except Exception as error:  # a damaged PDF raises whatever the damage leads to
            raise InputError(f"{path}: not a PDF that can be read: {error}") from error
    if complaints:
        warnings.append(f"{path}: the PDF is damaged, text may be missing: {complaints[0]}")
    elif not text:
        warnings.append(f"{path}: no text in this PDF; a scan has to go through OCR first")
    return str(title) if title else None, text


@contextmanager
def _logged(name: str) -> Iterator[list[str]]:
    """What this thread logs to ``name`` meanwhile, one line each.

    A logger without a handler prints its warnings raw on standard error; with this one it does not. Handlers
    that the program itself has set up still get them.
    """
    messages: list[str] = []
    handler = _Collector(threading.get_ident(), messages)
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)


class _Collector(logging.Handler):
    def __init__(self, thread: int, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._thread, self._messages = thread, messages

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and len(self._messages) < _COMPLAINTS:
            self._messages.append(" ".join(record.getMessage().split())[:200])
