"""Train the cross-encoder on groups of one relevant passage and its negatives.

The loss of a group is the cross-entropy of the softmax over its candidates (listwise, Cao et al. 2007), mixed
with the divergence from the ranking that the embedder and BM25 give (distillation keeps what the base model
knows about topics), and a small binary cross-entropy that ties the level of the logits across queries. The
exported weights are a running average over the steps.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Encoding, Tokenizer
from torch.nn import functional
from training.rerank.first_stage import device_of
from training.rerank.pool import Group
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging as transformers_log

__all__ = ["Recipe", "batches", "encode_pairs", "load_model", "pad", "short_enough", "train"]

_COSINE_SCALE = 20.0
_LEXICAL_SCALE = 0.1
_TOGETHER = 10
"""Pairs that go through the model at once on a CPU: more of them pad more than they save."""
_AVERAGED = 4
"""Steps between two updates of the running average: every one of them costs a pass over all weights."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the outcome of a run, together with the base model and the groups.

    Attributes:
        steps: updates in all; the learning rate falls to a tenth by the last.
        groups: per update.
        negatives: per group, at most those stored.
        length: most tokens of a pair; the passage is cut.
        rate: highest learning rate of the encoder.
        head_rate: of the classifier and the pooler.
        distil: share of the distillation in the loss, 0 to 1.
        level: weight of the binary cross-entropy.
        frozen: number of encoder layers left as they are; the embeddings always are.
        average: decay of the running average of the weights.
        warmup: steps until the highest rate.
        precision: of the products, ``float32`` or ``bfloat16``; weights and optimiser are float32 in both.
        seed: of order, negatives and the new head.
    """

    steps: int = 1000
    groups: int = 4
    negatives: int = 5
    length: int = 128
    rate: float = 1e-4
    head_rate: float = 5e-4
    distil: float = 0.4
    level: float = 0.1
    frozen: int = 0
    average: float = 0.99
    warmup: int = 40
    precision: str = "float32"
    seed: int = 1

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision must be float32 or bfloat16, not {self.precision!r}")


def load_model(folder: Path) -> Any:
    """A classifier with one output; a head is made where the checkpoint has none. Without dropout."""
    transformers_log.set_verbosity_error()  # it warns that the head is new, as it must be
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=1,
        # PyTorch's fused attention is slow on a CPU for pairs as short as these, above all backwards.
        attn_implementation="sdpa" if torch.cuda.is_available() else "eager",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout=0.0,
    )
    model.config.id2label, model.config.label2id = {0: "relevance"}, {"relevance": 0}
    return model


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], length: int) -> list[Encoding]:
    """Encodings of (query, passage), the passage cut to ``length`` tokens together with the query."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(length, strategy="longest_first")
    return tokenizer.encode_batch(list(pairs))


def pad(encodings: Sequence[Encoding], device: torch.device) -> dict[str, torch.Tensor]:
    """Model inputs of a batch, padded to its longest pair."""
    width = max(len(encoding.ids) for encoding in encodings)

    def rows(lists: list[list[int]]) -> torch.Tensor:
        return torch.tensor([row + [0] * (width - len(row)) for row in lists], device=device)

    return {
        "input_ids": rows([encoding.ids for encoding in encodings]),
        "attention_mask": rows([encoding.attention_mask for encoding in encodings]),
        "token_type_ids": rows([encoding.type_ids for encoding in encodings]),
    }


def short_enough(groups: Sequence[Group], init: Path, most: int) -> list[Group]:
    """Groups whose query and relevant passage have at most ``most`` tokens: cutting would lose the answer."""
    tokenizer = Tokenizer.from_file(str(init / "tokenizer.json"))
    encodings = encode_pairs(tokenizer, [(group.query, group.passages[0]) for group in groups], most + 1)
    return [group for group, made in zip(groups, encodings, strict=True) if len(made.ids) <= most]


