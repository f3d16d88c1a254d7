"""What reranking returns: frozen records that turn into JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, overload

from surefoot.schema import Record, Span

__all__ = ["Explanation", "RankedSource", "Ranking", "RankingReason", "SentenceEffect"]


class RankingReason(StrEnum):
    """Why a ranking is degraded. Codes are stable; more may be added.

    With all but ``DEADLINE`` the passages keep the order in which they came.
    """

    NO_MODEL = "no_model"
    """No model could be loaded."""
    MODEL_FAILED = "model_failed"
    """The model failed, or a score was not a finite number."""
    EMPTY_QUERY = "empty_query"
    """The query is empty."""
    QUERY_TOO_LONG = "query_too_long"
    """The query leaves no room for a passage. Queries are never cut."""
    DEADLINE = "deadline"
    """Time ran out: passages without a score follow the others, in the order in which they came."""


@dataclass(frozen=True, slots=True)
class RankedSource(Record):
    """One passage and its place in the ranking.

    Attributes:
        item: the object that was passed in, untouched.
        text: the text that was read from it.
        index: position among the passages passed in, from 0.
        first_stage_rank: ``index + 1``.
        rank: the new rank, from 1.
        reranker_score: the model's logit, any finite number; ``None`` if the passage was not scored.
        relevance: probability from 0 to 1: the sigmoid of the score in float64, calibrated if the model's
            manifest has a calibration; ``None`` if the passage was not scored. Different scores may round to
            the same relevance; the order follows the scores.
        fused_score: weighted sum of the logit and other signals, if the model's manifest asks for one. Order
            and relevance then follow it. ``None`` if the logit is used alone.
        window: position in ``text`` of the window with the best score; the whole text if it fits.
        windows: number of windows scored, or 0.
        first_stage_score: the number under ``score`` in a mapping or in a record's metadata, if finite. It
            is shown and never used.
        duplicate_of: for a repeated text, the ``index`` of the first passage that has it.
    """

    item: Any = field(hash=False)
    text: str
    index: int
    first_stage_rank: int
    rank: int
    reranker_score: float | None = None
    relevance: float | None = None
    fused_score: float | None = None
    window: Span | None = None
    windows: int = 0
    first_stage_score: float | None = None
    duplicate_of: int | None = None


@dataclass(frozen=True, slots=True)
class Ranking(Record, Sequence[RankedSource]):
    """Ranked passages, best first, as a sequence that also says how the order was made.

    Attributes:
        query: as given.
        sources: the records of the sequence.
        degraded: some or all of the order is not the reranker's; ``reason`` and ``detail`` say why.
        reason: a code, or ``None``.
        detail: an explanation for people, or ``None``.
        partial: the deadline passed before all passages were scored.
        passages: number of passages passed in; ``top_k`` and ``threshold`` may return fewer.
        scored: number of these that have a score.
        model: name of the model, or ``None`` if none was used.
        calibrated: ``relevance`` is calibrated rather than the plain sigmoid.
        seconds: duration of the call.
    """

    query: str
    sources: tuple[RankedSource, ...]
    degraded: bool = False
    reason: RankingReason | None = None
    detail: str | None = None
    partial: bool = False
    passages: int = 0
    scored: int = 0
    model: str | None = None
    calibrated: bool = False
    seconds: float = 0.0

    @overload
    def __getitem__(self, index: int) -> RankedSource: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RankedSource, ...]: ...
    def __getitem__(self, index: int | slice) -> RankedSource | tuple[RankedSource, ...]:
        return self.sources[index]

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def items(self) -> list[Any]:
        """The objects that were passed in, best first."""
        return [source.item for source in self.sources]


@dataclass(frozen=True, slots=True)
class SentenceEffect:
    """What one sentence does to the score of its passage.

    Attributes:
        text: ``passage[start:end]``.
        start, end: position in the passage, in code points.
        contribution: the passage's logit minus its logit without this sentence, positive if the sentence
            makes the passage more relevant. ``None`` if the passage has no other sentence.
        alone: the logit of the sentence alone.
    """

    text: str
    start: int
    end: int
    contribution: float | None
    alone: float | None


@dataclass(frozen=True, slots=True)
class Explanation(Record):
    """Which sentences make a passage relevant.

    Attributes:
        query, text: what was compared.
        reranker_score, window: as in :class:`RankedSource`.
        relevance: the logit alone as a probability, even if a ranking combines it with other signals.
        sentences: the sentences of ``window``, in order.
        model: name of the model.
    """

    query: str
    text: str
    reranker_score: float
    relevance: float
    window: Span
    sentences: tuple[SentenceEffect, ...]
    model: str
