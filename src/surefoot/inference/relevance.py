"""The relevance cross-encoder: (query, passage) -> one logit, with its labels read and checked.

A head that is missing from a checkpoint, or a label order turned round, gives an order that looks like any
other. So a few pairs whose order nobody doubts are scored before the first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from surefoot.errors import ModelError
from surefoot.inference.cache import ScoreCache
from surefoot.inference.pairs import PairModel, Progress
from surefoot.inference.session import Arithmetic
from surefoot.models.manifest import ResolvedModel

__all__ = ["RelevanceModel"]

Pair = tuple[str, str]

_POSITIVE: Final = {"relevant", "relevance", "positive", "true", "yes", "match", "1", "label_1"}
_NEGATIVE: Final = {
    *("irrelevant", "not_relevant", "non_relevant", "nonrelevant", "unrelated"),
    *("negative", "false", "no", "no_match", "0", "label_0"),
}

_SELF_TEST: Final = (
    ("when does the library open", "The library opens at nine."),
    ("how tall is mount everest", "Mount Everest is 8,849 metres tall."),
    ("what is aspirin used for", "Aspirin is used for pain."),
)
"""Each query is answered by its own passage and by no other."""


class RelevanceModel:
    """A cross-encoder for relevance.

    Args:
        resolved: the model's record and files. One output is the logit; of two, the logit is that of the
            relevant label minus the other's, which is the log-odds of their softmax.
        threads: see :class:`~surefoot.inference.pairs.PairModel`.
        cache: see :class:`~surefoot.inference.pairs.PairModel`.
        arithmetic: see :class:`~surefoot.inference.pairs.PairModel`.
        self_test: score pairs of a known order and refuse the model where they come out wrong.

    Raises:
        ModelError: the labels are not those of a relevance model, or the self-test fails.
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
    def title(self) -> str:
        """The name that reports show."""
        return self.pairs.titled(self.record.name)

    def self_test(self) -> None:
        """Score pairs whose order is beyond doubt.

        Raises:
            ModelError: the label order is wrong, or the model was never trained for relevance (for instance
                its scoring head is missing and was filled with random numbers).
        """
        passages = [passage for _, passage in _SELF_TEST]
        scores = self.score([(query, passage) for query, _ in _SELF_TEST for passage in passages])
        for index, (query, passage) in enumerate(_SELF_TEST):
            row = scores[index * len(passages) : (index + 1) * len(passages)]
            if max(row) > row[index] or row.count(row[index]) > 1:
                raise ModelError(
                    f"{self.record.name} fails its self-test: {passage!r} should be the most relevant to "
                    f"{query!r}; its label order {list(self.record.labels)} is wrong, or it was never "
                    "trained for relevance"
                )

    def score(self, pairs: Sequence[Pair], *, progress: Progress | None = None) -> list[float]:
        """The logit of each (query, passage), in order.

        Raises:
            ModelError: a pair is longer than the model, the number of outputs is not that of the labels, or
                the model returns a number that is not finite.
        """
        if not pairs:
            return []
        logits = self.pairs.logits(pairs, progress=progress).astype(np.float64)
        if logits.ndim != 2 or logits.shape[1] != len(self.record.labels):
            raise ModelError(
                f"{self.record.name} has outputs of shape {logits.shape[1:]} for labels "
                f"{list(self.record.labels)}"
            )
        positive, negative = self._columns
        values = logits[:, positive]
        if negative is not None:
            values = values - logits[:, negative]
        if not np.isfinite(values).all():
            raise ModelError(f"{self.record.name} returned a score that is not a number")
        return [float(value) for value in values]


def _columns(labels: Sequence[str], name: str) -> tuple[int, int | None]:
    """(column of the relevant label, column of the other one or ``None``)."""
    if len(labels) == 1:
        return 0, None
    known = [label.strip().lower().replace("-", "_").replace(" ", "_") for label in labels]
    positive = [index for index, label in enumerate(known) if label in _POSITIVE]
    negative = [index for index, label in enumerate(known) if label in _NEGATIVE]
    if len(labels) != 2 or len(positive) != 1 or len(negative) != 1:
        raise ModelError(f"{name} is no relevance model: its labels are {list(labels)}")
    return positive[0], negative[0]
