"""Training pairs on disk and in memory: JSON lines, token ids, batches of one length."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

__all__ = ["LABELS", "Batch", "Encoded", "Pair", "batches", "encode", "part_of", "read_pairs", "write_pairs"]

_LEAST_PREMISE: Final = 8
"""Tokens that must be left of a premise that is cut."""

LABELS: Final = ("entailment", "neutral", "contradiction", "not_entailment")
"""The last is the label of two-way sets: neutral or contradiction, nobody said which."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One training pair; ``source`` names where it comes from and ``kind`` how it was made.

    ``teacher``, where a larger network was asked: its probabilities of the three classes. Pairs of one
    ``twin`` differ in what they say and hardly in their words; they are learnt in one batch.
    """

    premise: str
    claim: str
    label: str
    source: str
    kind: str = "given"
    weight: float = 1.0
    teacher: tuple[float, float, float] | None = None
    twin: str = ""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids [n] of a pair, where its claim begins, and its label as a column of :data:`LABELS`."""

    ids: np.ndarray
    second: int
    label: int
    weight: float
    teacher: tuple[float, float, float] | None = None
    twin: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Arrays [rows, length] (``ids``, ``segments``, ``mask``), [rows] (``labels``, ``weights``), [rows, 3]
    (``teacher``; NaN where there is none)."""

    ids: np.ndarray
    segments: np.ndarray
    mask: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    teacher: np.ndarray


def write_pairs(path: Path, pairs: Iterable[Pair]) -> int:
    """Write pairs as JSON lines; the same pairs give the same bytes.

    Returns:
        How many were written.
    """
    count = 0
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 5, raw, mtime=0) as file:
        for pair in pairs:
            row = asdict(pair)
            for name in ("teacher", "twin"):
                if not row[name]:
                    del row[name]
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))
            count += 1
    return count


def read_pairs(path: Path) -> list[Pair]:
    """Read what :func:`write_pairs` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = (json.loads(line) for line in stream)
        return [
            Pair(**{**row, "teacher": tuple(row["teacher"])} if "teacher" in row else row) for row in rows
        ]


def part_of(pairs: Iterable[Pair], low: float, high: float) -> list[Pair]:
    """The pairs whose place is in ``[low, high)``; places are drawn from the texts, evenly over 0 to 1.

    So what a teacher learns from and what it is asked about stay apart, in whatever file a pair is.
    """

    def place(pair: Pair) -> float:
        digest = hashlib.sha256(f"{pair.premise}\0{pair.claim}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

    return [pair for pair in pairs if low <= place(pair) < high]


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
            sides = encoding.sequence_ids
            second = sides.index(1) if 1 in sides else len(ids)
            whole = len(sides) - sides[::-1].index(0) if 0 in sides else second  # end of the premise
            over = max(0, len(ids) - most)
            end = whole - over
            if end < _LEAST_PREMISE and over:
                continue
            ids = np.concatenate([ids[:end], ids[whole:]])
            label = LABELS.index(pair.label)
            found.append(Encoded(ids, second - over, label, pair.weight, pair.teacher, pair.twin))
    return found


def batches(rows: Sequence[Encoded], *, tokens: int, seed: int, epoch: int) -> Iterator[Batch]:
    """One epoch in random order, each batch of rows of nearly one length.

    Rows are shuffled, cut into large groups, sorted by length within a group, and the batches of a group are
    shuffled again: lengths stay mixed over time, and little is padded. Twins stay side by side.

    Args:
        rows: everything.
        tokens: most tokens of a batch, padding included.
        seed, epoch: fix the order.
    """
    rng = random.Random(f"{seed}:{epoch}")
    together: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        together.setdefault(row.twin or f"#{index}", []).append(index)
    families = list(together.values())
    rng.shuffle(families)
    longest_of = {index: max(len(rows[i].ids) for i in family) for family in families for index in family}
    place = {index: number for number, family in enumerate(families) for index in family}
    order = [index for family in families for index in family]
    for start in range(0, len(order), 4096):
        group = sorted(order[start : start + 4096], key=lambda index: (longest_of[index], place[index]))
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
        np.asarray([row.teacher or (np.nan,) * 3 for row in rows], dtype=np.float32),
    )
