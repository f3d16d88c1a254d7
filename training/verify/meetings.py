"""Negatives from summaries of meetings: said by another speaker, or said about another question."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Final

from training.verify.shapes import Case
from training.verify.sources import Row

__all__ = ["meeting_cases"]

_TURN: Final = re.compile(r"^([^:\n]{2,40}):", re.M)


def _exchanged(text: str, one: str, other: str) -> str:
    pattern = re.compile(rf"(?<!\w)(?:{re.escape(one)}|{re.escape(other)})(?!\w)", re.I)
    return pattern.sub(lambda match: other if match[0].lower() == one.lower() else one, text)


def meeting_cases(rows: Sequence[Row], *, seed: int) -> Iterator[Case]:
    """Cases of true sentences about turns ``Speaker: text``.

    A claim that names a speaker is also made of another speaker of the same turns, and both claims again with
    the two exchanged in the turns. Every claim is also put beside other turns of its meeting.

    Args:
        rows: supported claims; ``subset`` names the meeting.
        seed: decides which speaker and which turns.
    """
    turns: dict[str, list[str]] = {}
    for row in rows:
        if row.premise not in turns.setdefault(row.subset, []):
            turns[row.subset].append(row.premise)
    for row in rows:
        rng = random.Random(f"{seed}:meeting:{row.premise[:100]}:{row.claim}")
        yield Case(row.premise, row.claim, "entailment", row.source, "given")
        speakers = sorted({name.strip() for name in _TURN.findall(row.premise)})
        named = [name for name in speakers if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", row.claim, re.I)]
        rest = [name for name in speakers if name not in named]
        if len(named) == 1 and rest:
            other = rng.choice(rest)
            claim, premise = (_exchanged(text, named[0], other) for text in (row.claim, row.premise))
            for document, said, label in (
                (row.premise, claim, "contradiction"),
                (premise, claim, "entailment"),
                (premise, row.claim, "contradiction"),
            ):
                yield Case(document, said, label, row.source, "speaker exchanged")
        elsewhere = [text for text in turns[row.subset] if text != row.premise]
        if elsewhere:
            yield Case(rng.choice(elsewhere), row.claim, "not_entailment", row.source, "other turns")
