"""Checked arrays for the figures: numbers in, or an :class:`InputError` that names what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import InputError

__all__ = [
    "Bools",
    "Floats",
    "Indices",
    "Steps",
    "binary",
    "finite",
    "paired",
    "probabilities",
    "sigmoid",
    "steps",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]
Item = TypeVar("Item", bound=np.generic)


def finite(values: ArrayLike, name: str) -> Floats:
    """``values`` [n] as float64; NaN and infinities are refused."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers") from error
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite: what a missing one counts is the caller's to decide")
    return array


def binary(values: ArrayLike, name: str) -> Bools:
    """``values`` [n] of 0/1 or booleans as booleans."""
    array = finite(values, name)
    if not np.isin(array, (0.0, 1.0)).all():
        raise InputError(f"{name} must be 0/1 or booleans")
    return array.astype(np.bool_)


def probabilities(values: ArrayLike) -> Floats:
    """``values`` [n] in [0, 1] as float64."""
    array = finite(values, "probabilities")
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise InputError("probabilities must lie in [0, 1]")
    return array


def paired(labels: Bools, values: NDArray[Item]) -> tuple[Bools, NDArray[Item]]:
    """Both, after a check that they are equally long."""
    if labels.size != values.size:
        raise InputError(f"{labels.size} labels for {values.size} values")
    return labels, values


@dataclass(frozen=True, slots=True)
class Steps:
    """Running mass of both classes at or above each distinct score, highest score first."""

    scores: Floats
    positive: Floats
    negative: Floats


def steps(truth: Bools, values: Floats, mass: Floats | None = None) -> Steps:
    """Sort rows by score, equal scores together, and sum the mass (1 each by default) of both classes."""
    weight = np.ones(truth.size) if mass is None else mass
    distinct, inverse = np.unique(-values, return_inverse=True)
    where = inverse.reshape(-1)
    return Steps(
        scores=-distinct,
        positive=np.cumsum(np.bincount(where, weights=weight * truth)),
        negative=np.cumsum(np.bincount(where, weights=weight * ~truth)),
    )


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1 + small), dtype=np.float64)
