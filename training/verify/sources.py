"""The labelled sets that the verifier may learn from: terms, shares, and how a row is read.

Only sets whose terms allow weights to be shipped are named here; everything else in a data folder is left
alone. Non-commercial and research-only terms, and terms that are not stated, exclude a set.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["EXCLUDED", "SOURCES", "Row", "SourceSet", "group_of", "is_held_out", "normalised", "read_set"]

HELD_SHARE: Final = 8
"""Percent of the premises of each set that are never trained on: the decision is fitted on them."""


@dataclass(frozen=True, slots=True)
class SourceSet:
    """One set.

    Attributes:
        licence: as stated by its origin.
        three_way: its ``unsupported`` means neutral; otherwise it may hide contradictions, and the loss only
            asks that entailment be low.
        skip: subsets left out, for their terms or because they are rule-made.
        splits: the splits to take; all of them where empty.
        why_skip: the reason, for the card.
    """

    licence: str
    three_way: bool
    skip: frozenset[str] = field(default_factory=frozenset)
    splits: frozenset[str] = field(default_factory=frozenset)
    why_skip: str = ""


def _set(
    licence: str, *, three_way: bool, skip: Collection[str] = (), splits: Collection[str] = (), why: str = ""
) -> SourceSet:
    return SourceSet(licence, three_way, frozenset(skip), frozenset(splits), why)


SOURCES: Final[Mapping[str, SourceSet]] = {
    "te_new_protocols": _set(
        "Wikipedia text CC BY-SA 3.0; the release states no terms of its own for the annotations",
        three_way=True,
    ),
    "mnli": _set(
        "OANC, CC BY and CC BY-SA texts (MultiNLI paper)",
        three_way=True,
        skip=("taxinli",),
        why="Computational Use of Data Agreement",
    ),
    "cad_nli": _set("Apache-2.0; SNLI CC BY-SA 4.0", three_way=True),
    "snli_dev": _set("CC BY-SA 4.0", three_way=True),
    "fever_nli": _set("FEVER CC BY-SA 3.0; DocNLI BSD-3-Clause", three_way=False),
    "fever_symmetric": _set("MIT; Wikipedia CC BY-SA 3.0", three_way=True),
    "nli_negation": _set(
        "MIT; sources as SNLI and MNLI", three_way=True, skip=("RTE",), why="terms of RTE are not stated"
    ),
    "breaking_nli": _set("CC BY-SA 4.0", three_way=True),
    "conjnli": _set("MIT; Wikipedia CC BY-SA", three_way=True),
    "scitail_dev": _set("Apache-2.0", three_way=False),
    "scifact_rte": _set("CC BY 4.0; abstracts ODC-BY 1.0", three_way=False),
    "scifact_abstract": _set("CC BY 4.0; abstracts ODC-BY 1.0", three_way=True),
    "med": _set("CC BY-SA 4.0", three_way=False),
    "evidence_inference": _set("MIT; PMC open-access text", three_way=True),
    "cg2c": _set("MIT", three_way=False),
    "defacto": _set("MIT", three_way=False),
    "clapnq_answers": _set("Apache-2.0; Wikipedia CC BY-SA 3.0", three_way=False),
    "halueval_summ": _set("MIT", three_way=False),
    "halueval_qa": _set("MIT; HotpotQA CC BY-SA 4.0", three_way=False),
    "qmsum": _set("MIT; AMI and ICSI corpora CC BY 4.0, parliament transcripts", three_way=False),
    "wice_subclaim_partial": _set(
        "ODC-BY; Wikipedia CC BY-SA", three_way=False, splits=("train",), why="other splits are measured on"
    ),
}

EXCLUDED: Final[Mapping[str, str]] = {
    "anli_dev": "CC BY-NC 4.0",
    "citint": "terms of the annotations are not stated",
    "commitment_bank": "research only",
    "covidfact": "terms are not stated",
    "dnc": "terms differ by source and are not stated in the release",
    "halueval_dialogue": "its knowledge is CC BY-NC 4.0",
    "help": "rule-made, 11 words a claim; nothing that med does not have",
    "joci": "terms are not stated",
    "mctest_nli": "Microsoft Research licence",
    "mpe": "terms of the captions are unclear",
    "nli4ct": "terms are not stated",
    "rte": "terms are not stated",
    "sick": "CC BY-NC-SA 3.0",
    "snli_test": "others measure on it",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled pair: ``label`` is ``supported``, ``unsupported`` or ``contradicted``."""

    source: str
    subset: str
    premise: str
    claim: str
    label: str
    question: str = ""


def normalised(text: str) -> str:
    """Lower-cased words only: texts that differ in spacing and punctuation are the same text."""
    return " ".join(re.findall(r"\w+", text.lower()))


def group_of(text: str) -> int:
    """A number for a text that survives spacing; rows of one document share it."""
    return zlib.crc32(normalised(text)[:400].encode("utf-8", "replace"))


def is_held_out(premise: str) -> bool:
    """Whether a premise belongs to the part that is never trained on."""
    return group_of(premise) % 100 < HELD_SHARE


def read_set(folder: Path, name: str) -> Iterator[Row]:
    """The usable rows of a set, in order.

    Args:
        folder: holds ``NAME.jsonl.gz``.
        name: of :data:`SOURCES`.

    Raises:
        KeyError: a set that must not be used, or is unknown.
    """
    spec = SOURCES[name]
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            record: dict[str, Any] = json.loads(line)
            subset = str(record.get("subset") or "")
            if name == "qmsum":  # "academic-train-17-4-1" is the first sentence about question 4 of a meeting
                subset = str(record["id"]).rsplit("-", 2)[0]
            if subset in spec.skip or (spec.splits and record.get("split") not in spec.splits):
                continue
            if not record["premise"].strip() or not record["claim"].strip():
                continue
            yield Row(
                name,
                subset,
                record["premise"],
                record["claim"],
                record["label"],
                str(record.get("question") or ""),
            )
