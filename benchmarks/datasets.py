"""Labelled data from a folder: claims with a premise, and answers with marked spans.

``DIR/grounding/NAME.jsonl.gz`` holds rows ``{id, premise, claim, label}`` with label ``supported``,
``unsupported`` or ``contradicted``; ``DIR/answer/NAME.jsonl.gz`` rows ``{id, task, context, question, answer,
spans}`` with spans ``[start, end, type]`` in code points of the answer, none for a clean answer. Plain
``.jsonl`` works as well; other fields are ignored.
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
    "by_premise",
    "discover",
    "families",
    "load_answers",
    "load_grounding",
    "load_sets",
    "passages_of",
    "read_rows",
    "sample",
]

LABELS = ("supported", "unsupported", "contradicted")
CLAIMS_PER_CALL = 16
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class GroundingRow:
    """One claim against one premise.

    Attributes:
        group: digest of the premise; rows that share it are drawn together in a bootstrap.
        stratum: what sampling keeps in proportion: the label and, if there is one, the subset.
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
        ValueError: a row lacks a field or has another label; the message names file and line.
    """
    rows: list[GroundingRow] = []
    for where, record in read_rows(path):
        premise, claim, label = (_text(record, key, where) for key in ("premise", "claim", "label"))
        if label not in LABELS:
            raise ValueError(f"{where}: label must be one of {', '.join(LABELS)}, not {label!r}")
        stratum = f"{label}/{record.get('subset') or ''}"
        number = str(record.get("id", len(rows)))
        rows.append(GroundingRow(number, premise, claim, label == "supported", _digest(premise), stratum))
    return rows


def load_answers(path: Path) -> list[AnswerRow]:
    """All rows of an answer file, in order.

    Raises:
        ValueError: a row lacks a field or a span is not one; the message names file and line.
    """
    rows: list[AnswerRow] = []
    for where, record in read_rows(path):
        context, answer = (_text(record, key, where) for key in ("context", "answer"))
        question = record.get("question")
        task = str(record.get("task") or "all")
        spans = _merged(record.get("spans"), len(answer), where)
        rows.append(
            AnswerRow(
                str(record.get("id", len(rows))),
                task,
                context,
                question if isinstance(question, str) else None,
                answer,
                spans,
                _digest(context),
                f"{task}/{bool(spans)}",
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
    """``limit`` rows (all if it is 0), each stratum in proportion, in their original order.

    Shares are rounded by largest remainder. The draw depends only on the rows, ``seed`` and ``name``.
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


def load_sets(
    folder: Path, kinds: Sequence[str], *, only: str, limit: int, seed: int
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Samples of all sets of some kinds, and the sha256 of their files, by name.

    Args:
        folder: the data.
        kinds: of ``grounding`` and ``answer``.
        only: names, separated by commas; all if empty.
        limit: most rows of a set; 0 for all.
        seed: of the sample.

    Raises:
        ValueError: there is no such set, two sets have one name, or a row is malformed.
    """
    if limit < 0:
        raise ValueError("--limit must not be negative")
    paths = [(name, path) for kind in kinds for name, path in discover(folder, kind).items()]
    known = [name for name, _ in paths]
    wanted = [name for name in only.split(",") if name] or known
    missing = set(wanted) - set(known)
    if missing or not known:
        raise ValueError(f"{folder} has no set {', '.join(sorted(missing)) or 'at all'}")
    if len(set(known)) < len(known) or "mean" in known:
        raise ValueError("two sets have the same name, or one is called 'mean'")
    sets, digests = {}, {}
    for name, path in paths:
        if name in wanted:
            rows: list[Any] = (load_grounding if path.parent.name == "grounding" else load_answers)(path)
            sets[name] = sample(rows, limit, seed=seed, name=name, stratum=lambda row: row.stratum)
            digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return {name: rows for name, rows in sets.items() if rows}, digests


def by_premise(rows: Sequence[GroundingRow]) -> Iterator[list[int]]:
    """Numbers of rows that share a premise, a few at a time, to be checked like the claims of one answer."""
    together: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        together.setdefault(row.premise, []).append(index)
    for indices in together.values():
        for start in range(0, len(indices), CLAIMS_PER_CALL):
            yield indices[start : start + CLAIMS_PER_CALL]


def families(sets: Mapping[str, Sequence[GroundingRow]], *, at_least: float) -> list[set[str]]:
    """Names of sets, joined if the smaller one shares at least that part of its claims, also in a chain."""
    claims = {name: {" ".join(row.claim.split()) for row in rows} for name, rows in sets.items()}
    groups = [{name} for name in sets]
    for one in sets:
        for two in sets:
            first, second = (next(group for group in groups if name in group) for name in (one, two))
            smaller = min(len(claims[one]), len(claims[two]))
            if first is not second and len(claims[one] & claims[two]) >= at_least * max(1, smaller):
                first |= second
                groups.remove(second)
    return groups


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, object) for each line of a JSON lines file, gzipped or not; empty lines are skipped.

    Raises:
        ValueError: a line is not a JSON object; the message names file and line.
    """
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
