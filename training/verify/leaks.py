"""What the claim alone gives away: a naive Bayes classifier that never sees a premise.

Pairs that are made by editing are easily told by the edit: a model then learns that and not the comparison.
An AUROC near 0.5 says that the claim alone does not tell; people's own sets are rarely below 0.6.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from training.verify.pairs import Pair
from training.verify.sources import group_of

from surefoot import metrics

__all__ = ["claim_only"]

_FOLDS = 5


def _grams(claim: str) -> list[str]:
    words = re.findall(r"[a-z']+|\d+", claim.lower())
    words = ["#" if word.isdigit() else word for word in words]
    return [*words, *(f"{one} {two}" for one, two in pairwise(words))]


def claim_only(pairs: Sequence[Pair]) -> dict[str, float | None]:
    """AUROC for entailment of claims without their premises, cross-validated, by source and over all.

    Pairs whose premises begin alike are in one fold, so that a claim is not recognised.
    """
    grams = [_grams(pair.claim) for pair in pairs]
    folds = [group_of(pair.premise) % _FOLDS for pair in pairs]
    truth = [pair.label == "entailment" for pair in pairs]
    scores = [0.0] * len(pairs)
    for fold in range(_FOLDS):
        counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        for words, here, label in zip(grams, folds, truth, strict=True):
            if here != fold:
                counts[label].update(words)
        totals = {label: sum(counts[label].values()) + 1 for label in counts}
        for index, (words, here) in enumerate(zip(grams, folds, strict=True)):
            if here == fold:
                scores[index] = sum(
                    math.log((counts[True][word] + 1) / totals[True])
                    - math.log((counts[False][word] + 1) / totals[False])
                    for word in words
                ) / max(1, len(words))
    found: dict[str, float | None] = {"all": metrics.auroc(truth, scores)}
    for source in sorted({pair.source for pair in pairs}):
        rows = [index for index, pair in enumerate(pairs) if pair.source == source]
        found[source] = metrics.auroc([truth[row] for row in rows], [scores[row] for row in rows])
    return found