def batches(groups: Sequence[Group], recipe: Recipe) -> list[list[int]]:
    """Group numbers of every step, groups of like length together; the same seed gives the same list."""
    rng = random.Random(recipe.seed)
    sizes = [len(group.query) + sum(map(len, group.passages)) / len(group.passages) for group in groups]
    made: list[list[int]] = []
    while len(made) < recipe.steps:
        order = list(range(len(groups)))
        rng.shuffle(order)
        one_pass = []
        for start in range(0, len(order), 64 * recipe.groups):
            near = sorted(order[start : start + 64 * recipe.groups], key=lambda i: sizes[i])
            one_pass += [near[i : i + recipe.groups] for i in range(0, len(near), recipe.groups)]
        rng.shuffle(one_pass)
        made += one_pass
    return made[: recipe.steps]


def _logits(model: Any, encodings: Sequence[Encoding], target: torch.device) -> torch.Tensor:
    """One logit per pair; pairs of like length go through the model together, so that little is padded."""
    order = sorted(range(len(encodings)), key=lambda i: len(encodings[i].ids))
    size = len(encodings) if target.type == "cuda" else _TOGETHER
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    made = torch.cat([model(**pad([encodings[i] for i in part], target)).logits[:, 0] for part in parts])
    place = torch.empty(len(order), dtype=torch.long, device=target)
    place[torch.tensor(order, device=target)] = torch.arange(len(order), device=target)
    return made[place]


def _loss(
    logits: torch.Tensor, groups: Sequence[Group], rows: list[list[int]], recipe: Recipe
) -> torch.Tensor:
    """Mean loss of the groups of one batch; ``rows`` are the candidates of each, the relevant one first."""
    losses = []
    start = 0
    for group, chosen in zip(groups, rows, strict=True):
        own = logits[start : start + len(chosen)]
        start += len(chosen)
        log_p = functional.log_softmax(own, dim=0)
        soft = torch.tensor(
            [_COSINE_SCALE * group.cosine[i] + _LEXICAL_SCALE * group.lexical[i] for i in chosen],
            device=own.device,
        ).softmax(0)
        label = torch.zeros_like(own)
        label[0] = 1.0
        # The weight of the relevant passage among the others, as many as there are.
        weight = torch.ones_like(own)
        weight[0] = len(chosen) - 1
        losses.append(
            -(1 - recipe.distil) * log_p[0]
            + recipe.distil * functional.kl_div(log_p, soft, reduction="sum")
            + recipe.level * functional.binary_cross_entropy_with_logits(own, label, weight)
        )
    return torch.stack(losses).mean()


def _optimizer(model: Any, recipe: Recipe) -> torch.optim.AdamW:
    base = model.base_model
    for parameter in base.embeddings.parameters():
        parameter.requires_grad_(False)
    for layer in base.encoder.layer[: recipe.frozen]:
        for parameter in layer.parameters():
            parameter.requires_grad_(False)
    head, body = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (head if "pooler" in name or name.startswith("classifier") else body).append(parameter)
    rates = [(body, recipe.rate), (head, recipe.head_rate)]
    return torch.optim.AdamW(
        [{"params": part, "lr": rate, "highest": rate} for part, rate in rates if part],
        weight_decay=0.01,
        fused=True,
    )


