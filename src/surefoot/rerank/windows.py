"""Long passages as overlapping windows that fit beside the query.

A passage is worth as much as its best window (MaxP: Dai and Callan 2019). The query is never cut, and
nothing of a passage is left out: the windows cover all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from surefoot.schema import Span

__all__ = ["Encoder", "split", "split_all"]

_CHARACTERS: Final = 8
"""Code points that are tokenised per token of room: more than a token of ordinary text takes."""

_OVERLAP: Final = 4
"""A window shares this part, one in so many, of its tokens with the next: a sentence or two."""


class Encoder(Protocol):
    """What is needed of :class:`~surefoot.inference.text.TextEncoder`."""

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Encodings without special tokens."""


def split_all(texts: Sequence[str], encoder: Encoder, room: int) -> Iterator[tuple[int, Span]]:
    """(index of the text, window) for each window of each text, in order; short texts are read together.

    Args:
        texts: passages.
        encoder: tokenizer of the model.
        room: tokens that a window may have, special tokens not counted; at least 1.
    """
    short = [index for index, text in enumerate(texts) if len(text) <= room * _CHARACTERS]
    encodings = encoder.encode([texts[index] for index in short])
    sizes = {index: len(encoding.ids) for index, encoding in zip(short, encodings, strict=True)}
    del encodings
    for index, text in enumerate(texts):
        size = sizes.get(index)
        if size is not None and size <= room:
            if size:
                yield index, Span(0, len(text))
        else:
            yield from ((index, span) for span in split(text, encoder, room))


def split(text: str, encoder: Encoder, room: int) -> Iterator[Span]:
    """The windows of one text, lazily and in linear time, each of at most ``room`` tokens.

    Windows begin and end between words where a word is shorter than a window. White space and stretches
    without any token (control characters) may lie between windows, and a text of nothing else has none.
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
        # Where every token was taken the window reaches as far as what was read: no character is lost.
        end = stop if taken == len(offsets) else start + offsets[taken - 1][1]
        yield Span(start, end)
        if end >= size:
            return
        # The overlap is a part of what was taken, not of the room: giant words make windows of few tokens.
        back = _word_start(text, start, offsets, max(taken - taken // _OVERLAP, 1), taken)
        start = end if back >= taken else max(start + offsets[back][0], start + 1)


def _fitting(text: str, start: int, offsets: Sequence[tuple[int, int]], encoder: Encoder, room: int) -> int:
    """How many of the tokens make a window that has at most ``room`` tokens when it is read by itself.

    0 where not even one does: a single character may normalise to eighteen, and tiny models have less room.
    """
    taken = min(len(offsets), room)
    if taken == len(offsets):
        return taken
    taken = _word_end(text, start, offsets, taken) or taken
    # A tokenizer may cut the end of a shortened text otherwise than before; then a few tokens less.
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
    for at in range(stop - 1, (start + stop) // 2, -1):
        if text[at].isspace():
            return at
    return stop


def _word_end(text: str, start: int, offsets: Sequence[tuple[int, int]], taken: int) -> int:
    """Most tokens, at most ``taken`` and more than half of it, after which a word ends; 0 where none."""
    for count in range(taken, taken // 2, -1):
        at = start + offsets[count - 1][1]
        if text[at : at + 1].isspace():
            return count
    return 0


def _word_start(text: str, start: int, offsets: Sequence[tuple[int, int]], first: int, taken: int) -> int:
    """Index of the first token from ``first`` on that begins a word; ``first`` where there is none."""
    for index in range(first, taken):
        at = start + offsets[index][0]  # some tokenizers count the space before a word to it
        if text[at].isspace() or text[at - 1].isspace():
            return index
    return first
