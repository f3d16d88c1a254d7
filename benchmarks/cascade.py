"""What a cascade saves, and what it costs in accuracy, compared with judging every claim.

Every claim of ``DIR/grounding`` is checked locally and judged once. From the two verdicts follow ``local``
(never ask), ``judge everything``, and the cascade with its default band (only ``review``) and with wider
ones. A second run of the real cascade with the default band must give the same verdicts. Per system: share of
claims and of prompt tokens sent, balanced accuracy, false pass and false strip (means over the sets, 95%
bootstrap interval over premises), and the loss in balanced accuracy to judging everything, paired.

``--simulate A`` replaces the model by an oracle that is right for a share A of the claims, chosen at random.
**This is a simulation.** A real judge errs where claims are hard, as the local model does, and not at random,
so the accuracies say nothing about any real pair. They show how the bands trade calls for the judge's
accuracy.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import GroundingRow, by_premise, load_sets
from benchmarks.record import cell, progress, table
from benchmarks.systems import outcome_of
from surefoot import Claim, Source, TruthfulnessReport, Verdict, Verifier
from surefoot.cascade import Cascade, CascadeReport
from surefoot.endpoints import ChatEndpoint, DecisionEndpoint, Usage
from surefoot.endpoints.loop import run_sync
from surefoot.judge import Judge
from surefoot.judge.cleaning import quote, without_invisible
from surefoot.judge.windows import estimate_tokens
from surefoot.metrics.resampling import estimate, group_weights, mean_of, weighted_rates
from surefoot.verify.summary import summarise

__all__ = ["measure", "options", "show"]

DATA = "grounding/"
EVERYTHING, REVIEW = "judge everything", "cascade, review only"
BANDS: Mapping[str, tuple[float, float] | None] = {
    REVIEW: None,
    "cascade, 0.3 to 0.7": (0.3, 0.7),
    "cascade, 0.2 to 0.8": (0.2, 0.8),
    "cascade, 0.1 to 0.9": (0.1, 0.9),
}


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--limit", type=int, default=100, help="rows of a set; 0 takes all (%(default)s)")
    parser.add_argument("--sets", default="", help="names, separated by commas; all by default")
    parser.add_argument("--judge-url", help="OpenAI-compatible server, up to /v1; instead of --simulate")
    parser.add_argument("--judge-model", help="name of the model there")
    parser.add_argument("--decision", action="store_true", help="it is a decision model")
    parser.add_argument("--simulate", type=float, metavar="ACCURACY", help="simulate a judge, 0.5 to 1")


@dataclass(frozen=True, slots=True)
class Row:
    """One claim with both verdicts."""

    data: GroundingRow
    local: Claim
    judged: Claim
    tokens: int


class SimulatedJudge:
    """An oracle with noise: right for a stated share of the claims, whatever they are."""

    def __init__(self, rows: Sequence[GroundingRow], accuracy: float, seed: int) -> None:
        self.__name__ = f"simulated judge, accuracy {accuracy:g}"
        self._accuracy, self._seed = accuracy, seed
        self._labels = {(_quoted(row.premise), _quoted(row.claim)): row.supported for row in rows}

    def __call__(self, prompt: str) -> str:
        key = (_block(prompt, "SOURCE"), _block(prompt, "STATEMENT"))
        digest = hashlib.sha256(repr((self._seed, *key)).encode("utf-8", "replace")).digest()
        right = int.from_bytes(digest[:8], "big") / 2**64 < self._accuracy
        return "Score: 0.05" if self._labels[key] is right else "Score: 0.95"


def _quoted(text: str) -> str:
    return quote(without_invisible(text)[0])


def _block(prompt: str, name: str) -> str:
    start = prompt.rindex(f"\n<<<{name} ")
    first = prompt.index("\n", start + 1) + 1
    return prompt[first : prompt.index(f"\n{name} ", first)]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Check and judge every claim.

    Raises:
        ValueError: no judge is named, or there is no such set.
    """
    sets, digests = load_sets(
        options.data, ("grounding",), only=options.sets, limit=options.limit, seed=options.seed
    )
    judge = _judge(options, [row for rows in sets.values() for row in rows])
    verifier = Verifier(threads=options.threads)
    verifier.load()
    found: dict[str, list[Row]] = {}
    spent = {EVERYTHING: Usage(), REVIEW: Usage()}
    seconds = {"local": 0.0, EVERYTHING: 0.0, REVIEW: 0.0}
    left = differing = 0
    for name, rows in sets.items():
        found[name] = []
        for indices in progress(list(by_premise(rows)), name):
            group = [rows[index] for index in indices]
            began = time.perf_counter()
            report = _report(verifier, group)
            seconds["local"] += time.perf_counter() - began
            everything = _settled(Cascade(verifier, judge, band=(0.0, 1.0)), report)
            real = _settled(Cascade(verifier, judge), report)
            for system, result in ((EVERYTHING, everything), (REVIEW, real)):
                spent[system] += result.usage
                seconds[system] += result.seconds
            left += sum(not decision.settled for decision in everything.decisions)
            pairs = zip(group, report.claims, everything.report.claims, real.report.claims, strict=True)
            for row, local, judged, again in pairs:
                differing += again.verdict is not (judged if _inside(local, None) else local).verdict
                tokens = estimate_tokens(row.premise) + estimate_tokens(row.claim)
                found[name].append(Row(row, local, judged, tokens))
    simulated = options.simulate is not None
    # A real model may say something else when it is asked again; a simulated one may not.
    errors = [f"{differing} verdicts of the cascade differ from its parts"] if simulated and differing else []
    return {
        "rows": {name: len(rows) for name, rows in sets.items()},
        "data": digests,
        "judge": {
            "model": judge.model,
            "prompt_version": judge.prompt_version,
            "simulated": simulated,
            "left_undecided": left,
        },
        "systems": _systems(found, seed=options.seed),
        "usage": {
            system: {key: getattr(usage, key) for key in ("calls", "input_tokens", "output_tokens")}
            for system, usage in spent.items()
        },
        "seconds": {system: round(value, 2) for system, value in seconds.items()},
        "errors": errors,
    }


