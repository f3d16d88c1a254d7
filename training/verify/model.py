"""The network while it learns: BERT's or MPNet's layers, the last one computed for its first token only.

Weights keep the names of Hugging Face's ``BertForSequenceClassification`` or
``MPNetForSequenceClassification``, so that a checkpoint is an ordinary folder. An MPNet (Song et al. 2020) is
only a teacher: it is trained and asked for labels, and does not ship. There is no dropout inside the layers:
one pass over the data does not overfit, and random numbers cost time on a CPU.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

__all__ = ["CLASSES", "Network", "pick_device"]

CLASSES = ("entailment", "neutral", "contradiction")
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def pick_device(name: str = "auto") -> torch.device:
    """``auto`` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, added: torch.Tensor | None
) -> torch.Tensor:
    """Scaled dot products [rows, heads, queries, width]; ``added`` goes onto the scores before the softmax.

    On a CPU the two products are written out: pairs are short, and PyTorch's fused kernel took a third of a
    training step in bfloat16 there.
    """
    if query.device.type != "cpu":
        mask = None if added is None else added.to(query.dtype)
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-1, -2)
    if added is not None:
        scores = scores + added.to(scores.dtype)
    return torch.softmax(scores, -1, dtype=torch.float32).to(value.dtype) @ value


def _distances(length: int, buckets: int) -> torch.Tensor:
    """The bucket [queries, keys] of the distance between two tokens (T5's, Raffel et al. 2020, 2.1).

    One half of the buckets is for keys that come later; in each half the lower ones are one distance each,
    and the upper ones grow with its logarithm up to 128 tokens.
    """
    places = torch.arange(length)
    ahead = places[None] - places[:, None]
    half = buckets // 2
    single = half // 2
    far = single + (
        torch.log(ahead.abs().clamp(min=1) / single) / math.log(128 / single) * (half - single)
    ).long().clamp(max=half - single - 1)
    return (ahead > 0) * half + torch.where(ahead.abs() < single, ahead.abs(), far)


