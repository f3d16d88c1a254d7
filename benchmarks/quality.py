"""How good the verdicts are: surefoot next to simpler systems, on labelled claims and answers.

    python benchmarks/quality.py --data DIR --json out/quality.json --checkpoint FOLDER

Writes flat keys: ``SET.balanced_accuracy``, ``SET.auroc``, ``SET.false_pass``, ``SET.false_strip``,
``mean.balanced_accuracy`` and so on for surefoot; the same with ``SYSTEM/`` in front for the others; each
with its 95% interval under ``KEY.ci``. Undefined figures are null.

How a verdict counts
    A row is positive if its label is ``supported``; ``contradicted`` and ``unsupported`` are negative. A
    claim counts as supported if its verdict is ``supported``, or is ``review`` with support >= 0.5; keys that
    end in ``_strict`` count every ``review`` as not supported. AUROC ranks by ``support``. A claim that could
    not be checked, or was held not to be a claim, counts as not supported with score 0, and in ``abstained``.
Thresholds
    Every system is measured at the threshold it ships with. Keys that end in ``_loso`` decide each set at the
    threshold that is best on average over the *other* sets, for every system alike (leave one set out; sets
    that share claims are left out together). Nothing is chosen on the set that is measured.
Sampling
    By default at most 200 rows of a set, in proportion to label and subset, drawn with ``--seed``;
    ``--limit 0`` takes all.
Systems
    always_supported, unseen_share, straightforward, exhaustive (surefoot, every window of the source),
    surefoot; straightforward_nocut (without its cuts at 512 and 256 characters) on request. With
    ``--ablation`` also surefoot with one step switched off at a time.

A run can be stopped and started again: finished parts are kept in ``--work`` and used as long as data,
settings, code and model are the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a script. Its own folder must not stay on the path: datasets.py there would hide the package of
    # that name, which sentence-transformers imports.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import hardware
from benchmarks.answer_figures import answer_figures
from benchmarks.datasets import (
    claims_shared,
    discover,
    file_digest,
    load_answers,
    load_grounding,
    sample,
)
from benchmarks.figures import (
    Figures,
    GroundingResult,
    differences,
    families,
    grounding_figures,
    leave_one_out,
    mean_figures,
    summed_up,
)
from benchmarks.runs import DataSet, Progress, outcomes, write_json
from benchmarks.systems import DEFAULT_SYSTEMS, SYSTEMS, ablations, build
from benchmarks.tables import tables

__all__ = ["main"]

DEFAULT_LIMIT = 200
SAME_CLAIMS, SOME_CLAIMS = 0.5, 0.1
RESERVED = frozenset({"mean", "mean_distinct"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 0 if everything was measured, 1 if a part failed, 2 if asked wrongly."""
    options = _parser().parse_args(arguments)
    try:
        data = _load(options)
        names = _system_names(options)
    except (OSError, ValueError, ImportError) as error:
        sys.stderr.write(f"quality.py: {error}\n")
        return 2
    work = options.work or options.json.with_suffix(".work")
    work.mkdir(parents=True, exist_ok=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    sets = [part for part in data if part.size]
    progress = Progress(len(names) * len(sets))
    result: dict[str, Any] = {
        "settings": {
            **{key: getattr(options, key) for key in ("limit", "seed", "threads", "model")},
            "checkpoint": options.checkpoint.name if options.checkpoint else None,
            "rows": {part.name: [part.size, part.total] for part in data},
        },
        "hardware": hardware.describe(threads=options.threads),
        "systems": {},
        "seconds": {},
        "errors": {},
    }
    grounding: dict[str, dict[str, GroundingResult]] = {}
    figures: dict[str, Figures] = {}
    for name in names:
        figures[name], grounding[name] = {}, {}
        try:
            system = build(name, model=options.model, checkpoint=options.checkpoint, threads=options.threads)
        except Exception as error:  # noqa: BLE001 - one system that cannot start must not cost the others
            result["errors"][name] = f"{type(error).__name__}: {error}"
            sys.stderr.write(f"{name} cannot start: {error}\n")
            continue
        result["systems"][name] = system.describe()
        for part in sets:
            progress.start(f"{name} on {part.name}", part.size)
            try:
                said, seconds = outcomes(
                    system, part, checkpoint=options.checkpoint, work=work, progress=progress
                )
            except Exception as error:  # noqa: BLE001 - as above; the part is named and the exit code is 1
                result["errors"][f"{name}/{part.name}"] = f"{type(error).__name__}: {error}"
                progress.note(f"failed: {type(error).__name__}: {error}")
                continue
            result["seconds"][f"{name}/{part.name}"] = round(seconds, 2)
            if part.grounding:
                grounding[name][part.name] = summed_up(
                    part.grounding, [said_one.outcome for (said_one,) in said]
                )
            else:
                figures[name].update(answer_figures(part.name, part.answers, said, seed=options.seed))
    _grounding_figures(grounding, figures, sets, seed=options.seed)
    for name, found in figures.items():
        prefix = "" if name == "surefoot" else f"{name}/"
        result.update({prefix + key: value for key, value in found.items()})
    write_json(options.json, result)
    print("\n".join(tables(result, names, sets)))
    return 1 if result["errors"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quality.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with grounding/ and answer/")
    parser.add_argument("--json", type=Path, required=True, help="file to write the figures to")
    parser.add_argument(
        "--limit", type=int, default=DEFAULT_LIMIT, help="rows a set; 0 takes all (default 200)"
    )
    parser.add_argument("--sets", help="comma-separated names; all by default")
    parser.add_argument("--systems", help=f"comma-separated, of: {', '.join(SYSTEMS)}, ablation_NAME")
    parser.add_argument(
        "--ablation", action="store_true", help="also surefoot with single steps switched off"
    )
    parser.add_argument("--model", help="NLI model for surefoot; the bundled one by default")
    parser.add_argument(
        "--checkpoint", type=Path, help="PyTorch folder with the same weights, for the baseline"
    )
    parser.add_argument("--threads", type=int, help="threads for every model; all usable cores by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder for finished parts; next to the JSON by default")
    return parser


def _system_names(options: argparse.Namespace) -> list[str]:
    names = _split(options.systems) or list(DEFAULT_SYSTEMS)
    asked = options.ablation or any(name.startswith("ablation_") for name in names)
    steps = [f"ablation_{step}" for step in ablations()] if asked else []
    if options.ablation and not steps:
        raise ValueError("this version of surefoot has no steps to switch off")
    unknown = sorted(set(names) - {*SYSTEMS, *steps})
    if unknown:
        raise ValueError(f"no such system: {', '.join(unknown)}; there are {', '.join([*SYSTEMS, *steps])}")
    return list(dict.fromkeys([*names, *(steps if options.ablation else [])]))


def _load(options: argparse.Namespace) -> list[DataSet]:
    if options.limit < 0 or (options.threads is not None and options.threads < 1):
        raise ValueError("--limit must not be negative, --threads must be at least 1")
    if options.checkpoint is not None and not options.checkpoint.is_dir():
        raise ValueError(f"--checkpoint: {options.checkpoint} is no folder")
    kinds = {kind: discover(options.data, kind) for kind in ("grounding", "answer")}
    known = [*kinds["grounding"], *kinds["answer"]]
    if not known:
        raise ValueError(f"{options.data} has no grounding/*.jsonl.gz and no answer/*.jsonl.gz")
    clashes = sorted({name for name in known if known.count(name) > 1} | (RESERVED & set(known)))
    if clashes:
        raise ValueError(f"a set cannot have this name, or two sets have it: {', '.join(clashes)}")
    wanted = _split(options.sets) or known
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise ValueError(f"no such set: {', '.join(unknown)}; there are {', '.join(known)}")
    found = []
    for kind, paths in kinds.items():
        for name, path in paths.items():
            if name not in wanted:
                continue
            rows: list[Any] = load_grounding(path) if kind == "grounding" else load_answers(path)
            taken = sample(rows, options.limit, seed=options.seed, name=name, stratum=lambda row: row.stratum)
            found.append(
                DataSet(
                    name=name,
                    digest=file_digest(path),
                    grounding=taken if kind == "grounding" else [],
                    answers=taken if kind == "answer" else [],
                    total=len(rows),
                    limit=options.limit,
                    seed=options.seed,
                )
            )
    return found


def _split(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _grounding_figures(
    results: Mapping[str, dict[str, GroundingResult]],
    figures: Mapping[str, Figures],
    sets: Sequence[DataSet],
    *,
    seed: int,
) -> None:
    """Add the figures of the grounding sets to ``figures``, system by system."""
    rows = {part.name: part.grounding for part in sets if part.grounding}
    shared = claims_shared(rows)
    relatives = families(shared, list(rows), at_least=SOME_CLAIMS)
    same = families(shared, list(rows), at_least=SAME_CLAIMS)
    decided = {name: leave_one_out(found, relatives) for name, found in results.items()}
    for name, found in decided.items():
        if not found:
            continue
        sys.stderr.write(f"intervals for {name}\n")
        for set_name, result in found.items():
            figures[name].update(grounding_figures(set_name, result, seed=seed))
        figures[name].update(mean_figures(found, same, seed=seed))
        if name != "surefoot" and decided.get("surefoot"):
            figures[name].update(differences(decided["surefoot"], found, seed=seed))


if __name__ == "__main__":
    sys.exit(main())
