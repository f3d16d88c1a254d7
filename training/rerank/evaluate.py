"""Reranking of BM25's and the embedder's lists on judged collections, always beside the order as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from training.rerank.features import Lists
from training.rerank.fusion import Weights, ranked
from training.rerank.ranking import interval, ndcg

__all__ = ["report", "table"]


def report(lists: Sequence[Lists], systems: Mapping[str, Weights]) -> dict[str, Any]:
    """nDCG@10 of every system over both first stages, per collection and on average.

    Args:
        lists: with logits where a system uses them.
        systems: name to weights.

    Returns:
        ``collections``: name to ``queries`` and, for each first stage, system to mean nDCG@10 and its
        difference from the first stage with a 95% interval. ``mean``: the same over collections, each
        counting once.
    """
    names = sorted({item.source for item in lists})
    firsts = list(lists[0].retrieved)
    values: dict[tuple[str, str], dict[str, Any]] = {}
    collections: dict[str, Any] = {}
    for name in names:
        own = [item for item in lists if item.source == name]
        collections[name] = {"queries": len(own)}
        for first in firsts:
            rows = {"as retrieved": [ndcg([i.rows[p] for p in i.retrieved[first]], i.gains) for i in own]}
            for system, weights in systems.items():
                rows[system] = [ndcg(ranked(weights.score(i), i, first), i.gains) for i in own]
            values[name, first] = {system: np.array(row) for system, row in rows.items()}
            collections[name][first] = _figures([values[name, first]])
    mean = {first: _figures([values[name, first] for name in names]) for first in firsts}
    return {"measure": "nDCG@10", "collections": collections, "mean": mean}


def _figures(groups: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for system in groups[0]:
        values = [group[system] for group in groups]
        gains = [group[system] - group["as retrieved"] for group in groups]
        made[system] = {
            "ndcg": round(float(np.mean([v.mean() for v in values])), 4),
            "interval": [round(x, 4) for x in interval(values)],
        }
        if system != "as retrieved":
            made[system]["gain"] = round(float(np.mean([g.mean() for g in gains])), 4)
            made[system]["gain_interval"] = [round(x, 4) for x in interval(gains)]
    return made


def table(result: Mapping[str, Any]) -> str:
    """The report as Markdown: one row per collection and first stage."""
    systems = list(next(iter(result["mean"].values())))
    lines = [
        "| collection (queries) | first stage | " + " | ".join(systems) + " |",
        "|---" * (len(systems) + 2) + "|",
    ]
    parts = [(f"{name} ({part['queries']})", part) for name, part in result["collections"].items()]
    for label, part in [*parts, ("**mean**", result["mean"])]:
        for first in result["mean"]:
            cells = []
            for system in systems:
                cell = part[first][system]
                text = f"{cell['ndcg']:.3f}"
                if "gain" in cell:
                    low, high = cell["gain_interval"]
                    text += f" ({cell['gain']:+.3f}, {low:+.3f} to {high:+.3f})"
                cells.append(text)
            lines.append(f"| {label} | {first} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
