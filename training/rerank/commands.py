"""The commands and their options."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

__all__ = ["register"]


def say(line: str) -> None:
    """Progress goes to standard error, so that results can be piped."""
    print(line, file=sys.stderr, flush=True)


def register(commands: Any) -> None:
    """Add every command."""
    _data(commands)
    _train(commands)
    _average(commands)
    _evaluate(commands)
    _fuse(commands)
    _export(commands)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (1)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (auto)")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (1)")


def _setup(options: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)


def _data(commands: Any) -> None:
    parser = commands.add_parser("data", help="build the training pool", description=_run_data.__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with retrieval/ and grounding/ to train on"
    )
    parser.add_argument(
        "--exclude", type=Path, nargs="*", default=[], help="folders with collections kept out"
    )
    parser.add_argument("--embedder", type=Path, required=True, help="checkpoint of the sentence embedder")
    parser.add_argument("--out", type=Path, required=True, help="file of groups to write, JSON lines")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the queries of every source (1)")
    _common(parser)
    parser.set_defaults(run=_run_data)


def _run_data(options: argparse.Namespace) -> int:
    """Queries, each with a relevant passage and negatives mined by BM25 and the embedder."""
    _setup(options)
    from training.rerank.first_stage import Embedder
    from training.rerank.judged import Seen, load_collections
    from training.rerank.pool import build

    kept_out = load_collections([options.data / "retrieval", *options.exclude])
    inside = {path.name.removesuffix(".gz") for folder in options.exclude for path in folder.iterdir()}
    outside = [c for c in kept_out if f"{c.name}.jsonl" in inside or f"{c.name}.queries.jsonl" in inside]
    seen = Seen(text for c in outside for text in (*c.passages, *c.queries))
    say(f"kept out: {', '.join(c.name for c in outside) or 'nothing'}")
    embedder = Embedder(
        options.embedder, cache=options.out.parent / "vectors", device=options.device, length=128
    )
    count = build(
        options.data,
        options.out,
        seen=seen,
        embedder=embedder,
        scale=options.scale,
        seed=options.seed,
        say=say,
    )
    say(f"{count} groups in {options.out}")
    return 0


RECIPE = (
    ("steps", int, 1000, "updates in all"),
    ("groups", int, 4, "groups per update"),
    ("negatives", int, 5, "negatives per group"),
    ("length", int, 128, "most tokens of a pair"),
    ("rate", float, 1e-4, "highest learning rate of the encoder"),
    ("head_rate", float, 5e-4, "of the head"),
    ("distil", float, 0.4, "share of the distillation in the loss"),
    ("level", float, 0.1, "weight of the binary cross-entropy"),
    ("frozen", int, 0, "encoder layers left as they are"),
    ("average", float, 0.99, "decay of the running average"),
    ("warmup", int, 40, "steps until the highest rate"),
    ("precision", str, "float32", "of the products: float32 or bfloat16"),
)


def _train(commands: Any) -> None:
    parser = commands.add_parser("train", help="train or go on training", description=_run_train.__doc__)
    parser.add_argument("--init", type=Path, required=True, help="checkpoint to start from")
    parser.add_argument("--data", type=Path, required=True, help="groups written by the command data")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the checkpoint; a run there is continued"
    )
    parser.add_argument("--sources", nargs="*", help="only groups of these sources")
    parser.add_argument(
        "--skip-longer", type=int, default=0, help="skip groups whose relevant pair has more tokens"
    )
    parser.add_argument("--max-minutes", type=float, default=1e9, help="stop after this time, saved")
    parser.add_argument("--save-minutes", type=float, default=8.0, help="between two checkpoints (8)")
    for name, kind, default, text in RECIPE:
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, default=default, help=f"{text} ({default})"
        )
    _common(parser)
    parser.set_defaults(run=_run_train)


def _run_train(options: argparse.Namespace) -> int:
    """A cross-encoder from a checkpoint and groups; interrupted runs are continued by the same command."""
    _setup(options)
    from training.rerank.pool import read_groups
    from training.rerank.train import Recipe, short_enough, train

    groups = [group for group in read_groups(options.data) if not group.held]
    if options.sources:
        groups = [group for group in groups if group.source in options.sources]
    if options.skip_longer:
        groups = short_enough(groups, options.init, options.skip_longer)
    say(f"{len(groups)} groups")
    recipe = Recipe(seed=options.seed, **{name: getattr(options, name) for name, *_ in RECIPE})
    limits = {"max_minutes": options.max_minutes, "save_minutes": options.save_minutes}
    step = train(groups, options.init, options.out, recipe, device=options.device, say=say, **limits)
    say(f"step {step} in {options.out}")
    return 0


def _average(commands: Any) -> None:
    parser = commands.add_parser("average", help="mean of checkpoints", description=_run_average.__doc__)
    parser.add_argument("--models", type=Path, nargs="+", required=True, help="folders of checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    _common(parser)
    parser.set_defaults(run=_run_average)


def _run_average(options: argparse.Namespace) -> int:
    """The mean of the weights of runs from one checkpoint on different data or seeds."""
    from training.rerank.average import average

    average(options.models, options.out)
    return 0


def _evaluate(commands: Any) -> None:
    parser = commands.add_parser("evaluate", help="measure on collections", description=_run_evaluate.__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="folders with collections")
    parser.add_argument("--collections", nargs="*", help="only these")
    parser.add_argument("--model", type=Path, help="checkpoint or exported folder; without it baselines only")
    parser.add_argument("--weights", type=Path, help="JSON written by the command fuse")
    parser.add_argument("--queries", type=int, default=50, help="most queries of a collection (50)")
    parser.add_argument(
        "--most-passages", type=int, default=10**9, help="cut larger corpora to a part of this size"
    )
    parser.add_argument("--depth", type=int, default=100, help="candidates of each first stage (100)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    _measured(parser)
    parser.set_defaults(run=_run_evaluate)


def _measured(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--embedder", type=Path, required=True, help="checkpoint of the sentence embedder")
    parser.add_argument("--length", type=int, default=256, help="most tokens of a pair (256)")
    parser.add_argument(
        "--windows", action="store_true", help="best window of a longer passage, instead of a cut"
    )
    parser.add_argument("--cache", type=Path, help="folder for vectors and logits")
    _common(parser)


def _run_evaluate(options: argparse.Namespace) -> int:
    """nDCG@10 of BM25's and the embedder's lists as retrieved and reranked, with 95% bootstrap intervals."""
    _setup(options)
    from training.rerank.evaluate import report, table
    from training.rerank.features import collection_lists
    from training.rerank.first_stage import Embedder
    from training.rerank.fusion import Weights
    from training.rerank.judged import load_collections, sample

    vectors = options.cache / "vectors" if options.cache else None
    embedder = Embedder(options.embedder, cache=vectors, device=options.device)
    lists, sizes = [], {}
    for collection in load_collections(options.data, options.collections):
        part = sample(collection, options.queries, options.most_passages)
        made = collection_lists(part, embedder, depth=options.depth)
        _score(options, made)
        lists += made
        sizes[collection.name] = {"passages": len(part.passages), "of": len(collection.passages)}
        say(f"{collection.name}: {len(made)} queries, {len(part.passages)} passages")
    fused = json.loads(options.weights.read_text("utf-8"))["systems"] if options.weights else {}
    systems = {"reranked": Weights()} if options.model else {}
    systems |= {n: Weights(**w) for n, w in fused.items() if options.model or not w["logit"]}
    result = report(lists, systems)
    if options.json:
        result |= {"depth": options.depth, "length": options.length, "weights": fused, "passages": sizes}
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    return 0


def _score(options: argparse.Namespace, lists: Any) -> None:
    from training.rerank.features import with_logits
    from training.rerank.scoring import Scorer

    if options.model:
        how = {"threads": options.threads, "length": options.length, "windows": options.windows}
        scorer = Scorer(options.model, device=options.device, **how)
        file = next(p for n in ("model.onnx", "model.safetensors") if (p := options.model / n).is_file())
        key = f"{hashlib.sha256(file.read_bytes()).hexdigest()}:{options.length}{'w' * options.windows}"
        with_logits(lists, scorer, options.cache / "logits" if options.cache else None, key, say)


def _fuse(commands: Any) -> None:
    parser = commands.add_parser("fuse", help="fit fusion and calibration", description=_run_fuse.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="groups written by the command data")
    parser.add_argument("--model", type=Path, required=True, help="checkpoint or exported folder")
    parser.add_argument("--per-source", type=int, default=25, help="held-out lists of each source (25)")
    parser.add_argument(
        "--long-query", type=float, default=0, help="words of a query beyond which the logit counts less"
    )
    parser.add_argument(
        "--chosen", type=float, nargs=2, metavar=("COSINE", "LEXICAL"),
        help="weights that were chosen elsewhere, beside 1 for the logit: fit their probabilities too",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="JSON to write")
    _measured(parser)
    parser.set_defaults(run=_run_fuse)


def _run_fuse(options: argparse.Namespace) -> int:
    """Weights of logit, cosine and lexical share, and Platt's a and b, from held-out training lists."""
    _setup(options)
    from training.rerank.features import group_lists
    from training.rerank.fusion import Weights, best_pull, cross_fitted, fit_platt, fit_weights
    from training.rerank.pool import read_groups

    lists = group_lists(read_groups(options.data), options.per_source)
    _score(options, lists)
    wanted = {
        "first stages fused": ("cosine", "lexical"),
        "reranked + lexical": ("logit", "lexical"),
        "reranked + cosine": ("logit", "cosine"),
        "reranked + both": ("logit", "cosine", "lexical"),
    }
    single = {"cosine": ("cosine",), "lexical": ("lexical",), "reranked": ("logit",)}
    pulls = {name: best_pull(lists, names) for name, names in (single | wanted).items()}
    fitted = {name: fit_weights(lists, names, pulls[name]) for name, names in wanted.items()}
    if options.chosen:
        fitted["chosen"] = Weights(cosine=options.chosen[0], lexical=options.chosen[1])
    # Few held-out queries are long: how long is long cannot be learnt from them.
    systems = {name: replace(weights, long_query=options.long_query) for name, weights in fitted.items()}
    result: dict[str, Any] = {
        "lists": len(lists),
        "systems": {name: asdict(weights) for name, weights in systems.items()},
        "platt": {n: fit_platt(lists, w) for n, w in ({"reranked": Weights()} | systems).items() if w.logit},
        "pulls": pulls,
        "held_out_ndcg": {
            name: cross_fitted(lists, names, pulls[name]) for name, names in (single | wanted).items()
        },
    }
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0


