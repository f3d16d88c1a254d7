"""Statements with what the judge is shown for them, and how they are put to the models."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from surefoot.endpoints.records import Usage
from surefoot.judge.asking import Asker, Cast
from surefoot.judge.hostile import find_attacks
from surefoot.judge.prompts import Material
from surefoot.judge.records import ClaimJudgement, Flag, Vote, risk_of
from surefoot.judge.votes import Tally, tally
from surefoot.schema import Reason

__all__ = ["Unit", "flags_of", "judge_units"]

_AT_ONCE: Final = 64
"""Calls prepared at a time: each holds a copy of its prompt. What runs is up to the endpoints."""

_REMEMBERED: Final = 256


@dataclass(frozen=True, slots=True)
class Unit:
    """One statement to be judged.

    Attributes:
        text, start, end: the statement and its place in the response.
        materials: what is shown, one for each window of the sources.
        reasons: known before anything is asked, such as ``partial_context``.
        flags: found in what is shown.
        problem: why nothing is asked at all; then ``materials`` is empty.
    """

    text: str
    start: int
    end: int
    materials: tuple[Material, ...]
    reasons: tuple[Reason, ...] = ()
    flags: frozenset[Flag] = frozenset()
    problem: Reason | None = None


@dataclass(slots=True)
class _Job:
    asker: Asker
    keys: list[tuple[int, int]]


async def judge_units(
    units: Sequence[Unit],
    askers: Sequence[Asker],
    *,
    votes: int,
    deadline: float | None,
    distrust: bool,
) -> tuple[list[ClaimJudgement], Usage]:
    """Ask every model about every statement, and sum up.

    Calls start in the order of ``units``, so that what a budget does not cover is the last of them.

    Args:
        units: what to judge.
        askers: the models.
        votes: replies of each model.
        deadline: value of ``time.monotonic()``.
        distrust: a unit with flags gets no score.

    Returns:
        One judgement per unit, in order, and what all calls used.
    """
    jobs = _jobs(units, askers, votes)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def work(job: _Job) -> list[Cast]:
        async with gate:
            return await job.asker.ask([units[u].materials[w] for u, w in job.keys], deadline)

    results = await asyncio.gather(*(work(job) for job in jobs))
    cast: dict[tuple[int, int], list[Vote]] = {}
    usage = Usage()
    for job, casts in zip(jobs, results, strict=True):
        for key, one in zip(job.keys, casts, strict=True):
            cast.setdefault(key, []).append(one.vote)
            usage = usage + one.usage
    return [_summed_up(at, unit, cast, distrust=distrust) for at, unit in enumerate(units)], usage


def _jobs(units: Sequence[Unit], askers: Sequence[Asker], votes: int) -> list[_Job]:
    keys = [(u, w) for u, unit in enumerate(units) for w in range(len(unit.materials))]
    single = [asker for asker in askers if not asker.in_one_call]
    jobs = [_Job(asker, [key]) for key in keys for asker in single for _ in range(votes)]
    together: dict[tuple[str, str | None, str | None], list[tuple[int, int]]] = {}
    for u, w in keys:
        material = units[u].materials[w]
        together.setdefault((material.source, material.question, material.answer), []).append((u, w))
    grouped = [asker for asker in askers if asker.in_one_call]
    jobs += [_Job(asker, group) for group in together.values() for asker in grouped for _ in range(votes)]
    return jobs


def _summed_up(
    at: int, unit: Unit, cast: dict[tuple[int, int], list[Vote]], *, distrust: bool
) -> ClaimJudgement:
    """The judgement on a unit: its best-supporting window counts.

    A window that does not speak about a statement scores high and says nothing. A window that could not be
    judged might have supported it, so that the score is then an upper bound; the reason stays.
    """
    if unit.problem is not None:
        return ClaimJudgement(unit.text, unit.start, unit.end, None, risk_of(None), (unit.problem,))
    windows = [cast[at, w] for w in range(len(unit.materials))]
    tallies = [tally(votes) for votes in windows]
    best = min(range(len(tallies)), key=lambda w: _order(tallies[w]))
    chosen = tallies[best]
    score = chosen.score
    missing = [reason for item in tallies if item.score is None for reason in item.reasons]
    reasons = [*chosen.reasons, *missing, *unit.reasons]
    if unit.flags:
        reasons.append(Reason.HOSTILE_TEXT)
        if distrust:
            score = None
            reasons.insert(0, Reason.HOSTILE_TEXT)
    detail = chosen.detail or next((item.detail for item in tallies if item.detail), None)
    return ClaimJudgement(
        text=unit.text,
        start=unit.start,
        end=unit.end,
        score=score,
        risk_level=risk_of(score),
        reasons=tuple(dict.fromkeys(reasons)),
        flags=tuple(sorted(unit.flags)),
        votes=tuple(windows[best]),
        agreement=None if score is None else chosen.agreement,
        detail=detail,
    )


def _order(item: Tally) -> float:
    return 2.0 if item.score is None else item.score


class _Memory:
    """The flags of texts seen lately: a source is shown once for each claim and vote, and inspected once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, frozenset[Flag]] = OrderedDict()

    def flags(self, text: str) -> frozenset[Flag]:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        found = find_attacks(text)
        with self._lock:
            self._known[key] = found
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found


_memory = _Memory()


def flags_of(*texts: str | None) -> frozenset[Flag]:
    """What was found in any of the texts."""
    return frozenset(flag for text in texts if text for flag in _memory.flags(text))
