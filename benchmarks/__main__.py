"""Measure surefoot: ``python -m benchmarks NAME [options]``; without a name, the list of benchmarks."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

if __package__ in (None, ""):
    sys.exit("run it from the checkout as: python -m benchmarks")

from benchmarks.record import hardware, weights, write_json
from surefoot.errors import SurefootError

__all__ = ["BENCHMARKS", "main"]


class Benchmark(NamedTuple):
    """A module of this package, and how its published result is made.

    Attributes:
        weights: what the figures depend on besides the code, see :func:`benchmarks.record.weights`.
        options: those that the published result was made with.
    """

    module: str
    about: str
    weights: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


VERDICTS = ("verify", "verify decision", "static")
ORDER = ("embed", "rerank", "rerank decision", "static")
STEPS = ("--systems", "surefoot,ablation")
SIMULATED = ("--simulate", "0.85", "--limit", "20")
RERANKED = ("--rerank", "--limit", "60", "--only", "cisi,medline1033,npl,trecqa,wikiqa")
BENCHMARKS = {
    "verify": Benchmark("verify", "speed of a check, next to one call per claim and passage", VERDICTS[::2]),
    "quality": Benchmark("quality", "false pass, false strip and AUROC, next to simple rules", VERDICTS),
    "ablation": Benchmark("quality", "the same with single steps switched off", VERDICTS, STEPS),
    "cascade": Benchmark("cascade", "what a simulated judge adds", VERDICTS, SIMULATED),
    "rerank": Benchmark("rerank", "speed of reranking, next to sentence-transformers", ("rerank", "embed")),
    "retrieval": Benchmark("retrieval", "how well passages are found", ("embed",), ("--limit", "400")),
    "reranked": Benchmark("retrieval", "how well passages are found and reranked", ORDER, RERANKED),
    "reranked-int8": Benchmark("retrieval", "the same in int8 arithmetic", ORDER, (*RERANKED, "--int8")),
    "evidence": Benchmark("evidence", "how often the pipeline declines, and what it quotes", ORDER),
    "index": Benchmark("index", "time and memory of an index of 100,000 passages", ("embed", "static")),
    "splitters": Benchmark("splitters", "sentence splitters on the golden set"),
    "endpoints": Benchmark("endpoints", "what the client of an endpoint adds to concurrent calls"),
    "judge": Benchmark("endpoints", "the same for judgements with their controls", (), ("--judge",)),
    # Only the judge's figures are published, and it uses no weights of ours.
    "llm": Benchmark("llm", "judge, cascade and pipeline with a small real model"),
}
"""Name -> benchmark. Its published result is ``benchmarks/results/NAME.json``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark; 0 if everything was measured, 1 if a part failed, 2 for a wrong request."""
    name, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or [""]
    if name not in BENCHMARKS:
        lines = [f"  {known:14}{benchmark.about}" for known, benchmark in BENCHMARKS.items()]
        print(
            "\n".join(["benchmarks, see docs/benchmarks.md:", *lines]),
            file=sys.stderr if name else sys.stdout,
        )
        return 2 if name and name not in ("-h", "--help") else 0
    chosen = BENCHMARKS[name]
    module = importlib.import_module(f"benchmarks.{chosen.module}")
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, default=Path("out", f"{name}.json"), help="result (%(default)s)")
    parser.add_argument("--threads", type=int, help="of every model; all usable cores by default")
    parser.add_argument("--seed", type=int, default=0)
    if wanted := getattr(module, "DATA", None):
        parser.add_argument("--data", type=Path, required=True, help=f"folder with {wanted}")
        parser.add_argument(
            "--corpora", type=Path, action="append", default=[], help="where else a corpus may lie"
        )
    module.options(parser)
    options = parser.parse_args([*chosen.options, *rest])
    # No folder of this machine stands in a result.
    settings = {key: value for key, value in vars(options).items() if not isinstance(value, Path | list)}
    result = {"settings": settings, "hardware": hardware(), "weights": weights(chosen.weights)}
    try:
        result |= module.measure(options)
    except (OSError, ValueError, ImportError, SurefootError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    write_json(options.json, result)
    print(module.show(result))
    print(f"\n{options.json}", file=sys.stderr)
    return 1 if result.get("errors") else 0


if __name__ == "__main__":
    sys.exit(main())
