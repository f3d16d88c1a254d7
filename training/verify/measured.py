"""The fixed sample that checkpoints are compared on: drawn once, premises selected once, stored.

Selection does not depend on the model, so that a checkpoint is measured by scoring up to three premises a
claim.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.datasets import AnswerRow, discover, load_answers, load_grounding, passages_of, sample
from training.verify.selection import Reader, Selected

from surefoot.citations import find_markers, known_keys, strip_markers
from surefoot.schema import ClaimKind
from surefoot.segment import plain_text, segment_answer
from surefoot.sources import coerce_sources

__all__ = [
    "CHOOSING",
    "REPORTING",
    "Item",
    "answer_items",
    "grounding_items",
    "is_answer_set",
    "read_items",
    "write_items",
]

CHOOSING: Final = ("attributionbench", "begin", "control", "dialfact_small", "faithdial_audit", "fm2")
"""Development sets that may be looked at while training, and that numbers may be chosen on."""

REPORTING: Final = ("factscore", "healthver", "qmsum", "summedits", "wice_claim_full", "wice_claim_oracle")
"""Development sets that nothing is chosen on; they are measured at the end. Sets that share documents are on
one side: BEGIN, FaithDial and AttributionBench there, both parts of WiCE here."""


@dataclass(frozen=True, slots=True)
class Item:
    """One claim under measurement.

    Attributes:
        set: the data set; of an answer, ``NAME.TASK``.
        group: what must not be torn apart: the premise, or the answer.
        bad: for claims of answers: a whole word lies in a marked span. For grounding: not supported.
        answer_bad: for claims of answers: the answer has any marked span.
        selected: ``None`` where the package would abstain.
    """

    set: str
    group: str
    bad: bool
    label: str
    answer_bad: bool
    selected: Selected | None


def grounding_items(path: Path, limit: int, *, seed: int = 0) -> Iterable[Item]:
    """A sample of a grounding set, the same that ``benchmarks/quality.py`` draws."""
    name = path.name.split(".")[0]
    rows = load_grounding(path)
    readers: dict[str, Reader] = {}
    for row in sample(rows, limit, seed=seed, name=name, stratum=lambda row: row.stratum):
        if row.group not in readers:
            readers = {row.group: Reader([row.premise])}
        label = row.stratum.split("/")[0]
        selected = readers[row.group].select(plain_text(row.claim))
        yield Item(name, row.group, label != "supported", label, label != "supported", selected)


def answer_items(path: Path, limit: int, *, seed: int = 0) -> Iterable[Item]:
    """The claims of a sample of answers."""
    name = path.name.split(".")[0]
    for row in sample(load_answers(path), limit, seed=seed, name=name, stratum=lambda row: row.stratum):
        yield from _claims(name, row)


def _claims(name: str, row: AnswerRow) -> Iterable[Item]:
    texts = passages_of(row.context)
    records, _ = coerce_sources(texts)
    markers = find_markers(row.answer, pattern=None, known=known_keys(records))
    reader = Reader(texts)
    for segment in segment_answer(row.answer, min_words=4):
        if segment.kind is not ClaimKind.CLAIM:
            continue
        claim = plain_text(strip_markers(row.answer, segment.start, segment.end, markers))
        bad = any(start < segment.end and segment.start < end for start, end in row.spans)
        yield Item(
            f"{name}.{row.task}", row.id, bad, "bad" if bad else "good", bool(row.spans), reader.select(claim)
        )


def write_items(path: Path, items: Iterable[Item]) -> int:
    """Store items; the same items give the same bytes."""
    count = 0
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 5, raw, mtime=0) as file:
        for item in items:
            file.write((json.dumps(asdict(item), ensure_ascii=False) + "\n").encode("utf-8"))
            count += 1
    return count


def read_items(path: Path) -> list[Item]:
    """Read what :func:`write_items` wrote."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            chosen = record.pop("selected")
            if chosen is not None:
                for key in ("premises", "relevance", "features"):
                    chosen[key] = tuple(chosen[key])
                chosen = Selected(**chosen)
            found.append(Item(selected=chosen, **record))
    return found


def is_answer_set(name: str) -> bool:
    """Sets of answers are called ``NAME.TASK``."""
    return "." in name


def discover_sets(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Grounding files and answer files of a data folder, by name."""
    return discover(folder, "grounding"), discover(folder, "answer")
