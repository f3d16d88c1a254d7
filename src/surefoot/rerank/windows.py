"""Long passages as overlapping windows that fit beside the query.

A passage is worth as much as its best window (MaxP, Dai & Callan 2019). The query is never cut, and the
windows cover the whole passage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from surefoot.inference.text import TextEncoder
from surefoot.schema import Span

__all__ = ["split", "split_all"]

_CHARACTERS: Final = 8
"""Code points tokenised per token of room: more than a token of ordinary text has."""

_OVERLAP: Final = 4
"""A window shares one in so many of its tokens with the next: a sentence or two."""

_TOGETHER: Final = 64
"""Texts that are tokenised in one call."""


def split_all(texts: Sequence[str], encoder: TextEncoder, room: int) -> Iterator[tuple[int, Span]]:
    """(index of the text, window) for each window of each text, lazily and in order.

    Args:
        texts: passages.
        encoder: tokenizer of the model.
        room: tokens that a window may have, not counting special tokens; at least 1.
    """
    short = room * _CHARACTERS
    for first in range(0, len(texts), _TOGETHER):
        batch = texts[first : first + _TOGETHER]
        encodings = encoder.encode([text if len(text) <= short else "" for text in batch])
        sizes = [len(encoding.ids) for encoding in encodings]
        for index, (text, size) in enumerate(zip(batch, sizes, strict=True), first):
            if len(text) > short or size > room:
                yield from ((index, span) for span in split(text, encoder, room))
            elif size:
                yield index, Span(0, len(text))


def split(text: str, encoder: TextEncoder, room: int) -> Iterator[Span]:
    """The windows of one text, each of at most ``room`` tokens, lazily and in linear time.

    Windows begin and end between words unless a word is longer than a window. White space, and stretches
    without any token (control characters), may lie outside the windows; a text of nothing else has none.
    """
    start, size = 0, len(text.rstrip())
    while start < size:
        stop = _between_words(text, start, min(start + room * _CHARACTERS, size))
        offsets = encoder.encode([text[start:stop]])[0].offsets
        if not offsets:
            start = stop
            continue
        taken = _fitting(text, start, offsets, encoder, room)
        if not taken:
            start += max(offsets[0][1], 1)
            continue
        # If every token fits, the window extends to the end of the stretch, so that no character is lost.
        end = stop if taken == len(offsets) else start + offsets[taken - 1][1]
        yield Span(start, end)
        if end >= size:
            return
        # The overlap is a share of the tokens taken, not of the room: very long words make small windows.
        back = _word_start(text, start, offsets, max(taken - taken // _OVERLAP, 1), taken)
        start = end if back >= taken else max(start + offsets[back][0], start + 1)


def _fitting(
    text: str, start: int, offsets: Sequence[tuple[int, int]], encoder: TextEncoder, room: int
) -> int:
    """How many of the tokens make a window that has at most ``room`` tokens when read alone.

    0 if not even one does: a single character may normalise to eighteen, and tiny models have less room.
    """
    taken = min(len(offsets), room)
    if taken == len(offsets):
        return taken
    taken = _word_end(text, start, offsets, taken) or taken
    # A tokenizer may split the end of a shortened text into more tokens than before.
    while taken > 0:
        count = len(encoder.encode([text[start : start + offsets[taken - 1][1]]])[0].ids)
        if count <= room:
            break
        taken -= min(count - room, max(taken - 1, 1))
    return taken


def _between_words(text: str, start: int, stop: int) -> int:
    """``stop``, or the last white space before it in the second half of the stretch."""
    if stop == len(text) or text[stop].isspace():
        return stop
    return next((at for at in range(stop - 1, (start + stop) // 2, -1) if text[at].isspace()), stop)


def _word_end(text: str, start: int, offsets: Sequence[tuple[int, int]], taken: int) -> int:
    """The most tokens, at most ``taken`` and more than half of it, after which a word ends; 0 if none."""
    ends = ((count, start + offsets[count - 1][1]) for count in range(taken, taken // 2, -1))
    return next((count for count, at in ends if text[at : at + 1].isspace()), 0)


def _word_start(text: str, start: int, offsets: Sequence[tuple[int, int]], first: int, taken: int) -> int:
    """The index of the first token from ``first`` on that begins a word, or ``first`` if there is none."""
    # Some tokenizers count the space before a word as part of it.
    starts = ((index, start + offsets[index][0]) for index in range(first, taken))
    return next((index for index, at in starts if text[at].isspace() or text[at - 1].isspace()), first)