class Network(nn.Module):
    """A three-way cross-encoder over (premise, claim).

    Args:
        config: of the checkpoint; a BERT or an MPNet.
        dropout: on the pooled vector only.
    """

    def __init__(self, config: Mapping[str, Any], *, dropout: float = 0.1) -> None:
        super().__init__()
        self.config = dict(config)
        self.kind = config.get("model_type", "bert")
        if self.kind not in ("bert", "mpnet"):
            raise ValueError(f"no network for {self.kind!r}: a BERT or an MPNet is needed")
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        eps = config.get("layer_norm_eps", 1e-12)
        self.words = nn.Embedding(config["vocab_size"], width)
        self.places = nn.Embedding(config["max_position_embeddings"], width)
        if self.kind == "mpnet":
            self.near = nn.Embedding(config.get("relative_attention_num_buckets", 32), self.heads)
        else:
            self.sides = nn.Embedding(config["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=eps)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    **{name: nn.Linear(width, width) for name in ("query", "key", "value", "out")},
                    "norm1": nn.LayerNorm(width, eps=eps),
                    "up": nn.Linear(width, inner),
                    "down": nn.Linear(inner, width),
                    "norm2": nn.LayerNorm(width, eps=eps),
                }
            )
            for _ in range(config["num_hidden_layers"])
        )
        self.pooler = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, len(CLASSES))

    def forward(self, ids: torch.Tensor, segments: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits [rows, 3] of integer arrays [rows, length]."""
        places = torch.arange(ids.shape[1], device=ids.device)
        added = None
        if self.kind == "mpnet":  # it counts places from behind the one of padding, and knows no sides
            x = self.norm(self.words(ids) + self.places(places + self.config["pad_token_id"] + 1)[None])
            buckets = _distances(ids.shape[1], self.near.num_embeddings).to(ids.device)
            added = self.near(buckets).permute(2, 0, 1)[None]
        else:
            x = self.norm(self.words(ids) + self.places(places)[None] + self.sides(segments))
        if not bool(mask.all()):
            padding = (1 - mask[:, None, None, :].float()) * -1e9
            added = padding if added is None else added + padding
        last = len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            x = self._layer(layer, x, added, first_only=index == last)
        return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))

    def _layer(
        self, layer: nn.ModuleDict, x: torch.Tensor, added: torch.Tensor | None, *, first_only: bool
    ) -> torch.Tensor:
        rows, _, width = x.shape
        start = x[:, :1] if first_only else x
        if first_only and added is not None:
            added = added[:, :, :1]

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(rows, -1, self.heads, width // self.heads).transpose(1, 2)

        mixed = _attention(
            split(layer["query"](start)), split(layer["key"](x)), split(layer["value"](x)), added
        )
        mixed = mixed.transpose(1, 2).reshape(rows, -1, width)
        middle = layer["norm1"](start + layer["out"](mixed))
        return layer["norm2"](middle + layer["down"](functional.gelu(layer["up"](middle))))

    @classmethod
    def load(cls, folder: Path, *, dropout: float = 0.1, seed: int = 0) -> Network:
        """From a checkpoint, or from an encoder without a head, whose head is then drawn from ``seed``."""
        config = json.loads((folder / "config.json").read_text("utf-8"))
        torch.manual_seed(seed)
        network = cls(config, dropout=dropout)
        nn.init.normal_(network.classifier.weight, std=0.02)
        nn.init.zeros_(network.classifier.bias)
        names = network.names()
        tensors = {
            name.removeprefix(f"{network.kind}."): tensor.float()
            for name, tensor in load_file(folder / "model.safetensors").items()
        }
        if network.kind == "mpnet":  # the pooler of an encoder is the first layer of a classifier's head
            for part in ("weight", "bias"):
                if f"pooler.dense.{part}" in tensors:
                    tensors.setdefault(f"classifier.dense.{part}", tensors[f"pooler.dense.{part}"])
        inside = {ours: theirs.removeprefix(f"{network.kind}.") for ours, theirs in names.items()}
        wanted = {ours: tensors[theirs] for ours, theirs in inside.items() if theirs in tensors}
        missing = set(names) - set(wanted) - {"classifier.weight", "classifier.bias"}
        if missing:
            raise ValueError(f"{folder} lacks {sorted(missing)[:3]}")
        network.load_state_dict(wanted, strict=False)
        return network

    def names(self) -> dict[str, str]:
        """Our name of every weight -> Hugging Face's."""
        parts = {"up": "intermediate.dense", "down": "output.dense", "norm2": "output.LayerNorm"}
        if self.kind == "mpnet":
            parts |= {"query": "attention.attn.q", "key": "attention.attn.k", "value": "attention.attn.v"}
            parts |= {"out": "attention.attn.o", "norm1": "attention.LayerNorm"}
        else:
            parts |= {name: f"attention.self.{name}" for name in ("query", "key", "value")}
            parts |= {"out": "attention.output.dense", "norm1": "attention.output.LayerNorm"}
        heads = {
            "words": "embeddings.word_embeddings",
            "places": "embeddings.position_embeddings",
            "sides": "embeddings.token_type_embeddings",
            "near": "encoder.relative_attention_bias",
            "norm": "embeddings.LayerNorm",
            "pooler": "pooler.dense",
        }
        head = {"pooler": "classifier.dense", "classifier": "classifier.out_proj"}
        found = {}
        for name in self.state_dict():
            pieces = name.split(".")
            if pieces[0] == "layers":
                found[name] = f"{self.kind}.encoder.layer.{pieces[1]}.{parts[pieces[2]]}.{pieces[3]}"
            elif self.kind == "mpnet" and pieces[0] in head:
                found[name] = f"{head[pieces[0]]}.{pieces[1]}"
            elif pieces[0] == "classifier":
                found[name] = name
            else:
                found[name] = f"{self.kind}.{heads[pieces[0]]}.{pieces[1]}"
        return found

    def save(self, folder: Path, *, tokenizer_from: Path) -> None:
        """Write a checkpoint folder; it replaces an older one only when it is complete."""
        fresh = folder.with_name(folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        config = {
            **self.config,
            "architectures": [
                "MPNetForSequenceClassification" if self.kind == "mpnet" else "BertForSequenceClassification"
            ],
            "model_type": self.kind,
            "id2label": {str(index): name for index, name in enumerate(CLASSES)},
            "label2id": {name: index for index, name in enumerate(CLASSES)},
        }
        (fresh / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")
        state = {
            theirs: self.state_dict()[ours].detach().cpu().half().contiguous()
            for ours, theirs in self.names().items()
        }
        save_file(state, fresh / "model.safetensors", metadata={"format": "pt"})
        for name in TOKENIZER:
            if (tokenizer_from / name).is_file():
                shutil.copyfile(tokenizer_from / name, fresh / name)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
