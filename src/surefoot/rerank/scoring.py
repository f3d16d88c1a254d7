"""Every text once, by its best window, in the order given, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from surefoot.inference.pairs import Progress
from surefoot.inference.relevance import RelevanceModel
from surefoot.rerank.windows import split_all
from surefoot.schema import Span

__all__ = ["Best", "score_texts"]

_PORTION: Final = 200_000
"""Code points scored at a time when nobody waits for news in between."""

_WATCHED: Final = 20_000
"""The same with a progress callback."""

_TIMED: Final = 1_000
"""The same under a deadline, per thread: about one run of the model."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best window of a text: its logit and position, and of how many it is the best."""

    score: float
    window: Span
    windows: int


def score_texts(
    model: RelevanceModel,
    query: str,
    texts: Sequence[str],
    *,
    room: int,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> tuple[list[Best | None], int]:
    """Score texts by their windows.

    Args:
        model: the cross-encoder.
        query: fits into the model beside ``room`` tokens.
        texts: each is scored; the caller has taken duplicates out.
        room: tokens that a window may have.
        deadline: on :func:`time.monotonic`; a portion that would probably end later is not begun.
        progress: called with (texts done, texts to do).

    Returns:
        The best window of each text, ``None`` for a text without any token; and how many texts were read
        before the deadline. From there on all are ``None``: half the windows of a text make no score.

    Raises:
        ModelError: inference failed, or gave no number.
    """
    threads = model.pairs.threads
    portion = _PORTION if progress is None else _WATCHED
    if deadline is not None:
        portion = min(portion, threads * _TIMED)
    best: list[Best | None] = [None] * len(texts)
    took = 0.0
    for windows in _portions(texts, model, room, portion, threads):
        first = windows[0][0]
        began = time.monotonic()
        if deadline is not None and began + took >= deadline:
            best[first] = None
            return best, first
        if progress is not None and first:
            progress(first, len(texts))
        scores = model.score([(query, span.of(texts[index])) for index, span in windows])
        for (index, span), score in zip(windows, scores, strict=True):
            so_far = best[index]
            if so_far is None:
                best[index] = Best(score, span, 1)
            elif score > so_far.score:
                best[index] = Best(score, span, so_far.windows + 1)
            else:
                best[index] = Best(so_far.score, so_far.window, so_far.windows + 1)
        took = time.monotonic() - began
    if progress is not None and texts:
        progress(len(texts), len(texts))
    return best, len(texts)


def _portions(
    texts: Sequence[str], model: RelevanceModel, room: int, portion: int, threads: int
) -> Iterator[list[tuple[int, Span]]]:
    """Windows in order, in lists of about ``portion`` code points and at least one window a thread."""
    collected: list[tuple[int, Span]] = []
    size = 0
    for first, last in _groups(texts, 4 * portion):
        for index, span in split_all(texts[first:last], model.pairs.encoder, room):
            if size >= portion and len(collected) >= threads:
                yield collected
                collected, size = [], 0
            collected.append((first + index, span))
            size += len(span)
    if collected:
        yield collected


def _groups(texts: Sequence[str], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of texts of together about ``most`` code points, which are tokenised together."""
    first, size = 0, 0
    for index, text in enumerate(texts):
        if size >= most:
            yield first, index
            first, size = index, 0
        size += len(text)
    if first < len(texts):
        yield first, len(texts)
