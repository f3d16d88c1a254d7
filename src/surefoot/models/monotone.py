"""A small additive model over a network's output and cheap features, monotone by construction.

value = bias + long_bias * L + sum over terms of share(L) * sign-aware piecewise linear functions, where L in
[0, 1] says how much like a document the sources are. No coefficient is negative, so that more entailment
never lowers a value and more unseen words never raise it. It is data: a few numbers in the manifest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from surefoot.errors import ModelIntegrityError

__all__ = ["INPUTS", "Monotone", "Term"]

INPUTS: Final = (
    "entailment",
    "contradiction_odds",
    "aligned",
    "unseen_near",
    "overlap",
)
"""What a term may be a function of: the log-odds of entailment, those of contradiction against neutral by the
same premise, and :mod:`surefoot.verify.features`."""

_SIDES: Final = ("any", "short", "long")
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Term:
    """One piecewise linear function.

    Attributes:
        input: of :data:`INPUTS`.
        sign: 1 if it rises with its input, -1 if it falls.
        side: ``"any"``, or ``"short"`` or ``"long"`` to count by how short or long the sources are.
        knots: two or more, ascending.
        rise: between each knot and the next, 0 or more.
    """

    input: str
    sign: int
    side: str
    knots: tuple[float, ...]
    rise: tuple[float, ...]

    def __post_init__(self) -> None:
        good = (
            self.input in INPUTS
            and self.sign in (1, -1)
            and self.side in _SIDES
            and 2 <= len(self.knots) <= _MOST
            and len(self.rise) == len(self.knots) - 1
            and all(_finite(x) for x in (*self.knots, *self.rise))
            and all(low < high for low, high in zip(self.knots, self.knots[1:], strict=False))
            and min(self.rise) >= 0
        )
        if not good:
            raise ModelIntegrityError("a term of a decision needs a known input, rising knots and rises >= 0")

    def value(self, x: float) -> float:
        """The function at ``x``, 0 to the sum of its rises."""
        total = 0.0
        for low, high, rise in zip(self.knots, self.knots[1:], self.rise, strict=False):
            share = min(1.0, max(0.0, (x - low) / (high - low)))
            total += rise * (share if self.sign > 0 else 1.0 - share)
        return total


@dataclass(frozen=True, slots=True)
class Monotone:
    """The whole model; see the module.

    Attributes:
        bias, long_bias: added; the second times how long the sources are.
        long: ln of the words of the sources at which they begin to be long, and are.
        terms: one or more functions.
    """

    bias: float
    long_bias: float
    long: tuple[float, float]
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if (
            not all(_finite(x) for x in (self.bias, self.long_bias, *self.long))
            or len(self.long) != 2
            or not self.long[0] < self.long[1]
            or not 1 <= len(self.terms) <= _MOST
        ):
            raise ModelIntegrityError("a decision needs finite numbers, two lengths in order, and terms")

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read parsed JSON.

        Raises:
            ModelIntegrityError: it is malformed.
        """
        if not isinstance(data, Mapping):
            raise ModelIntegrityError("a decision must be a JSON object")
        try:
            terms = tuple(
                Term(
                    **{key: value for key, value in item.items() if key not in ("knots", "rise")},
                    knots=_numbers(item["knots"]),
                    rise=_numbers(item["rise"]),
                )
                for item in data["terms"]
            )
            low, high = _numbers(data["long"])
            rest = {key: value for key, value in data.items() if key not in ("terms", "long")}
            return cls(**rest, long=(low, high), terms=terms)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ModelIntegrityError(f"malformed decision: {error}") from error

    def value(self, log_odds: float, features: Mapping[str, float]) -> float:
        """The sum, itself a log-odds.

        Args:
            log_odds: of entailment, by the best premise.
            features: a value for every other input, and ``source_words``: ln(1 + words of all sources).
        """
        inputs = {**features, "entailment": log_odds}
        low, high = self.long
        long = min(1.0, max(0.0, (inputs["source_words"] - low) / (high - low)))
        share = {"any": 1.0, "long": long, "short": 1.0 - long}
        parts = (share[term.side] * term.value(inputs[term.input]) for term in self.terms)
        return self.bias + self.long_bias * long + math.fsum(parts)


def _finite(x: object) -> bool:
    return type(x) in (int, float) and math.isfinite(x)  # type: ignore[arg-type]


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    if not isinstance(values, (list, tuple)) or not all(_finite(x) for x in values):
        raise ModelIntegrityError("a decision needs lists of finite numbers")
    return tuple(values)
