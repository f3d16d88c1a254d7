"""What reranking gives back: frozen records that turn into plain JSON values."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Integral, Real
from typing import Any, Final, overload

from surefoot.schema import Span

__all__ = ["Explanation", "RankedSource", "Ranking", "RankingReason", "SentenceEffect"]

_DEEPEST: Final = 100


class RankingReason(StrEnum):
    """Why a ranking is degraded. Codes are stable; more may be added."""

    NO_MODEL = "no_model"
    """No model could be loaded: the order is the first stage's."""
    MODEL_FAILED = "model_failed"
    """The model failed, or returned something that is no number: the order is the first stage's."""
    EMPTY_QUERY = "empty_query"
    """The query is empty, so that nothing can be relevant to it: the order is the first stage's."""
    QUERY_TOO_LONG = "query_too_long"
    """The query leaves the passages no room; queries are never cut: the order is the first stage's."""
    DEADLINE = "deadline"
    """The time was up: passages that were not scored follow the others in the first stage's order."""


@dataclass(frozen=True, slots=True)
class RankedSource:
    """One passage with its place in the ranking.

    Attributes:
        item: the very object that was handed in, untouched.
        text: what was read of it.
        index: position among the passages handed in, from 0.
        first_stage_rank: ``index + 1``: the rank that the passage came with.
        rank: the rank that it has now, from 1.
        reranker_score: the model's logit, any finite number; ``None`` where the passage was not scored.
        relevance: the logit as a probability, 0 to 1: the sigmoid in float64, calibrated where the model's
            manifest has a calibration; ``None`` where the passage was not scored. Different logits may give
            the same relevance 1.0, and the order is that of the logits.
        fused_score: where the model's manifest joins the logit with other signals: their weighted sum, which
            then makes the order and the relevance. ``None`` where the logit stands alone.
        window: position in ``text`` of the window that the score is from; the whole text where it fits.
        windows: windows that were scored; 0 where none was.
        first_stage_score: the finite number under ``score`` of a mapping, or in a record's metadata; shown,
            never used. ``None`` where there is none, NaN and infinities included.
        duplicate_of: ``index`` of the first passage with the same text, for the later ones.
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

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, strings and numbers, the item included."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


@dataclass(frozen=True, slots=True)
class Ranking(Sequence[RankedSource]):
    """Ranked passages, best first; a sequence of :class:`RankedSource` that says how it came about.

    Attributes:
        query: as given.
        sources: the records; those of the sequence.
        degraded: the order is not, or not wholly, the reranker's; ``reason`` and ``detail`` say why.
        reason: the code of it, or ``None``.
        detail: a sentence for people, or ``None``.
        partial: the deadline passed when only some of the passages had been scored, or none.
        passages: how many passages were handed in; ``top_k`` and ``threshold`` may have left fewer.
        scored: how many of them have a score.
        model: name of the model, or ``None`` where none was used.
        calibrated: ``relevance`` is calibrated, and not just the sigmoid of the score.
        seconds: time that the call took.
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
        """The objects that were handed in, best first."""
        return [source.item for source in self.sources]

    def to_dict(self) -> dict[str, Any]:
        """The ranking as plain dicts, lists, strings and numbers."""
        table = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {**_plain(table), "sources": [source.to_dict() for source in self.sources]}

    def to_json(self, *, indent: int | None = None) -> str:
        """The ranking as ASCII-only JSON: valid even where a text holds lone surrogates."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass(frozen=True, slots=True)
class SentenceEffect:
    """What one sentence does to the score of its passage.

    Attributes:
        text: ``passage[start:end]``.
        start, end: position in the passage, in code points.
        contribution: the passage's logit minus its logit without this sentence: above 0 where the sentence
            makes the passage more relevant. ``None`` where the passage has no other sentence.
        alone: the logit of the sentence by itself.
    """

    text: str
    start: int
    end: int
    contribution: float | None
    alone: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which sentences of a passage make it relevant.

    Attributes:
        query, text: what was compared.
        reranker_score, window: as in :class:`RankedSource`; the sentences are those of ``window``.
        relevance: the logit alone as a probability, also where a ranking joins it with other signals.
        sentences: in the order of the text.
        model: name of the model.
    """

    query: str
    text: str
    reranker_score: float
    relevance: float
    window: Span
    sentences: tuple[SentenceEffect, ...]
    model: str

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain dicts, lists, strings and numbers."""
        return _plain(dataclasses.asdict(self))  # type: ignore[no-any-return]


def _plain(value: Any, depth: int = 0) -> Any:
    """``value`` for JSON. An item may hold anything, itself included: what JSON lacks becomes a string."""
    if value is None or isinstance(value, (bool, str)):
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, Integral):  # NumPy's as well
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if depth >= _DEEPEST:
        return "..."
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), depth + 1) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    return str(value)
