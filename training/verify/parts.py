"""The decision against each of its parts: what joining them gains on every set, paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from training.verify.figures import is_answer_set
from training.verify.measured import Item

from surefoot.metrics.resampling import draw, interval, weighted_auroc

__all__ = ["gains", "table"]


def gains(
    items: Sequence[Item], whole: np.ndarray, parts: Mapping[str, np.ndarray], *, seed: int = 0
) -> dict[str, Any]:
    """AUROC of the whole and of its parts on every grounding set, and how much the whole is above each.

    Args:
        items: claims; one that the package abstains on scores 0 in every system.
        whole: support [claims] by the decision.
        parts: scores [claims] by part, 0 or more.
        seed: of the resamples; whole groups are drawn, the same for every system.

    Returns:
        By set: ``auroc`` by system (the whole is ``decision``), and ``gain`` by part with ``ci``, its 95%
        interval. Undefined figures are ``None``.
    """
    names = np.asarray([item.set for item in items])
    good = np.asarray([not item.bad for item in items])
    asked = np.asarray([item.selected is not None for item in items])
    systems = {name: np.where(asked, score, 0.0) for name, score in {"decision": whole, **parts}.items()}
    found: dict[str, Any] = {}
    for name in sorted(set(names.tolist())):
        if is_answer_set(name):
            continue
        here = np.flatnonzero(names == name)
        drawn = draw([items[index].group for index in here], seed=seed, name=name)
        weights = np.concatenate([np.ones((1, len(here))), drawn])  # the first row is the sample itself
        areas = {
            system: weighted_auroc(weights, good[here], score[here].astype(np.float64))
            for system, score in systems.items()
        }
        found[name] = {
            "auroc": {system: _plain(values[0]) for system, values in areas.items()},
            "gain": {
                part: {
                    "value": _plain(areas["decision"][0] - areas[part][0]),
                    "ci": interval(areas["decision"][1:] - areas[part][1:]),
                }
                for part in parts
            },
        }
    return found


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def table(found: Mapping[str, Any]) -> str:
    """A Markdown table, in percent: AUROC, and in brackets the gain over the part with its interval."""
    parts = list(next(iter(found.values()))["gain"]) if found else []
    lines = [f"| set | decision | {' | '.join(parts)} |", "|---" * (len(parts) + 2) + "|"]
    for name, row in found.items():
        cells = [_cell(row["auroc"]["decision"])]
        for part in parts:
            gain = row["gain"][part]
            text = _cell(row["auroc"][part])
            if gain["value"] is not None and gain["ci"]:
                low, high = gain["ci"]
                text += f" ({100 * gain['value']:+.1f}, {100 * low:+.1f} to {100 * high:+.1f})"
            cells.append(text)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
