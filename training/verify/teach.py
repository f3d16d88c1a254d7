"""A larger network's opinion of training pairs, for the small one to learn from (Hinton et al. 2015).

The teacher is trained with the same ``train`` command, on one part of the pairs; it is asked about the
others, since of pairs that it was trained on it repeats the labels.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from training.verify.pairs import Pair, part_of, read_pairs, write_pairs
from training.verify.score import score_pairs

__all__ = ["CHUNK", "label"]

CHUNK = 5000
"""Pairs between two files on disk; a run that was stopped goes on after the last one."""


def label(
    teacher: Path,
    data: Sequence[Path],
    out: Path,
    *,
    part: tuple[float, float] = (0.0, 1.0),
    most: int = 192,
    limit: int = 0,
    seed: int = 1,
    device: str = "auto",
    precision: str = "float32",
) -> int:
    """Write pairs with a teacher's probabilities of entailment, neutral and contradiction.

    Args:
        teacher: its checkpoint.
        data: files of pairs, mixed in an order drawn from ``seed``, so that any first chunks are a fair draw.
        out: folder for files of ``CHUNK`` pairs, ``0000.jsonl.gz`` and on; those that are there are kept, and
            ``labels.json`` says how they were made.
        part: see :func:`~training.verify.pairs.part_of`.
        most: tokens of a pair; longer ones lose the end of the premise.
        limit: most pairs; 0 is all.
        device: ``auto``, ``cpu`` or ``cuda``.
        precision: of the products, ``float32`` or ``bfloat16``.

    Returns:
        How many pairs were asked about. Those whose claim alone is longer than ``most`` are left out of the
        files.

    Raises:
        ValueError: ``out`` holds labels that were made in another way.
    """
    record = {
        "teacher": str(teacher),
        "data": [path.name for path in data],
        "part": list(part),
        "most": most,
        "limit": limit,
        "seed": seed,
        "precision": precision,
        "chunk": CHUNK,
    }
    told = out / "labels.json"
    if told.is_file() and json.loads(told.read_text("utf-8")) != record:
        raise ValueError(f"{out} holds labels that were made in another way; choose another folder")
    pairs = [
        pair
        for pair in part_of([pair for path in data for pair in read_pairs(path)], *part)
        if pair.premise.strip()
    ]
    order = np.random.default_rng(seed).permutation(len(pairs))[: limit or None]
    out.mkdir(parents=True, exist_ok=True)
    told.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    for number, start in enumerate(range(0, len(order), CHUNK)):
        path = out / f"{number:04d}.jsonl.gz"
        if path.is_file():
            continue
        chunk = [pairs[index] for index in order[start : start + CHUNK]]
        logits = score_pairs(
            teacher,
            [(pair.premise, pair.claim) for pair in chunk],
            device=device,
            most=most,
            precision=precision,
        )
        fresh = path.with_suffix(".new")
        known = ~np.isnan(logits).any(axis=1)  # all but those whose claim alone fills the room
        write_pairs(
            fresh,
            _taught([pair for pair, fits in zip(chunk, known, strict=True) if fits], logits[known]),
        )
        fresh.replace(path)
        print(f"{start + len(chunk)} of {len(order)} pairs", file=sys.stderr, flush=True)
    return len(order)


def _taught(pairs: Sequence[Pair], logits: np.ndarray) -> list[Pair]:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows = (odds / odds.sum(axis=1, keepdims=True)).round(5).tolist()
    return [
        replace(pair, teacher=(one, two, three)) for pair, (one, two, three) in zip(pairs, rows, strict=True)
    ]
