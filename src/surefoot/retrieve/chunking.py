"""From documents to passages, with exact positions.

The cutting is done by ``semantic-text-splitter``, which prefers the largest units that fit: sections,
paragraphs, sentences, words. It looks at the rest of a text again for each passage, so a text without a space
takes time in the square of its length; here it only ever sees pieces of bounded length, cut between
paragraphs where there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from surefoot.errors import ConfigurationError, InputError, missing_extra
from surefoot.inference.text import clean
from surefoot.schema import Source, Span

__all__ = ["Chunker", "PassageChunker", "describe_chunker", "restore_chunker", "spans_of", "whole"]

_PIECE: Final = 10_000
"""Most bytes of UTF-8 that the splitter sees at once; characters of many bytes take it longer."""

_BREAKS: Final = ("\n\n", "\n", ". ", "。", " ")
"""Where a piece may end, best first."""

_MOST_SIZE: Final = 10_000


class Chunker(Protocol):
    """Cuts a document: any callable from a source to spans of its text, in code points."""

    def __call__(self, source: Source, /) -> Iterable[Span | tuple[int, int]]:
        """The passages of ``source``; they may overlap."""
        ...


@dataclass(frozen=True, slots=True)
class PassageChunker:
    """Passages of at most ``size`` characters that end where a sentence or paragraph ends, if they can.

    In scripts whose letters take more than one byte in UTF-8 passages are shorter in proportion (a third for
    Chinese), because so are the texts that a model reads at once.

    Args:
        size: most characters of a passage, 50 to 10,000. 800 are about 190 tokens of English: with a title
            they fit the 256 tokens of the bundled embedder.
        overlap: characters that a passage may share with the one before; 0 to half of ``size``.
        markdown: prefer to cut at headings and between list items, and keep code blocks together. Plain text
            is cut well too.

    Raises:
        ConfigurationError: a number is out of range.
    """

    size: int = 800
    overlap: int = 0
    markdown: bool = True

    def __post_init__(self) -> None:
        if not 50 <= self.size <= _MOST_SIZE:
            raise ConfigurationError(f"size must be 50 to {_MOST_SIZE} characters, not {self.size}")
        if not 0 <= self.overlap <= self.size // 2:
            raise ConfigurationError(f"overlap must be 0 to {self.size // 2} characters, not {self.overlap}")

    def __call__(self, source: Source, /) -> Iterator[Span]:
        """Cut ``source.text``.

        Raises:
            MissingExtraError: the extra ``retrieve`` is not installed.
        """
        with missing_extra("retrieve", purpose="cut documents into passages"):
            import semantic_text_splitter
        kind: Any = (
            semantic_text_splitter.MarkdownSplitter if self.markdown else semantic_text_splitter.TextSplitter
        )
        text = clean(source.text)
        for start, end in _pieces(text):
            piece = text[start:end]
            share = len(piece) / len(piece.encode("utf-8"))
            size = max(20, round(self.size * share))
            splitter = kind(size, overlap=min(round(self.overlap * share), size // 2))
            for offset, passage in splitter.chunk_indices(piece):
                yield Span(start + offset, start + offset + len(passage))


def whole(source: Source, /) -> Iterator[Span]:
    """The chunker that does not cut: one passage a source."""
    yield Span(0, len(source.text))


def spans_of(source: Source, chunker: Callable[[Source], Iterable[Span | tuple[int, int]]]) -> list[Span]:
    """What a chunker makes of a source, checked; spans of nothing but space are left out.

    Raises:
        InputError: it gives something else than spans within the text.
    """
    spans: list[Span] = []
    for item in chunker(source):
        start, end = (item.start, item.end) if isinstance(item, Span) else _pair(item, source)
        if not 0 <= start <= end <= len(source.text):
            raise InputError(
                f"the chunker gives [{start}, {end}) for source {source.id[:200]!r}, whose text has "
                f"{len(source.text)} characters"
            )
        if source.text[start:end].strip():
            spans.append(Span(start, end))
    return spans


def describe_chunker(chunker: Chunker | None) -> dict[str, Any]:
    """What an index records of its chunker."""
    if isinstance(chunker, PassageChunker):
        return {
            "kind": "passages",
            "size": chunker.size,
            "overlap": chunker.overlap,
            "markdown": chunker.markdown,
        }
    return {"kind": "whole" if chunker is whole else "custom"}


def restore_chunker(recorded: Mapping[str, Any]) -> Chunker | None:
    """The chunker that was recorded, or ``None`` where it was the caller's own."""
    if recorded.get("kind") == "passages":
        return PassageChunker(**{key: value for key, value in recorded.items() if key != "kind"})
    return whole if recorded.get("kind") == "whole" else None


def _pair(item: object, source: Source) -> tuple[int, int]:
    if isinstance(item, tuple) and len(item) == 2 and all(type(value) is int for value in item):
        return item
    raise InputError(f"the chunker gives {item!r:.200} for source {source.id[:200]!r}, not (start, end)")


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Neighbouring ranges that cover ``text``, none longer than a piece may be."""
    start = 0
    while start < len(text):
        head = text[start : start + _PIECE]
        limit = max(1, len(head) * _PIECE // max(_PIECE, len(head.encode("utf-8"))))
        end = start + limit
        if end < len(text):
            # Not in the first half: a piece of a few characters would make as short a passage.
            marks = ((text.rfind(mark, start + limit // 2, end), mark) for mark in _BREAKS)
            end = next((found + len(mark) for found, mark in marks if found >= 0), end)
        yield start, end
        start = end