def train(
    groups: Sequence[Group],
    init: Path,
    out: Path,
    recipe: Recipe,
    *,
    device: str = "auto",
    max_minutes: float = 1e9,
    save_minutes: float = 8.0,
    say: Callable[[str], None] = print,
) -> int:
    """Train, or go on where ``out`` stopped.

    Args:
        groups: to train on.
        init: checkpoint to start from.
        out: folder of the checkpoint (a Hugging Face folder with the averaged weights) and ``state.pt``.
        recipe: must be that of the run that is continued.
        device: ``auto``, ``cpu`` or ``cuda``.
        max_minutes: stop, with everything saved, after this time.
        save_minutes: between two checkpoints.
        say: called with progress.

    Returns:
        Steps done in all.

    Raises:
        ValueError: ``out`` holds a run of another recipe.
    """
    target = device_of(device)
    torch.manual_seed(recipe.seed)
    tokenizer = Tokenizer.from_file(str(init / "tokenizer.json"))
    model = load_model(init).to(target).train()
    optimizer = _optimizer(model, recipe)
    live = {name: value for name, value in model.named_parameters() if value.requires_grad}
    average = {name: value.detach().clone() for name, value in live.items()}
    step, seconds, tokens = 0, 0.0, 0
    state = out / "state.pt"
    if state.is_file():
        saved = torch.load(state, map_location=target, weights_only=True)
        if json.loads(saved["recipe"]) != asdict(recipe):
            raise ValueError(f"{out} holds a run of another recipe: {saved['recipe']}")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        average = saved["average"]
        step, seconds, tokens = saved["step"], saved["seconds"], saved["tokens"]
        say(f"continued at step {step}")
    order = batches(groups, recipe)
    begun = saved_at = time.monotonic()
    before = time.process_time()
    running = 0.0

    def save() -> None:
        out.mkdir(parents=True, exist_ok=True)
        spent = seconds + time.process_time() - before
        content = {
            "recipe": json.dumps(asdict(recipe)),
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "average": average,
            "step": step,
            "seconds": spent,
            "tokens": tokens,
        }
        torch.save(content, state.with_suffix(".tmp"))
        state.with_suffix(".tmp").replace(state)
        _export(model, average, init, out)
        note: dict[str, Any] = {"recipe": asdict(recipe), "step": step}
        note |= {"cpu_minutes": round(spent / 60, 1), "tokens": tokens}
        if (init / "run.json").is_file():
            note["after"] = json.loads((init / "run.json").read_text("utf-8"))
        (out / "run.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")

    while step < len(order):
        chosen = [groups[i] for i in order[step]]
        rng = random.Random(f"{recipe.seed}:{step}")
        rows = [_candidates(group, recipe.negatives, rng) for group in chosen]
        pairs = [(g.query, g.passages[i]) for g, own in zip(chosen, rows, strict=True) for i in own]
        encodings = encode_pairs(tokenizer, pairs, recipe.length)
        tokens += sum(len(encoding.ids) for encoding in encodings)
        factor = min(1.0, (step + 1) / recipe.warmup) * (1 - 0.9 * step / recipe.steps)
        for part in optimizer.param_groups:
            part["lr"] = part["highest"] * factor
        with torch.autocast(target.type, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            logits = _logits(model, encodings, target)
        loss = _loss(logits.float(), chosen, rows, recipe)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(live.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % _AVERAGED == 0 or step == len(order):
            decay = min(recipe.average, step / (step + 10)) ** _AVERAGED
            with torch.no_grad():
                for name, value in live.items():
                    average[name].lerp_(value, 1 - decay)
        running = loss.item() if running == 0 else 0.97 * running + 0.03 * loss.item()
        if step % 20 == 0:
            rate = tokens / (seconds + time.process_time() - before)
            say(f"step {step}/{recipe.steps} loss {running:.3f} {tokens} tokens {rate:.0f}/s "
                f"{(time.monotonic() - begun) / 60:.1f} min")  # fmt: skip
        if time.monotonic() - saved_at > 60 * save_minutes:
            save()
            saved_at = time.monotonic()
        if time.monotonic() - begun > 60 * max_minutes:
            break
    save()
    return step


def _candidates(group: Group, negatives: int, rng: random.Random) -> list[int]:
    others = list(range(1, len(group.passages)))
    return [0, *rng.sample(others, min(negatives, len(others)))]


def _export(model: Any, average: dict[str, torch.Tensor], init: Path, out: Path) -> None:
    """The averaged weights as a Hugging Face folder."""
    weights = {name: value.detach().clone() for name, value in model.state_dict().items()} | average
    model.save_pretrained(out, state_dict=weights)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (init / name).is_file():
            (out / name).write_bytes((init / name).read_bytes())
