"""The training loop: resumable, deterministic under a seed, CPU or GPU.

The learning rate warms up, stays, and falls to zero over the last tokens of the budget. A run without a
budget stays until it is stopped; branches then start from its checkpoint with a budget of their own.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional
from training.verify.model import Network, pick_device
from training.verify.pairs import LABELS, Batch, Encoded, batches, encode, part_of, read_pairs

__all__ = ["Settings", "loss_of", "rate_at", "taught_loss", "train"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train; every field is recorded in the checkpoint's ``training.json``.

    Attributes:
        rate: peak learning rate of the top layer.
        layer_decay: each layer below learns this many times as fast as the one above it.
        head_rate: times the rate, for pooler and classifier.
        frozen: so many lower layers do not learn; word vectors never do.
        batch_tokens: tokens of a batch, padding included.
        budget: tokens to train on; 0 is until stopped.
        warmup: tokens of the rising learning rate.
        falling: share of the budget over which the rate falls to zero.
        smoothing: label smoothing of a class among three.
        most: longest pair, in tokens.
        taught: share of the loss that asks for the teacher's probabilities instead of the label, where a pair
            has them (Hinton et al. 2015).
        precision: of the products, ``float32`` or ``bfloat16``; weights and optimiser are float32 in both.
    """

    rate: float = 1e-4
    layer_decay: float = 0.9
    head_rate: float = 3.0
    weight_decay: float = 0.01
    frozen: int = 0
    batch_tokens: int = 2048
    budget: int = 0
    warmup: int = 60_000
    falling: float = 1.0
    smoothing: float = 0.06
    most: int = 192
    dropout: float = 0.1
    taught: float = 0.0
    precision: str = "float32"
    seed: int = 1


