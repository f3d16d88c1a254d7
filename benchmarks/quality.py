"""How good the verdicts are: surefoot next to simpler systems, on labelled claims and answers.

``--data`` is a folder with ``grounding/`` and ``answer/``; benchmarks/datasets.py says what is in them. The
result has flat keys: ``SET.balanced_accuracy``, ``mean.auroc`` and so on for surefoot, and the same with
``SYSTEM/`` in front for the others; each has its 95% interval under ``KEY.ci``. Undefined figures are null.

How a verdict counts
    A row is positive if its label is ``supported``; ``contradicted`` and ``unsupported`` are negative. A
    claim counts as supported if its verdict is ``supported``, or ``review`` with support of at least 0.5.
    AUROC ranks by ``support``. A claim that could not be checked counts as not supported, with score 0.
Thresholds
    Every system is measured at the threshold that it ships with. Keys that end in ``_loso`` decide each set
    at the threshold that is best on average over the *other* sets; sets that share claims are left out
    together.
Sampling
    At most 200 rows of a set, in proportion to label and subset; ``--limit 0`` takes all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.datasets import AnswerRow, GroundingRow, by_premise, families, load_sets
from benchmarks.figures import (
    ClaimFigures,
    Said,
    answer_figures,
    claim_figures,
    gains,
    leave_one_out,
    mean_figures,
    set_figures,
    summed_up,
)
from benchmarks.record import cell, progress, table
from benchmarks.systems import STEPS, SYSTEMS, Outcome, System, build

__all__ = ["measure", "options", "show"]

DATA = "grounding/ and answer/"
SOME_CLAIMS = 0.1
LABELS = {
    "always_supported": "everything is supported",
    "unseen_share": "share of unseen words",
    "straightforward": "straightforward algorithm",
    "exhaustive": "surefoot, every window scored",
    "surefoot": "**surefoot**",
}
DEFAULT = tuple(LABELS)
MAIN = ("balanced_accuracy", "auroc", "false_pass", "false_strip")


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    names = ", ".join([*LABELS, "ablation (each step switched off)", "ablation_STEP"])
    parser.add_argument("--limit", type=int, default=200, help="rows of a set; 0 takes all (%(default)s)")
    parser.add_argument("--sets", default="", help="names, separated by commas; all by default")
    parser.add_argument("--systems", default=",".join(DEFAULT), help=f"separated by commas, of: {names}")
    parser.add_argument("--model", help="NLI model instead of the bundled one")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run every system on every set.

    Raises:
        ValueError: there is no such set or system, or a row is malformed.
    """
    names = _systems(options.systems)
    sets, digests = load_sets(
        options.data, ("grounding", "answer"), only=options.sets, limit=options.limit, seed=options.seed
    )
    result: dict[str, Any] = {
        "rows": {name: len(rows) for name, rows in sets.items()},
        "data": digests,
        "seconds": {},
    }
    said: dict[str, dict[str, Said]] = {}
    for name in names:
        system = build(name, model=options.model, threads=options.threads)
        prefix = _prefix(name)
        said[name] = {}
        for set_name, rows in sets.items():
            began = time.perf_counter()
            if isinstance(rows[0], GroundingRow):
                said[name][set_name] = summed_up(rows, _ground(system, rows, f"{name} on {set_name}"))
            else:
                about = f"{name} on {set_name}"
                answered = [system.answer(row) for row in progress(rows, about)]
                found = answer_figures(set_name, rows, answered, seed=options.seed)
                result |= {prefix + key: value for key, value in found.items()}
            result["seconds"][f"{name}/{set_name}"] = round(time.perf_counter() - began, 2)
    return result | _grounding(said, sets, seed=options.seed)


def _systems(text: str) -> list[str]:
    names = [each for name in text.split(",") if name for each in (STEPS if name == "ablation" else [name])]
    unknown = sorted(set(names) - set(SYSTEMS))
    if unknown or not names:
        raise ValueError(f"no such system: {', '.join(unknown)}; there are {', '.join(SYSTEMS)}")
    return list(dict.fromkeys(names))


def _prefix(name: str) -> str:
    return "" if name == "surefoot" else f"{name}/"


def _ground(system: System, rows: Sequence[GroundingRow], about: str) -> list[Outcome]:
    """Rows that share a premise go in together."""
    said: list[Any] = [None] * len(rows)
    for indices in progress(list(by_premise(rows)), about):
        found = system.claims(rows[indices[0]].premise, [rows[index].claim for index in indices])
        for index, outcome in zip(indices, found, strict=True):
            said[index] = outcome
    return said


