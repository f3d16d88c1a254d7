"""NLI probabilities for (premise, claim), with the label order read from the model and checked.

A label order written into code is right for one model and silently wrong for the next; here it comes from
the model's own record, and two pairs whose answer nobody doubts are scored before the first use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from surefoot.errors import ModelError
from surefoot.inference.cache import ScoreCache
from surefoot.inference.pairs import PairModel, Progress
from surefoot.inference.session import Arithmetic
from surefoot.models.manifest import ResolvedModel

__all__ = ["Entailment", "NliModel"]

_NAMES: Final[Mapping[str, str]] = {
    "entailment": "entailment",
    "entailed": "entailment",
    "supported": "entailment",
    "neutral": "neutral",
    "not_entailment": "neutral",
    "contradiction": "contradiction",
    "contradicted": "contradiction",
}

_LEAST: Final = 2e-12
"""Keeps logarithms of probabilities finite."""

_SELF_TEST: Final = (
    ("The library opens at nine in the morning.", "The library opens at nine in the morning.", "entailment"),
    ("The library is open on Sundays.", "The library is not open on Sundays.", "contradiction"),
)


@dataclass(frozen=True, slots=True)
class Entailment:
    """Probabilities of one (premise, claim) pair, in float64; the three sum to 1.

    ``log_odds`` is log(p / (1 - p)) of entailment, computed from the logits: it still tells scores apart
    where the probability has rounded to 1.
    """

    entailment: float
    neutral: float
    contradiction: float
    log_odds: float

    @property
    def contradiction_odds(self) -> float:
        """ln(contradiction / neutral), within +-27; far below 0 where a model has no label for it."""
        return math.log(max(self.contradiction, _LEAST) / max(self.neutral, _LEAST))


class NliModel:
    """An NLI cross-encoder.

    Args:
        resolved: the model's record and files. Two-label models (entailment or not) work too;
            their contradiction probability is 0.
        threads: see :class:`~surefoot.inference.pairs.PairModel`.
        cache: see :class:`~surefoot.inference.pairs.PairModel`.
        arithmetic: see :class:`~surefoot.inference.pairs.PairModel`.
        self_test: score two pairs with known answers and refuse the model where they come out wrong.

    Raises:
        ModelError: the record names no entailment label, or the self-test fails.
    """

    def __init__(
        self,
        resolved: ResolvedModel,
        *,
        threads: int | None = None,
        cache: ScoreCache | None = None,
        self_test: bool = True,
        arithmetic: Arithmetic = "float32",
    ) -> None:
        self.record = resolved.record
        self._columns = _columns(resolved.record.labels, resolved.record.name)
        self.pairs = PairModel(
            resolved.model_path,
            resolved.tokenizer_path,
            fingerprint=resolved.fingerprint,
            max_length=resolved.record.max_length,
            threads=threads,
            cache=cache,
            arithmetic=arithmetic,
            int8=resolved.int8_path,
        )
        if self_test:
            self.self_test()

    @property
    def has_contradiction(self) -> bool:
        """Whether the model tells contradiction from mere lack of support."""
        return "contradiction" in self._columns

    @property
    def title(self) -> str:
        """The name that reports show."""
        return self.pairs.titled(self.record.name)

    def self_test(self) -> None:
        """Score pairs whose answer is beyond doubt.

        Raises:
            ModelError: the label order is wrong, or the model was never trained for NLI (for instance its
                scoring head is missing and was filled with random numbers).
        """
        scores = self.score([(premise, claim) for premise, claim, _ in _SELF_TEST])
        for (premise, claim, expected), score in zip(_SELF_TEST, scores, strict=True):
            wanted = (
                expected
                if self.has_contradiction
                else ("entailment" if expected == "entailment" else "neutral")
            )
            best = max(("entailment", "neutral", "contradiction"), key=lambda name: getattr(score, name))
            if best != wanted:
                raise ModelError(
                    f"{self.record.name} fails its self-test: {claim!r} given {premise!r} should be {wanted} "
                    f"and is {best}; its label order {list(self.record.labels)} is wrong, or it was never "
                    "trained for NLI"
                )

    def score(
        self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None
    ) -> list[Entailment]:
        """Probabilities for each (premise, claim), in order.

        Raises:
            ModelError: a pair is longer than the model, or the model returns a number that is not finite.
        """
        logits = self.pairs.logits(pairs, progress=progress).astype(np.float64)
        if not np.isfinite(logits).all():
            raise ModelError(f"{self.record.name} returned a score that is not a number")
        if pairs and logits.shape[1] != len(self.record.labels):
            raise ModelError(
                f"{self.record.name} has {logits.shape[1]} outputs for labels {list(self.record.labels)}"
            )
        return [self._entailment(row) for row in logits]

    def _entailment(self, row: npt.NDArray[np.float64]) -> Entailment:
        exponentials = np.exp(row - row.max())
        shares = exponentials / exponentials.sum()
        positive = self._columns["entailment"]
        others = np.delete(row, positive)
        peak = float(others.max())
        log_odds = float(row[positive]) - (peak + math.log(float(np.exp(others - peak).sum())))
        values = {name: float(shares[column]) for name, column in self._columns.items()}
        return Entailment(
            values["entailment"], values.get("neutral", 0.0), values.get("contradiction", 0.0), log_odds
        )


def _columns(labels: Sequence[str], name: str) -> dict[str, int]:
    columns: dict[str, int] = {}
    for index, label in enumerate(labels):
        meaning = _NAMES.get(label.lower().replace("-", "_").replace(" ", "_"))
        if meaning is None or meaning in columns:
            raise ModelError(f"{name} is no NLI model: its labels are {list(labels)}")
        columns[meaning] = index
    if "entailment" not in columns or len(columns) < 2:
        raise ModelError(f"{name} is no NLI model: its labels are {list(labels)}")
    return columns
