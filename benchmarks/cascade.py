"""What a cascade saves and what it costs in accuracy, against judging every claim.

    python benchmarks/cascade.py --data DIR --json out/cascade.json --judge-url URL --judge-model NAME
    python benchmarks/cascade.py --data DIR --json out/cascade.json --simulate 0.85

Every claim of ``DIR/grounding/*.jsonl.gz`` is checked locally and judged once. From both verdicts follow
``local`` (never ask), ``judge everything``, and the cascade with its default band (only ``review``) and with
wider ones; a second run of the real cascade with the default band must give the same verdicts and shows what
it really used. Per system: share of claims and of prompt tokens sent, balanced accuracy (mean over the
sets, with a 95% bootstrap interval over premises), false pass, false strip, and the difference in balanced
accuracy to judging everything, paired on the same resamples.

``--simulate A`` replaces the model by an oracle that is right in a share A of the claims, chosen at random:
THIS IS A SIMULATION. A real judge errs where claims are hard, as the local model does, and not at random, so
that the accuracies say nothing about any real pair. It shows how the bands trade calls for the judge's
accuracy, and tests the machinery; nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

if __package__ in (None, ""):
    # Run as a script. Its own folder must not stay on the path: datasets.py there would hide the package of
    # that name, which sentence-transformers imports.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import hardware
from benchmarks.datasets import GroundingRow, discover, load_grounding, sample
from benchmarks.resampling import Vector, draw, interval, mean_of, ratio
from benchmarks.runs import Progress, write_json
from benchmarks.systems import outcome_of
from surefoot import Claim, ConfigurationError, Source, TruthfulnessReport, Verdict, Verifier
from surefoot.cascade import Cascade, CascadeReport
from surefoot.endpoints import ChatEndpoint, DecisionEndpoint, Usage
from surefoot.judge import Judge
from surefoot.judge.cleaning import quote, without_invisible
from surefoot.judge.windows import estimate_tokens
from surefoot.verify.summary import summarise

__all__ = ["main"]

BANDS: Mapping[str, tuple[float, float] | None] = {
    "cascade, review only": None,
    "cascade, 0.3 to 0.7": (0.3, 0.7),
    "cascade, 0.2 to 0.8": (0.2, 0.8),
    "cascade, 0.1 to 0.9": (0.1, 0.9),
}
CLAIMS_PER_ANSWER = 16


@dataclass(frozen=True, slots=True)
class Row:
    """One claim with both verdicts."""

    data: GroundingRow
    local: Claim
    judged: Claim
    tokens: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A system on one set."""

    sent: NDArray[np.bool_]
    tokens: Vector
    supported: NDArray[np.bool_]
    labels: NDArray[np.bool_]
    groups: tuple[str, ...]