def loss_of(logits: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Loss [rows] of logits [rows, 3] for labels [rows], columns of :data:`~training.verify.pairs.LABELS`.

    A two-way negative only asks for little entailment: -log(p_neutral + p_contradiction). Two-way positives
    and three-way rows are the same thing, since entailment is entailment in both.
    """
    log_p = functional.log_softmax(logits.float(), dim=1)
    log_not = torch.logsumexp(log_p[:, 1:], dim=1)
    picked = log_p.gather(1, labels.clamp(max=2)[:, None])[:, 0]
    three = (1 - smoothing) * picked + smoothing * log_p.mean(dim=1)
    two = (1 - smoothing / 2) * log_not + smoothing / 2 * log_p[:, 0]
    return -torch.where(labels == LABELS.index("not_entailment"), two, three)


def taught_loss(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Cross entropy [rows] of logits [rows, 3] with a teacher's probabilities [rows, 3]."""
    return -(teacher * functional.log_softmax(logits.float(), dim=1)).sum(dim=1)


def rate_at(seen: int, settings: Settings) -> float:
    """The factor on the learning rate after so many tokens, 0 to 1."""
    rising = min(1.0, (seen + 1) / settings.warmup) if settings.warmup else 1.0
    if not settings.budget:
        return rising
    falls = settings.falling * settings.budget
    left = (settings.budget - seen) / falls if falls else 1.0
    return rising * max(0.0, min(1.0, left))


def _groups(network: Network, settings: Settings) -> list[dict[str, object]]:
    depth = len(network.layers)
    groups: list[dict[str, object]] = []

    def add(module: torch.nn.Module, factor: float) -> None:
        for decays in (True, False):
            chosen = [p for p in module.parameters() if p.requires_grad and (p.ndim > 1) == decays]
            if chosen:
                groups.append(
                    {
                        "params": chosen,
                        "factor": factor,
                        "weight_decay": settings.weight_decay if decays else 0.0,
                    }
                )

    for parameter in network.words.parameters():
        parameter.requires_grad_(False)
    lowest = [network.places, network.near if network.kind == "mpnet" else network.sides, network.norm]
    if settings.frozen:
        for module in (*lowest, *network.layers[: settings.frozen]):
            module.requires_grad_(False)
    for module in lowest:
        add(module, settings.layer_decay**depth)
    for index, layer in enumerate(network.layers):
        add(layer, settings.layer_decay ** (depth - 1 - index))
    add(network.pooler, settings.head_rate)
    add(network.classifier, settings.head_rate)
    return groups


def train(
    data: Sequence[Path],
    init: Path,
    out: Path,
    settings: Settings,
    *,
    source_weights: Mapping[str, float] | None = None,
    part: tuple[float, float] = (0.0, 1.0),
    device: str = "auto",
    threads: int = 1,
    minutes: float = 0,
    save_every: float = 10,
    saved: Callable[[Path, int, float], None] | None = None,
) -> tuple[Path, int]:
    """Train, or go on with what ``out`` holds; SIGTERM saves and ends it.

    Args:
        data: files of pairs, mixed.
        init: checkpoint or encoder to start from.
        out: ``state.pt`` (to resume), ``checkpoint/`` (the last one), ``log.jsonl``, ``training.json``.
        settings: see there; a resumed run must have the same.
        source_weights: source -> weight of its loss; 1 by default.
        part: of the pairs, see :func:`~training.verify.pairs.part_of`.
        device: ``auto``, ``cpu``, ``cuda``.
        threads: of PyTorch on a CPU.
        minutes: stop after so long, resumable; 0 is never.
        save_every: minutes between checkpoints.
        saved: called after each checkpoint with its folder, the tokens seen and the latest mean loss.

    Returns:
        The last checkpoint, and how many tokens were seen in all.
    """
    if settings.precision not in ("float32", "bfloat16"):
        raise ValueError(f"precision must be float32 or bfloat16, not {settings.precision!r}")
    torch.set_num_threads(threads)
    torch.manual_seed(settings.seed)
    where = pick_device(device)
    out.mkdir(parents=True, exist_ok=True)
    record = {**asdict(settings), "init": init.name, "data": [path.name for path in data]}
    if source_weights:
        record["source_weights"] = dict(source_weights)
    if part != (0.0, 1.0):
        record["part"] = list(part)
    told = out / "training.json"
    if told.is_file() and _same(json.loads(told.read_text("utf-8"))) != _same(json.loads(json.dumps(record))):
        raise ValueError(f"{out} holds a run with other settings; choose another folder")
    told.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    tokenizer = Tokenizer.from_file(str(init / "tokenizer.json"))
    pairs = part_of([pair for path in data for pair in read_pairs(path)], *part)
    if source_weights:
        pairs = [replace(pair, weight=pair.weight * source_weights.get(pair.source, 1.0)) for pair in pairs]
    rows = encode(pairs, tokenizer, settings.most)
    if not rows:
        raise ValueError("no training pairs")
    network = Network.load(init, dropout=settings.dropout, seed=settings.seed).to(where)
    groups = _groups(network, settings)
    optimiser = torch.optim.AdamW(groups, lr=settings.rate, betas=(0.9, 0.98), eps=1e-6, fused=True)
    epoch = step = seen = 0
    spent = 0.0
    if (out / "state.pt").is_file():
        state = torch.load(out / "state.pt", map_location=where, weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        epoch, step, seen, spent = state["epoch"], state["step"], state["seen"], state["spent"]
    # Rows per batch on average: with it every pair weighs the same, in short batches and in long ones.
    usual = settings.batch_tokens / float(np.mean([len(row.ids) for row in rows]))
    started = last_saved = time.monotonic()
    loss_now = float("nan")
    network.train()

    def save() -> None:
        state = {
            "network": network.state_dict(),
            "optimiser": optimiser.state_dict(),
            "epoch": epoch,
            "step": step,
            "seen": seen,
            "spent": spent + time.monotonic() - started,
        }
        torch.save(state, out / "state.new")
        (out / "state.new").replace(out / "state.pt")
        network.save(out / "checkpoint", tokenizer_from=init)

    stopped: list[int] = []
    if threading.current_thread() is threading.main_thread():  # elsewhere Python takes no signals
        signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    recent: list[float] = []
    stream = _stream(rows, settings, (epoch, step))
    with (out / "log.jsonl").open("a", encoding="utf-8") as log:
        for epoch, step, batch in stream:
            if stopped or (settings.budget and seen >= settings.budget):
                break
            if minutes and time.monotonic() - started > 60 * minutes:
                break
            factor = rate_at(seen, settings)
            for group in optimiser.param_groups:
                group["lr"] = settings.rate * factor * group["factor"]
            # The random numbers of a step depend on the step alone, so that a resumed run is the same run.
            torch.manual_seed(settings.seed * 1_000_003 + epoch * 100_003 + step)
            ids, segments, mask, labels, weights, teacher = (
                torch.from_numpy(array).to(where)
                for array in (
                    batch.ids,
                    batch.segments,
                    batch.mask,
                    batch.labels,
                    batch.weights,
                    batch.teacher,
                )
            )
            with torch.autocast(where.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
                logits = network(ids, segments, mask)
            each = loss_of(logits, labels, settings.smoothing)
            if settings.taught:
                asked = ~teacher.isnan().any(dim=1)
                share = settings.taught * asked
                each = (1 - share) * each + share * taught_loss(logits, teacher.nan_to_num())
            loss = (each * weights).sum() / usual
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 1.0)  # type: ignore[union-attr]
            optimiser.step()
            optimiser.zero_grad()
            seen += int(mask.sum())
            recent.append(float(loss.detach()) * usual / len(labels))
            if len(recent) == 25:
                loss_now = sum(recent) / 25
                passed = time.monotonic() - started
                line = {
                    "epoch": epoch,
                    "step": step,
                    "tokens": seen,
                    "loss": round(loss_now, 4),
                    "rate": round(factor, 4),
                    "minutes": round((spent + passed) / 60, 1),
                }
                log.write(json.dumps(line) + "\n")
                log.flush()
                recent.clear()
            if time.monotonic() - last_saved > 60 * save_every:
                step += 1
                save()
                if saved is not None:
                    saved(out / "checkpoint", seen, loss_now)
                last_saved = time.monotonic()
        save()
    return out / "checkpoint", seen


def _same(record: dict[str, object]) -> dict[str, object]:
    """What must not change when a run goes on. A rate that never falls does not know where the run ends."""
    return {key: value for key, value in record.items() if key != "budget" or record["falling"]}


def _stream(
    rows: Sequence[Encoded], settings: Settings, start: tuple[int, int]
) -> Iterator[tuple[int, int, Batch]]:
    """Batches from (epoch, step) on, without end."""
    epoch, step = start
    while True:
        for index, batch in enumerate(
            batches(rows, tokens=settings.batch_tokens, seed=settings.seed, epoch=epoch)
        ):
            if index >= step:
                yield epoch, index, batch
        epoch, step = epoch + 1, 0
