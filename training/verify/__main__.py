"""The verifier, from labelled sets to a model folder.

    python -m training.verify data --train DIR --dev DIR --out WORK
    python -m training.verify train --data WORK/human.jsonl.gz --init ENCODER --out WORK/trunk
    python -m training.verify label --teacher WORK/teacher/checkpoint --data WORK/human.jsonl.gz \
        --out WORK/taught
    python -m training.verify average --models WORK/trunk/checkpoint WORK/branch/checkpoint --out WORK/mean
    python -m training.verify calibrate --checkpoint WORK/trunk/checkpoint --held WORK/held.jsonl.gz \
        --development WORK/measured.jsonl.gz --out decision.json
    python -m training.verify evaluate --checkpoint WORK/trunk/checkpoint --items WORK/measured.jsonl.gz \
        --decision decision.json
    python -m training.verify export --checkpoint WORK/trunk/checkpoint --decision decision.json

Each command has ``--help``. Training resumes where it was stopped, gives the same weights for the same seed
and number of threads, and uses a GPU where there is one. Nothing is trained on the sets that ``--dev``
names; ``calibrate`` takes the decision's five numbers from held-out training claims and from one half of
them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    options = _parser().parse_args(arguments)
    return int(options.run(options) or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.verify",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _data_parser(commands.add_parser("data", help="make pairs, held-out claims, and the measured sample"))
    _train_parser(commands.add_parser("train", help="train, or go on with a run"))
    run = commands.add_parser("run", help="a long training in phases, by a plan; goes on where it was")
    run.set_defaults(run=_run)
    run.add_argument("--resume", type=Path, required=True, metavar="DIR", help="folder with plan.json")
    run.add_argument("--minutes", type=float, default=0, help="stop after so long, resumable")
    run.add_argument("--device", default="auto", help="auto, cpu or cuda")
    _label_parser(commands.add_parser("label", help="a larger network's opinion of pairs, to learn from"))
    average = commands.add_parser("average", help="mean of the weights of checkpoints")
    average.set_defaults(run=_average)
    average.add_argument("--models", type=Path, nargs="+", required=True, help="folders of checkpoints")
    average.add_argument("--shares", type=float, nargs="+", help="of each; equal ones by default")
    average.add_argument("--out", type=Path, required=True, help="folder to write; must not exist")
    for name, run, text in (
        ("calibrate", _calibrate, "fit the decision on held-out training data"),
        ("evaluate", _evaluate, "figures of a checkpoint, by set"),
    ):
        command = commands.add_parser(name, help=text)
        command.set_defaults(run=run)
        command.add_argument("--checkpoint", type=Path, required=True)
        command.add_argument("--device", default="auto", help="auto, cpu or cuda")
        command.add_argument("--threads", type=int, default=1)
        command.add_argument("--logits", type=Path, help="where to keep the logits; read if it exists")
        command.add_argument("--limit", type=int, default=0, help="most claims a set; 0 is all")
        if name == "calibrate":
            command.add_argument("--held", type=Path, required=True, help="held.jsonl.gz of the data command")
            command.add_argument("--out", type=Path, required=True, help="JSON to write")
            command.add_argument("--development", type=Path, required=True, help="measured.jsonl.gz")
            command.add_argument("--development-logits", type=Path, help="as --logits, for --development")
            command.add_argument("--false-pass", type=float, default=0.1, help="of the upper threshold")
        else:
            command.add_argument(
                "--items", type=Path, required=True, help="measured.jsonl.gz, or held.jsonl.gz"
            )
            command.add_argument("--decision", type=Path, help="JSON of the calibrate command")
            command.add_argument("--json", type=Path, help="file to write the figures to")
    export = commands.add_parser("export", help="make the bundled model with training/export.py")
    export.set_defaults(run=_export)
    export.add_argument("--checkpoint", type=Path, required=True)
    export.add_argument("--name", default="verify")
    export.add_argument("--out", type=Path, default=Path("src/surefoot/assets/models"))
    export.add_argument("--card", type=Path, help="JSON with licence and provenance")
    export.add_argument("--decision", type=Path, help="JSON of the calibrate command")
    export.add_argument(
        "--pairs", type=Path, nargs="*", default=[], help="pairs for the loss of int8 storage"
    )
    return parser


def _data_parser(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_data)
    parser.add_argument("--train", type=Path, required=True, help="folder with NAME.jsonl.gz")
    parser.add_argument("--dev", type=Path, help="folder with grounding/ and answer/, to measure on")
    parser.add_argument("--exclude", type=Path, nargs="*", default=[], help="more folders not to train on")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of every share; below 1 for a try")
    parser.add_argument("--rows", type=int, default=120, help="measured claims of each grounding set")
    parser.add_argument("--answers", type=int, default=150, help="measured answers of each answer set")
    parser.add_argument("--processes", type=int, default=1, help="that make pairs")


def _train_parser(parser: argparse.ArgumentParser) -> None:
    from training.verify.learn import Settings

    parser.set_defaults(run=_train)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files of pairs")
    parser.add_argument("--init", type=Path, required=True, help="checkpoint or encoder to start from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long, resumable")
    parser.add_argument("--save-every", type=float, default=10, help="minutes")
    for field in dataclasses.fields(Settings):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(field.default),
            default=field.default,
            help=f"default {field.default}",
        )
    _part_option(parser)
    parser.add_argument("--weights", nargs="*", default=[], help="SOURCE=WEIGHT of the loss, e.g. defacto=2")


def _label_parser(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_label)
    parser.add_argument("--teacher", type=Path, required=True, help="checkpoint of a BERT or an MPNet")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files of pairs")
    parser.add_argument("--out", type=Path, required=True, help="folder; a stopped run goes on in it")
    _part_option(parser)
    parser.add_argument("--most", type=int, default=192, help="tokens of a pair")
    parser.add_argument("--limit", type=int, default=0, help="most pairs; 0 is all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")


def _part_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--part",
        type=float,
        nargs=2,
        default=(0.0, 1.0),
        metavar=("FROM", "TO"),
        help="only this part of the pairs, drawn by their texts: 0 0.4 for a teacher, 0.4 1 to ask it about",
    )


def _data(options: argparse.Namespace) -> None:
    from training.verify.data import build

    counts = build(
        options.train,
        options.out,
        dev=options.dev,
        exclude=options.exclude,
        seed=options.seed,
        scale=options.scale,
        rows=options.rows,
        answers=options.answers,
        processes=options.processes,
    )
    print(json.dumps(counts))


def _train(options: argparse.Namespace) -> None:
    from training.verify.learn import Settings, train

    settings = Settings(
        **{field.name: getattr(options, field.name) for field in dataclasses.fields(Settings)}
    )
    weights = {name: float(value) for name, _, value in (item.partition("=") for item in options.weights)}
    checkpoint, _ = train(
        options.data,
        options.init,
        options.out,
        settings,
        source_weights=weights,
        part=tuple(options.part),
        device=options.device,
        threads=options.threads,
        minutes=options.minutes,
        save_every=options.save_every,
    )
    print(checkpoint)


def _run(options: argparse.Namespace) -> None:
    from training.verify.run import run

    print(run(options.resume, minutes=options.minutes, device=options.device))


def _label(options: argparse.Namespace) -> None:
    import torch
    from training.verify.teach import label

    torch.set_num_threads(options.threads)
    count = label(
        options.teacher,
        options.data,
        options.out,
        part=tuple(options.part),
        most=options.most,
        limit=options.limit,
        seed=options.seed,
        device=options.device,
        precision=options.precision,
    )
    print(json.dumps({"pairs": count}))


def _average(options: argparse.Namespace) -> None:
    from safetensors.torch import save_file
    from training.soup import mean_weights

    made = mean_weights(options.models, options.shares)
    options.out.mkdir(parents=True)
    for path in options.models[0].glob("*.json"):
        shutil.copyfile(path, options.out / path.name)
    save_file(made, options.out / "model.safetensors", metadata={"format": "pt"})
    print(options.out)


def _scored(
    options: argparse.Namespace, path: Path, kept_logits: Path | None
) -> tuple[list[Any], np.ndarray]:
    import torch
    from training.verify.measured import read_items
    from training.verify.score import score_items

    torch.set_num_threads(options.threads)
    items = read_items(path)
    if options.limit:
        seen: dict[str, int] = {}
        kept = []
        for item in items:
            seen[item.set] = seen.get(item.set, 0) + 1
            if seen[item.set] <= options.limit:
                kept.append(item)
        items = kept
    if kept_logits and kept_logits.is_file():
        logits = np.load(kept_logits, allow_pickle=False)
        if logits.shape != (len(items), 3, 3):
            raise SystemExit(f"{kept_logits} belongs to other claims, or to fewer premises of each")
    else:
        logits = score_items(options.checkpoint, items, device=options.device)
        if kept_logits:
            np.save(kept_logits, logits)
    return items, logits


def _calibrate(options: argparse.Namespace) -> None:
    from training.verify.decision import calibrated

    found = calibrated(
        _scored(options, options.held, options.logits),
        _scored(options, options.development, options.development_logits),
        false_pass=options.false_pass,
    )
    options.out.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    print(json.dumps(found, indent=2))


def _evaluate(options: argparse.Namespace) -> None:
    from training.verify.report import evaluated, shown

    items, logits = _scored(options, options.items, options.logits)
    decision = json.loads(options.decision.read_text("utf-8")) if options.decision else None
    found = evaluated(items, logits, decision and decision["calibration"]["decision"])
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    print(shown(found))


def _export(options: argparse.Namespace) -> int:
    card = json.loads(options.card.read_text("utf-8")) if options.card else {}
    if options.decision:
        card["calibration"] = json.loads(options.decision.read_text("utf-8"))["calibration"]
    options.out.mkdir(parents=True, exist_ok=True)
    joined = options.checkpoint / "card.json"
    joined.write_text(json.dumps(card, indent=2) + "\n", "utf-8")
    script = Path(__file__).resolve().parent.parent / "export.py"
    command = [sys.executable, str(script), "--checkpoint", str(options.checkpoint), "--task", "nli"]
    command += ["--name", options.name, "--out", str(options.out)]
    if card:
        command += ["--card", str(joined)]
    if options.pairs:
        command += ["--data", *map(str, options.pairs)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
