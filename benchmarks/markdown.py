"""The tables of docs/benchmarks.md and docs/models/verify.md, from the figures of ``benchmarks/quality.py``.

python -m benchmarks.markdown benchmarks/results/quality.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["answers_table", "cell", "main", "means_table", "sets_table"]

SYSTEMS = {
    "always_supported": "everything is supported",
    "unseen_share": "share of unseen words",
    "straightforward": "straightforward algorithm",
    "exhaustive": "surefoot, every window scored",
    "surefoot": "**surefoot**",
}


def cell(figures: Mapping[str, Any], key: str) -> str:
    """A figure in percent, with its 95% interval where it has one that is not a point."""
    value = figures.get(key)
    if value is None:
        return "-"
    ends = figures.get(f"{key}.ci")
    text = f"{100 * value:.1f}"
    if not ends or ends[0] is None or ends[0] == ends[1]:
        return text
    return f"{text} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _prefix(system: str) -> str:
    return "" if system == "surefoot" else f"{system}/"


def means_table(figures: Mapping[str, Any]) -> str:
    """One row per system, means over the grounding sets."""
    keys = ("balanced_accuracy", "auroc", "false_pass", "false_strip")
    rows = [
        [label, *(cell(figures, f"{_prefix(system)}mean.{key}") for key in keys)]
        for system, label in SYSTEMS.items()
        if f"{_prefix(system)}mean.auroc" in figures
    ]
    return _table(
        ["system, mean of the sets", "balanced accuracy", "AUROC", "false pass", "false strip"], rows
    )


def sets_table(figures: Mapping[str, Any]) -> str:
    """One row per grounding set, with the AUROC of the share of unseen words beside it."""
    names = [name for name in figures["settings"]["rows"] if f"{name}.false_pass" in figures]
    keys = ("balanced_accuracy", "auroc", "false_pass", "false_strip")
    rows = [
        [name, *(cell(figures, f"{name}.{key}") for key in keys), cell(figures, f"unseen_share/{name}.auroc")]
        for name in names
    ]
    head = ["set", "balanced accuracy", "AUROC", "false pass", "false strip", "AUROC of unseen words"]
    return _table(head, rows)


def answers_table(figures: Mapping[str, Any], name: str) -> str:
    """One row per system for a set of answers."""
    keys = [f"{name}.auroc", f"{name}.f1", f"{name}.f1_tuned"]
    keys += [f"{name}.{task}.auroc" for task in ("qa", "summary", "data2txt")]
    keys += [f"{name}.claim_auroc", f"{name}.span_f1"]
    rows = [
        [label, *(cell(figures, _prefix(system) + key) for key in keys)]
        for system, label in SYSTEMS.items()
        if f"{_prefix(system)}{name}.auroc" in figures
    ]
    head = ["system", "AUROC", "F1", "F1, threshold from the other half", "AUROC: questions", "summaries"]
    return _table([*head, "data to text", "AUROC of single claims", "F1 of spans"], rows)


def main(arguments: Sequence[str]) -> int:
    """Print all tables of a JSON file."""
    figures = json.loads(Path(arguments[0]).read_text("utf-8"))
    print(means_table(figures), sets_table(figures), sep="\n\n")
    for name in figures["settings"]["rows"]:
        if f"{name}.f1_always" in figures:
            print("\n" + answers_table(figures, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