def _judge(options: argparse.Namespace, rows: Sequence[GroundingRow]) -> Judge:
    if options.judge_url and options.judge_model:
        kind = DecisionEndpoint if options.decision else ChatEndpoint
        return Judge(kind(options.judge_model, base_url=options.judge_url))
    if options.simulate is None or not 0.5 <= options.simulate <= 1:
        raise ValueError("name an endpoint with --judge-url and --judge-model, or --simulate 0.5 to 1")
    oracle = SimulatedJudge(rows, options.simulate, options.seed)
    # Everything fits: the oracle knows a claim by its whole source.
    return Judge(oracle, max_context_tokens=10**9, control="never")


def _report(verifier: Verifier, rows: Sequence[GroundingRow]) -> TruthfulnessReport:
    """The report of an answer whose claims are given, one a line."""
    claims, start = [], 0
    for claim in verifier.check_claims([row.claim for row in rows], [rows[0].premise]):
        claims.append(replace(claim, start=start, end=start + len(claim.text)))
        start += len(claim.text) + 1
    answer, sources = "\n".join(row.claim for row in rows), (Source("1", rows[0].premise),)
    return summarise(
        answer, None, sources, tuple(claims), (), reasons=[], mode="optional", model="local", seconds=0.0
    )


def _settled(cascade: Cascade, report: TruthfulnessReport) -> CascadeReport:
    return run_sync(cascade.settle(report))


def _inside(claim: Claim, band: tuple[float, float] | None) -> bool:
    if claim.verdict is Verdict.REVIEW:
        return True
    return band is not None and claim.support is not None and band[0] <= claim.support <= band[1]


def _systems(found: Mapping[str, Sequence[Row]], *, seed: int) -> dict[str, dict[str, Any]]:
    """The figures of every system, from both verdicts of each claim."""
    every = [row for rows in found.values() for row in rows]
    weights = {
        name: group_weights([row.data.group for row in rows], seed=seed, name=name)
        for name, rows in found.items()
    }
    chosen = {"local": lambda _: False, EVERYTHING: lambda _: True}
    chosen |= {system: lambda claim, band=band: _inside(claim, band) for system, band in BANDS.items()}
    figures: dict[str, dict[str, Any]] = {}
    accuracy = {}
    for system, asks in chosen.items():
        rates = [
            weighted_rates(
                weights[name],
                np.array([row.data.supported for row in rows]),
                np.array(
                    [outcome_of(row.judged if asks(row.local) else row.local).supported for row in rows]
                ),
            )
            for name, rows in found.items()
        ]
        sent = [row for row in every if asks(row.local)]
        one = figures[system] = {
            "claims_sent": len(sent) / max(1, len(every)),
            "tokens_sent": sum(row.tokens for row in sent) / max(1, sum(row.tokens for row in every)),
        }
        for key in ("balanced_accuracy", "false_pass", "false_strip"):
            mean = mean_of([each[key] for each in rates])
            one[key], one[f"{key}.ci"] = estimate(mean)
            if key == "balanced_accuracy":
                accuracy[system] = mean
    for system, one in figures.items():
        loss = estimate(accuracy[EVERYTHING] - accuracy[system])
        one["loss_to_judging_everything"], one["loss_to_judging_everything.ci"] = loss
    return figures


def show(result: Mapping[str, Any]) -> str:
    """The table of docs/benchmarks.md."""
    judge = result["judge"]
    keys = ("balanced_accuracy", "false_pass", "false_strip", "loss_to_judging_everything")
    rows = [
        [system, f"{one['claims_sent']:.0%}", f"{one['tokens_sent']:.0%}"]
        + [cell(one if key == keys[0] else {key: one[key]}, key) for key in keys]
        for system, one in result["systems"].items()
    ]
    head = ["system", "claims sent", "tokens sent", "balanced accuracy", "false pass", "false strip", "loss"]
    about = f"{'SIMULATION, not a model: ' if judge['simulated'] else ''}{judge['model']}"
    return f"{about}\n\n{table(head, rows)}"
