"""Training pairs on disk and in memory: JSON lines, token ids, batches of one length."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

__all__ = ["LABELS", "Batch", "Encoded", "Pair", "batches", "encode", "read_pairs", "write_pairs"]

_LEAST_PREMISE: Final = 8
"""Tokens that must be left of a premise that is cut."""

LABELS: Final = ("entailment", "neutral", "contradiction", "not_entailment")
"""The last is the label of two-way sets: neutral or contradiction, nobody said which."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One training pair; ``source`` names where it comes from and ``kind`` how it was made."""

    premise: str
    claim: str
    label: str
    source: str
    kind: str = "given"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids [n] with segment ids [n] of a pair, and its label as a column of :data:`LABELS`."""

    ids: np.ndarray
    second: int
    label: int
    weight: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Arrays [rows, length] (``ids``, ``segments``, ``mask``) and [rows] (``labels``, ``weights``)."""

    ids: np.ndarray
    segments: np.ndarray
    mask: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


def write_pairs(path: Path, pairs: Iterable[Pair]) -> int:
    """Write pairs as JSON lines; the same pairs give the same bytes.

    Returns:
        How many were written.
    """
    count = 0
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 5, raw, mtime=0) as file:
        for pair in pairs:
            file.write((json.dumps(asdict(pair), ensure_ascii=False) + "\n").encode("utf-8"))
            count += 1
    return count


def read_pairs(path: Path) -> list[Pair]:
    """Read what :func:`write_pairs` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [Pair(**json.loads(line)) for line in stream]


def encode(pairs: Sequence[Pair], tokenizer: Tokenizer, most: int) -> list[Encoded]:
    """Token ids of pairs; what is longer than ``most`` tokens loses the end of its premise.

    Pairs whose claim alone fills the room, and those without a premise, are left out.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    found: list[Encoded] = []
    for start in range(0, len(pairs), 2000):
        kept = [pair for pair in pairs[start : start + 2000] if pair.premise.strip()]
        encodings = tokenizer.encode_batch([(pair.premise, pair.claim) for pair in kept])
        for pair, encoding in zip(kept, encodings, strict=True):
            ids = np.asarray(encoding.ids, dtype=np.int32)
            second = int(np.argmax(np.asarray(encoding.type_ids))) if 1 in encoding.type_ids else len(ids)
            over = max(0, len(ids) - most)
            end = second - 1 - over  # of the premise, before its separator
            if end < _LEAST_PREMISE and over:
                continue
            ids = np.concatenate([ids[:end], ids[second - 1 :]])
            found.append(Encoded(ids, second - over, LABELS.index(pair.label), pair.weight))
    return found


def batches(rows: Sequence[Encoded], *, tokens: int, seed: int, epoch: int) -> Iterator[Batch]:
    """One epoch in random order, each batch of rows of nearly one length.

    Rows are shuffled, cut into large groups, sorted by length within a group, and the batches of a group are
    shuffled again: lengths stay mixed over time, and little is padded.

    Args:
        rows: everything.
        tokens: most tokens of a batch, padding included.
        seed, epoch: fix the order.
    """
    rng = random.Random(f"{seed}:{epoch}")
    order = list(range(len(rows)))
    rng.shuffle(order)
    for start in range(0, len(order), 4096):
        group = sorted(order[start : start + 4096], key=lambda index: len(rows[index].ids))
        made: list[list[int]] = [[]]
        for index in group:
            longest = len(rows[index].ids)
            if made[-1] and (len(made[-1]) + 1) * longest > tokens:
                made.append([])
            made[-1].append(index)
        rng.shuffle(made)
        for members in made:
            yield _batch([rows[index] for index in members])


def _batch(rows: Sequence[Encoded]) -> Batch:
    length = max(len(row.ids) for row in rows)
    ids = np.zeros((len(rows), length), dtype=np.int64)
    segments, mask = np.zeros_like(ids), np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = row.ids
        segments[place, row.second : len(row.ids)] = 1
        mask[place, : len(row.ids)] = 1
    return Batch(
        ids,
        segments,
        mask,
        np.asarray([row.label for row in rows], dtype=np.int64),
        np.asarray([row.weight for row in rows], dtype=np.float32),
    )
