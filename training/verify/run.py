"""A long training in phases that goes on by itself where it was stopped.

A folder holds everything: ``plan.json``, a folder for each phase (``state.pt``, ``checkpoint/``,
``log.jsonl``), and ``curve.jsonl`` with tokens, loss and figures. Each phase starts from the checkpoint of
the one before. A stopped run, whatever stopped it, loses what came after its last checkpoint: ten minutes
at most.

``plan.json``::

    {"init": "ENCODER", "threads": 2,
     "measure": {"items": "measured.jsonl.gz", "rows": 60, "cases": "cases.jsonl", "families": 5,
                 "minutes": 60},
     "phases": [{"name": "trunk", "data": ["human.jsonl.gz"], "budget": 1000000, "frozen": 6, "rate": 1e-4}]}

Paths are relative to the folder. Every other key of a phase is a field of
:class:`~training.verify.learn.Settings`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from training.verify.families import family_pairs
from training.verify.learn import Settings, train
from training.verify.measured import CHOOSING, Item, read_items
from training.verify.score import score_items, score_pairs

from surefoot import metrics

__all__ = ["figures_of", "read_cases", "run"]


def run(folder: Path, *, minutes: float = 0, device: str = "auto") -> Path:
    """Train every phase of ``folder/plan.json`` that is not done; SIGTERM saves and ends it.

    Args:
        folder: see above.
        minutes: stop after so long; 0 is never.
        device: ``auto``, ``cpu`` or ``cuda``.

    Returns:
        The last checkpoint.
    """
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    started = time.monotonic()
    init = folder / plan["init"]
    measure = _Measure(folder, plan.get("measure", {}), device)
    before = 0
    for phase in plan["phases"]:
        out = folder / phase["name"]
        settings = Settings(**{key: value for key, value in phase.items() if key not in ("name", "data")})
        done = out / "done.json"
        if not done.is_file():
            left = minutes - (time.monotonic() - started) / 60 if minutes else 0.0
            if minutes and left <= 0:
                break
            measure.begin(phase["name"], before)
            checkpoint, seen = train(
                [folder / path for path in phase["data"]],
                init,
                out,
                settings,
                device=device,
                threads=plan.get("threads", 1),
                minutes=left,
                saved=measure,
            )
            if not settings.budget or seen < settings.budget:
                return checkpoint
            done.write_text(json.dumps({"tokens": seen}) + "\n", "utf-8")
        init = out / "checkpoint"
        before += json.loads(done.read_text("utf-8"))["tokens"]
    return init


class _Measure:
    """Called after every checkpoint: figures of the choosing half, now and then, to ``curve.jsonl``."""

    def __init__(self, folder: Path, options: Mapping[str, Any], device: str) -> None:
        self._path = folder / "curve.jsonl"
        self._device = device
        self._every = float(options.get("minutes", 60))
        self._items: list[Item] = []
        self._short: dict[str, list[tuple[str, str, bool]]] = {}
        self._last = time.monotonic()
        self._phase, self._before = "", 0
        if "items" in options:
            seen: dict[str, int] = {}
            for item in read_items(folder / options["items"]):
                seen[item.set] = seen.get(item.set, 0) + 1
                if item.set in CHOOSING and seen[item.set] <= options.get("rows", 60):
                    self._items.append(item)
        if "cases" in options:
            self._short["cases"] = read_cases(folder / options["cases"])
        if "families" in options:
            twins = family_pairs(held_out=True, copies=options["families"], seed=0)
            self._short["families"] = [
                (p.premise, p.claim, p.label == "entailment") for pairs in twins for p in pairs
            ]

    def begin(self, phase: str, before: int) -> None:
        self._phase, self._before = phase, before

    def __call__(self, checkpoint: Path, seen: int, loss: float) -> None:
        if (time.monotonic() - self._last) / 60 < self._every or not (self._items or self._short):
            return
        line = {"phase": self._phase, "tokens": self._before + seen, "loss": round(loss, 4)}
        line |= figures_of(checkpoint, self._items, self._short, device=self._device)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        self._last = time.monotonic()


def read_cases(path: Path) -> list[tuple[str, str, bool]]:
    """(sources, answer, supported) of short inputs with one claim each; others are passed over."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["expect"] in ("S", "X", "U"):
            found.append((" ".join(record["sources"]), record["answer"], record["expect"] == "S"))
    return found


def figures_of(
    checkpoint: Path,
    items: Sequence[Item],
    short: Mapping[str, Sequence[tuple[str, str, bool]]],
    *,
    device: str = "auto",
) -> dict[str, Any]:
    """AUROC in percent of the network alone: by set, their mean, and of short (premise, claim, supported)."""
    found: dict[str, Any] = {}
    if items:
        logits = score_items(checkpoint, items, device=device)
        best = np.nanmax(np.nan_to_num(_log_odds(logits), nan=-np.inf), axis=1)
        names = sorted({item.set for item in items})
        by_set = {}
        for name in names:
            here = [index for index, item in enumerate(items) if item.set == name]
            area = metrics.auroc(
                [not items[index].bad for index in here], [float(best[index]) for index in here]
            )
            by_set[name] = None if area is None else round(100 * area, 1)
        known = [value for value in by_set.values() if value is not None]
        found |= {"mean": round(sum(known) / len(known), 1), "sets": by_set}
    for name, pairs in short.items():
        logits = score_pairs(checkpoint, [(premise, claim) for premise, claim, _ in pairs], device=device)
        area = metrics.auroc([supported for *_, supported in pairs], _log_odds(logits).tolist())
        found[name] = None if area is None else round(100 * area, 1)
    return found


def _log_odds(logits: np.ndarray) -> np.ndarray:
    """Of entailment against the rest, over the last axis [..., 3]."""
    peak = logits[..., 1:].max(axis=-1)
    return logits[..., 0] - peak - np.log(np.exp(logits[..., 1:] - peak[..., None]).sum(axis=-1))
