"""Scores each text by its best window, in the order given, until time runs out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from surefoot.inference.pairs import Progress
from surefoot.inference.relevance import RelevanceModel
from surefoot.rerank.windows import split_all
from surefoot.schema import Span

__all__ = ["Best", "score_texts"]

_PORTION: Final = 20_000
"""Code points per thread that are scored between two progress calls."""

_TIMED: Final = 1_000
"""The same under a deadline: about one run of the model."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best window of a text: its logit, its position, and how many windows were scored."""

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
        texts: without duplicates.
        room: tokens that a window may have.
        deadline: on :func:`time.monotonic`. A portion that would probably end later is not started.
        progress: called with (texts done, texts to do).

    Returns:
        The best window of each text, or ``None`` for a text without tokens; and how many texts were scored
        before the deadline. The texts after these have ``None``: a part of a text's windows is no score.

    Raises:
        ModelError: inference failed, or a score is not finite.
    """
    threads = model.pairs.threads
    portion = threads * (_PORTION if deadline is None else _TIMED)
    best: list[Best | None] = [None] * len(texts)
    took = 0.0
    for windows in _portions(split_all(texts, model.pairs.encoder, room), portion, threads):
        first = windows[0][0]
        started = time.monotonic()
        if deadline is not None and started + took >= deadline:
            best[first] = None
            return best, first
        if progress is not None and first:
            progress(first, len(texts))
        scores = model.score([(query, span.of(texts[index])) for index, span in windows])
        for (index, span), score in zip(windows, scores, strict=True):
            old = best[index]
            count = 1 if old is None else old.windows + 1
            if old is None or score > old.score:
                best[index] = Best(score, span, count)
            else:
                best[index] = replace(old, windows=count)
        took = time.monotonic() - started
    if progress is not None and texts:
        progress(len(texts), len(texts))
    return best, len(texts)


def _portions(
    windows: Iterable[tuple[int, Span]], portion: int, threads: int
) -> Iterator[list[tuple[int, Span]]]:
    """Windows in order, in lists of about ``portion`` code points and at least one window per thread."""
    collected: list[tuple[int, Span]] = []
    size = 0
    for index, span in windows:
        if size >= portion and len(collected) >= threads:
            yield collected
            collected, size = [], 0
        collected.append((index, span))
        size += len(span)
    if collected:
        yield collected