def _grounding(
    said: Mapping[str, dict[str, Said]], sets: Mapping[str, Sequence[GroundingRow | AnswerRow]], *, seed: int
) -> dict[str, Any]:
    """Figures of the grounding sets, system by system."""
    rows: dict[str, Any] = {name: part for name, part in sets.items() if isinstance(part[0], GroundingRow)}
    if not rows:
        return {}
    relatives = families(rows, at_least=SOME_CLAIMS)
    decided = {name: leave_one_out(one, relatives) for name, one in said.items()}
    found: dict[str, dict[str, ClaimFigures]] = {}
    for name, results in decided.items():
        sys.stderr.write(f"intervals of {name}\n")
        found[name] = {part: claim_figures(one, seed=seed, name=part) for part, one in results.items()}
    keys: dict[str, Any] = {}
    for name, sets_of in found.items():
        own: dict[str, Any] = {}
        for part, figures in sets_of.items():
            own |= set_figures(part, decided[name][part], figures)
        own |= mean_figures(sets_of, own)
        if name != "surefoot" and "surefoot" in found:
            own |= gains(found["surefoot"], sets_of)
        keys |= {_prefix(name) + key: value for key, value in own.items()}
    return keys


def show(figures: Mapping[str, Any]) -> str:
    """All tables."""
    answers = [name for name in rows_of(figures) if f"{name}.f1_always" in figures]
    parts = [means_table(figures), sets_table(figures), *(answers_table(figures, name) for name in answers)]
    return "\n\n".join([*parts, steps_table(figures)])


def rows_of(figures: Mapping[str, Any]) -> list[str]:
    """Names of the sets."""
    return list(figures.get("rows") or figures["settings"]["rows"])


def means_table(figures: Mapping[str, Any]) -> str:
    """One row a system, means over the grounding sets."""
    rows = [
        [label, *(cell(figures, f"{_prefix(system)}mean.{key}") for key in MAIN)]
        for system, label in LABELS.items()
        if f"{_prefix(system)}mean.auroc" in figures
    ]
    return table(
        ["system, mean of the sets", "balanced accuracy", "AUROC", "false pass", "false strip"], rows
    )


def sets_table(figures: Mapping[str, Any]) -> str:
    """One row a grounding set, with the AUROC of the share of unseen words beside it."""
    rows = [
        [name, *(cell(figures, f"{name}.{key}") for key in MAIN), cell(figures, f"unseen_share/{name}.auroc")]
        for name in rows_of(figures)
        if f"{name}.false_pass" in figures
    ]
    head = ["set", "balanced accuracy", "AUROC", "false pass", "false strip", "AUROC of unseen words"]
    return table(head, rows)


def answers_table(figures: Mapping[str, Any], name: str) -> str:
    """One row a system for a set of answers."""
    keys = [f"{name}.auroc", f"{name}.f1", f"{name}.f1_tuned"]
    keys += [f"{name}.{task}.auroc" for task in ("qa", "summary", "data2txt")]
    keys += [f"{name}.claim_auroc", f"{name}.span_f1"]
    rows = [
        [label, *(cell(figures, _prefix(system) + key) for key in keys)]
        for system, label in LABELS.items()
        if f"{_prefix(system)}{name}.auroc" in figures
    ]
    head = ["system", "AUROC", "F1", "F1, threshold from the other half", "AUROC: questions", "summaries"]
    return table([*head, "data to text", "AUROC of single claims", "F1 of spans"], rows)


def steps_table(figures: Mapping[str, Any]) -> str:
    """One row a step that was switched off; gains are those of the full check over the one without it."""
    rows = [
        [
            step.removeprefix("ablation_"),
            *(
                cell(figures, f"{step}/mean.{key}_surefoot_minus_this", signed=True)
                for key in ("balanced_accuracy", "auroc")
            ),
            *(cell(figures, f"{step}/mean.{key}").split()[0] for key in ("false_pass", "false_strip")),
        ]
        for step in STEPS
        if f"{step}/mean.auroc" in figures
    ]
    head = [
        "step",
        "gain in balanced accuracy",
        "gain in AUROC",
        "false pass without it",
        "false strip without it",
    ]
    return table(head, rows) if rows else ""
