"""Weighted means of the weights of checkpoints that have a common ancestor (Wortsman et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

__all__ = ["mean_weights"]


def mean_weights(folders: Sequence[Path], shares: Sequence[float] | None = None) -> dict[str, torch.Tensor]:
    """The mean of the weights in ``model.safetensors``, in float32.

    Args:
        folders: of checkpoints.
        shares: of each, positive, together 1; equal ones by default.

    Raises:
        ValueError: the checkpoints do not have the same weights, or the shares are no shares.
    """
    if shares is None:
        shares = [1 / max(len(folders), 1)] * len(folders)
    if len(shares) != len(folders) or min(shares, default=0) <= 0 or not math.isclose(sum(shares), 1):
        raise ValueError("every checkpoint needs a positive share, and together they must be 1")
    parts = [load_file(folder / "model.safetensors") for folder in folders]
    if any(part.keys() != parts[0].keys() for part in parts):
        raise ValueError("the checkpoints do not have the same weights")
    return {
        name: sum(share * part[name].float() for share, part in zip(shares, parts, strict=True)).contiguous()  # type: ignore[union-attr]
        for name in parts[0]
    }