def _export(commands: Any) -> None:
    parser = commands.add_parser("export", help="write the bundled model", description=_run_export.__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder written by the command train")
    parser.add_argument("--fit", type=Path, required=True, help="JSON written by the command fuse")
    parser.add_argument("--system", help="which fused system of it; without it the logit alone")
    parser.add_argument("--measured", type=Path, required=True, help="JSON written by the command evaluate")
    parser.add_argument("--data", type=Path, required=True, help="groups written by the command data")
    parser.add_argument(
        "--per-source", type=int, default=5, help="held-out lists of each source for the loss (5)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("src/surefoot/assets/models"), help="folder of the models"
    )
    parser.add_argument("--name", default="rerank", help="of the model (rerank)")
    parser.add_argument("--max-length", type=int, default=512, help="a longer pair is read in windows (512)")
    parser.add_argument("--length", type=int, default=256, help="most tokens of a pair (256)")
    parser.add_argument(
        "--windows", action="store_true", help="best window of a longer passage, instead of a cut"
    )
    parser.add_argument("--cache", type=Path, help="folder for logits")
    _common(parser)
    parser.set_defaults(run=_run_export)


def _run_export(options: argparse.Namespace) -> int:
    """ONNX with weights in int8, its manifest entry, and what the int8 cost in logits and nDCG@10."""
    _setup(options)
    from training.rerank.card import entry
    from training.rerank.features import group_lists
    from training.rerank.pool import read_groups
    from training.rerank.shipping import ship

    groups = read_groups(options.data)
    fit = json.loads(options.fit.read_text("utf-8"))
    run = json.loads((options.checkpoint / "run.json").read_text("utf-8"))
    measured = json.loads(options.measured.read_text("utf-8"))
    sources = list(dict.fromkeys(group.source for group in groups))
    card = entry(fit, options.system, run, sources, measured) | {"max_length": options.max_length}
    lists = {kind: group_lists(groups, options.per_source) for kind in ("float32", "int8")}
    made = ship(
        options.checkpoint,
        options.out,
        options.name,
        card,
        lists,
        score=lambda folder, items: _score(argparse.Namespace(**vars(options) | {"model": folder}), items),
    )
    print(json.dumps(made, indent=2))
    return 0