class SimulatedJudge:
    """An oracle with noise: right in a stated share of the claims, whatever they are. A simulation.

    Args:
        rows: claims with their labels.
        accuracy: share of right replies.
        seed: of the choice.
    """

    def __init__(self, rows: Sequence[GroundingRow], accuracy: float, seed: int) -> None:
        self.__name__ = f"simulated judge, accuracy {accuracy:g}"
        self._accuracy = accuracy
        self._seed = seed
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 0 if everything was measured, 1 if not, 2 if asked wrongly."""
    options = _parser().parse_args(arguments)
    try:
        sets = _load(options)
        judge = _judge(options, [row for rows in sets.values() for row in rows])
    except (OSError, ValueError, ConfigurationError) as error:
        sys.stderr.write(f"cascade.py: {error}\n")
        return 2
    verifier = Verifier(threads=options.threads)
    verifier.load()
    progress = Progress(len(sets))
    measured: dict[str, dict[str, Measured]] = {}
    spent = {"judge everything": Usage(), "cascade, review only": Usage()}
    seconds = {"local": 0.0, "judge everything": 0.0, "cascade, review only": 0.0}
    left = differing = 0
    for name, rows in sets.items():
        progress.start(name, len(rows))
        found: list[Row] = []
        for group in _answers(rows):
            began = time.perf_counter()
            report = _report(verifier, group)
            seconds["local"] += time.perf_counter() - began
            everything = _settled(Cascade(verifier, judge, band=(0.0, 1.0)), report)
            real = _settled(Cascade(verifier, judge), report)
            for system, result in (("judge everything", everything), ("cascade, review only", real)):
                spent[system] = spent[system] + result.usage
                seconds[system] += result.seconds
            left += sum(not decision.settled for decision in everything.decisions)
            pairs = zip(group, report.claims, everything.report.claims, real.report.claims, strict=True)
            for row, local, judged, again in pairs:
                chosen = judged if _inside(local, None) else local
                differing += again.verdict is not chosen.verdict
                tokens = estimate_tokens(row.premise) + estimate_tokens(row.claim)
                found.append(Row(row, local, judged, tokens))
            progress.update(len(found))
        for system, one in _systems(found).items():
            measured.setdefault(system, {})[name] = one
    result = {
        "settings": {
            "limit": options.limit,
            "seed": options.seed,
            "threads": options.threads,
            "rows": {name: len(rows) for name, rows in sets.items()},
        },
        "hardware": hardware.describe(threads=options.threads),
        "judge": {
            "model": judge.model,
            "prompt_version": judge.prompt_version,
            "simulated": options.simulate is not None,
            "stated_accuracy": options.simulate,
            "left_undecided": left,
        },
        "systems": _figures(measured, seed=options.seed),
        "usage": {system: _usage(usage) for system, usage in spent.items()},
        "seconds": {system: round(value, 2) for system, value in seconds.items()},
        "cascade_differs_from_its_parts": differing,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.json, result)
    print("\n".join(_table(result)))
    # A real model may say something else when it is asked again; a simulated one may not.
    return 1 if options.simulate is not None and differing else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cascade.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with grounding/")
    parser.add_argument("--json", type=Path, required=True, help="file to write the figures to")
    parser.add_argument("--limit", type=int, default=100, help="rows a set; 0 takes all (default 100)")
    parser.add_argument("--sets", help="comma-separated names; all by default")
    parser.add_argument("--judge-url", help="OpenAI-compatible server, up to /v1")
    parser.add_argument("--judge-model", help="name of the model there")
    parser.add_argument("--decision", action="store_true", help="it is a decision model")
    parser.add_argument("--simulate", type=float, metavar="ACCURACY", help="simulate a judge, 0.5 to 1")
    parser.add_argument("--threads", type=int, help="of the local model; all usable cores by default")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _load(options: argparse.Namespace) -> dict[str, list[GroundingRow]]:
    paths = discover(options.data, "grounding")
    wanted = [name.strip() for name in (options.sets or "").split(",") if name.strip()] or list(paths)
    if not paths or set(wanted) - set(paths):
        raise ValueError(f"sets in {options.data}: {', '.join(paths) or 'none'}; wanted: {', '.join(wanted)}")
    return {
        name: sample(
            load_grounding(paths[name]),
            options.limit,
            seed=options.seed,
            name=name,
            stratum=lambda row: row.stratum,
        )
        for name in wanted
    }


def _judge(options: argparse.Namespace, rows: Sequence[GroundingRow]) -> Judge:
    if options.simulate is not None:
        if options.judge_url or not 0.5 <= options.simulate <= 1:
            raise ValueError("--simulate takes an accuracy from 0.5 to 1, and excludes --judge-url")
        # Everything fits: the oracle knows a claim by its whole source.
        oracle = SimulatedJudge(rows, options.simulate, options.seed)
        return Judge(oracle, max_context_tokens=10**9, control="never")
    if not options.judge_url or not options.judge_model:
        raise ValueError("name an endpoint with --judge-url and --judge-model, or say --simulate ACCURACY")
    kind = DecisionEndpoint if options.decision else ChatEndpoint
    return Judge(kind(options.judge_model, base_url=options.judge_url))


def _answers(rows: Sequence[GroundingRow]) -> list[list[GroundingRow]]:
    """Claims about the same premise as one answer, a few at a time."""
    together: dict[str, list[GroundingRow]] = {}
    for row in rows:
        together.setdefault(row.premise, []).append(row)
    return [
        group[at : at + CLAIMS_PER_ANSWER]
        for group in together.values()
        for at in range(0, len(group), CLAIMS_PER_ANSWER)
    ]


def _report(verifier: Verifier, rows: Sequence[GroundingRow]) -> TruthfulnessReport:
    """The report of an answer whose claims are given, one a line."""
    claims = []
    start = 0
    for claim in verifier.check_claims([row.claim for row in rows], [rows[0].premise]):
        claims.append(replace(claim, start=start, end=start + len(claim.text)))
        start += len(claim.text) + 1
    return summarise(
        "\n".join(row.claim for row in rows),
        None,
        (Source("1", rows[0].premise),),
        tuple(claims),
        (),
        reasons=[],
        mode="optional",
        model="local",
        seconds=0.0,
    )


def _settled(cascade: Cascade, report: TruthfulnessReport) -> CascadeReport:
    from surefoot.endpoints.loop import run_sync

    return run_sync(cascade.settle(report))


def _inside(claim: Claim, band: tuple[float, float] | None) -> bool:
    if claim.verdict is Verdict.REVIEW:
        return True
    return band is not None and claim.support is not None and band[0] <= claim.support <= band[1]


def _systems(rows: Sequence[Row]) -> dict[str, Measured]:
    sent: dict[str, list[bool]] = {"local": [False] * len(rows), "judge everything": [True] * len(rows)}
    for system, band in BANDS.items():
        sent[system] = [_inside(row.local, band) for row in rows]
    labels = np.array([row.data.supported for row in rows])
    groups = tuple(row.data.group for row in rows)
    tokens = np.array([row.tokens for row in rows], dtype=np.float64)
    return {
        system: Measured(
            sent=np.array(chosen),
            tokens=tokens,
            supported=np.array(
                [
                    outcome_of(row.judged if asked else row.local).supported
                    for row, asked in zip(rows, chosen, strict=True)
                ]
            ),
            labels=labels,
            groups=groups,
        )
        for system, chosen in sent.items()
    }


def _rates(one: Measured, weights: Vector) -> tuple[Vector, Vector]:
    """False pass and false strip of each resample."""
    wrong, right = weights * ~one.labels, weights * one.labels
    passed = ratio((wrong * one.supported).sum(axis=1), wrong.sum(axis=1))
    stripped = ratio((right * ~one.supported).sum(axis=1), right.sum(axis=1))
    return passed, stripped


def _figures(measured: Mapping[str, Mapping[str, Measured]], *, seed: int) -> dict[str, Any]:
    resampled: dict[str, Vector] = {}
    found: dict[str, Any] = {}
    for system, sets in measured.items():
        once = {name: _rates(one, np.ones((1, one.labels.size))) for name, one in sets.items()}
        many = [_rates(one, draw(one.groups, seed=seed, name=name)) for name, one in sets.items()]
        accuracy = [1 - (passed + stripped) / 2 for passed, stripped in once.values()]
        resampled[system] = mean_of([1 - (passed + stripped) / 2 for passed, stripped in many])
        rows = sum(one.labels.size for one in sets.values())
        tokens = sum(float(one.tokens.sum()) for one in sets.values())
        found[system] = {
            "claims_sent": sum(int(one.sent.sum()) for one in sets.values()) / max(rows, 1),
            "tokens_sent": sum(float(one.tokens[one.sent].sum()) for one in sets.values()) / max(tokens, 1.0),
            "balanced_accuracy": _plain(mean_of(accuracy)),
            "balanced_accuracy.ci": interval(resampled[system]),
            "false_pass": _plain(mean_of([passed for passed, _ in once.values()])),
            "false_strip": _plain(mean_of([stripped for _, stripped in once.values()])),
            "sets": {name: _plain(value) for name, value in zip(sets, accuracy, strict=True)},
        }
    everything = found["judge everything"]["balanced_accuracy"]
    for system, one in found.items():
        own = one["balanced_accuracy"]
        one["loss_to_judging_everything"] = (
            None if own is None or everything is None else round(everything - own, 6)
        )
        one["loss_to_judging_everything.ci"] = interval(resampled["judge everything"] - resampled[system])
    return found


def _plain(value: Vector) -> float | None:
    return None if np.isnan(value[0]) else round(float(value[0]), 6)


def _usage(usage: Usage) -> dict[str, Any]:
    return {"calls": usage.calls, "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _table(result: Mapping[str, Any]) -> list[str]:
    judge = result["judge"]
    simulated = "SIMULATION, not a model: " if judge["simulated"] else ""
    lines = [
        f"{simulated}{judge['model']}; {sum(result['settings']['rows'].values())} claims",
        "",
        "| system | claims sent | tokens sent | balanced accuracy | false pass | false strip | loss |",
        "|---|---|---|---|---|---|---|",
    ]
    for system, one in result["systems"].items():
        low_high = one["balanced_accuracy.ci"]
        interval_text = "" if low_high is None else f" [{low_high[0]:.1%}, {low_high[1]:.1%}]"
        cells = [
            system,
            f"{one['claims_sent']:.0%}",
            f"{one['tokens_sent']:.0%}",
            _percent(one["balanced_accuracy"]) + interval_text,
            _percent(one["false_pass"]),
            _percent(one["false_strip"]),
            _percent(one["loss_to_judging_everything"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _percent(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1%}"


if __name__ == "__main__":
    sys.exit(main())
