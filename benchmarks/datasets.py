"""Labelled data from a folder: claims with a premise, and answers with marked spans.

``DIR/grounding/*.jsonl.gz`` holds rows ``{id, premise, claim, label}`` with label ``supported``,
``unsupported`` or ``contradicted``; ``DIR/answer/*.jsonl.gz`` rows ``{id, task, context, question, answer,
spans}`` with spans ``[start, end, type]`` in code points of the answer, none for a clean answer. Plain
``.jsonl`` works as well; other fields are ignored. A file is a set, named after it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "AnswerRow",
    "GroundingRow",
    "claims_shared",
    "discover",
    "file_digest",
    "load_answers",
    "load_grounding",
    "passages_of",
    "sample",
]

LABELS = ("supported", "unsupported", "contradicted")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class GroundingRow:
    """One claim against one premise.

    Attributes:
        group: digest of the premise; rows that share it are drawn together in a bootstrap.
        stratum: what sampling keeps in proportion: the label and, where there is one, the subset.
    """

    id: str
    premise: str
    claim: str
    supported: bool
    group: str
    stratum: str


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer with the spans that people marked as hallucinated, clipped to the answer and merged."""

    id: str
    task: str
    context: str
    question: str | None
    answer: str
    spans: tuple[tuple[int, int], ...]
    group: str
    stratum: str


def discover(folder: Path, kind: str) -> dict[str, Path]:
    """The sets of a kind, ``grounding`` or ``answer``: name -> file, sorted by name."""
    found: dict[str, Path] = {}
    for path in sorted((folder / kind).glob("*.jsonl*")):
        name = re.sub(r"\.jsonl(\.gz)?$", "", path.name)
        if path.name == name or not path.is_file():
            continue
        if name in found:
            raise ValueError(f"{path} and {found[name]} have the same name")
        found[name] = path
    return found


def load_grounding(path: Path) -> list[GroundingRow]:
    """All rows of a grounding file, in order.

    Raises:
        ValueError: naming file and line, where a row lacks a field or has another label.
    """
    rows: list[GroundingRow] = []
    for where, record in _records(path):
        premise, claim, label = (_text(record, key, where) for key in ("premise", "claim", "label"))
        if label not in LABELS:
            raise ValueError(f"{where}: label must be one of {', '.join(LABELS)}, not {label!r}")
        rows.append(
            GroundingRow(
                id=str(record.get("id", len(rows))),
                premise=premise,
                claim=claim,
                supported=label == "supported",
                group=_digest(premise),
                stratum=f"{label}/{record.get('subset') or ''}",
            )
        )
    return rows


def load_answers(path: Path) -> list[AnswerRow]:
    """All rows of an answer file, in order.

    Raises:
        ValueError: naming file and line, where a row lacks a field or a span is not one.
    """
    rows: list[AnswerRow] = []
    for where, record in _records(path):
        context, answer = (_text(record, key, where) for key in ("context", "answer"))
        task, question = str(record.get("task") or "all"), record.get("question")
        spans = _merged(record.get("spans"), len(answer), where)
        rows.append(
            AnswerRow(
                id=str(record.get("id", len(rows))),
                task=task,
                context=context,
                question=question if isinstance(question, str) else None,
                answer=answer,
                spans=spans,
                group=_digest(context),
                stratum=f"{task}/{bool(spans)}",
            )
        )
    return rows


def passages_of(context: str) -> list[str]:
    """The passages of a context that numbers them ("passage 1:" at the start of a line), or the whole."""
    pieces = re.split(r"(?m)^passage [0-9]{1,3}:", context)
    if len(pieces) < 2 or pieces[0].strip():
        return [context]
    return [piece.strip() for piece in pieces[1:]]


def sample(
    rows: Sequence[Row], limit: int, *, seed: int, name: str, stratum: Callable[[Row], Hashable]
) -> list[Row]:
    """``limit`` rows (all of them where it is 0), each stratum in proportion, in their original order.

    The shares are rounded by largest remainder; the draw depends on ``seed`` and ``name`` alone.
    """
    if not 0 < limit < len(rows):
        return list(rows)
    strata: dict[Hashable, list[int]] = {}
    for index, row in enumerate(rows):
        strata.setdefault(stratum(row), []).append(index)
    exact = {key: limit * len(members) / len(rows) for key, members in strata.items()}
    quota = {key: int(share) for key, share in exact.items()}
    by_remainder = sorted(exact, key=lambda key: (quota[key] - exact[key], str(key)))
    for key in by_remainder[: limit - sum(quota.values())]:
        quota[key] += 1
    rng = random.Random(f"{seed}:{name}")
    chosen: list[int] = []
    for key in sorted(strata, key=str):
        chosen.extend(rng.sample(strata[key], quota[key]))
    return [rows[index] for index in sorted(chosen)]


def claims_shared(sets: Mapping[str, Sequence[GroundingRow]]) -> dict[tuple[str, str], float]:
    """For each ordered pair of sets, the distinct claims they share / those of the smaller set."""
    claims = {name: {" ".join(row.claim.split()) for row in rows} for name, rows in sets.items()}
    return {
        (one, two): len(claims[one] & claims[two]) / max(1, min(len(claims[one]), len(claims[two])))
        for one in claims
        for two in claims
        if one != two
    }


def file_digest(path: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{where}: not JSON: {error}") from error
            if not isinstance(record, dict):
                raise ValueError(f"{where}: not an object")
            yield where, record


def _text(record: Mapping[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key} must be a string")
    return value


def _merged(spans: object, length: int, where: str) -> tuple[tuple[int, int], ...]:
    if not isinstance(spans, list):
        raise ValueError(f"{where}: spans must be a list")
    pairs = []
    for span in spans:
        if not (isinstance(span, list) and len(span) >= 2 and all(isinstance(end, int) for end in span[:2])):
            raise ValueError(f"{where}: a span must be [start, end, ...], not {span!r}")
        start, end = max(0, span[0]), min(length, span[1])
        if start < end:
            pairs.append((start, end))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(pairs):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
