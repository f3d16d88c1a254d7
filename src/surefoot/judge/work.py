"""Statements with what the judge is shown for them, and how they are put to the models."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from surefoot.endpoints.records import Usage
from surefoot.judge.asking import Asker, Cast
from surefoot.judge.control import ControlMode, checked, is_low
from surefoot.judge.hostile import find_attacks
from surefoot.judge.inventions import control_of
from surefoot.judge.prompts import Material
from surefoot.judge.records import ClaimJudgement, Flag, Vote, risk_of
from surefoot.judge.votes import Tally, tally
from surefoot.judge.windows import estimate_tokens
from surefoot.schema import Reason

__all__ = ["Unit", "flags_of", "judge_units"]

_AT_ONCE: Final = 64
"""Calls prepared at a time: each holds a copy of its prompt. What runs is up to the endpoints."""

_CONTROL_TOKENS: Final = 1_500
"""Of the statements that share a control; a longer one has its own."""

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


Key = tuple[int, int]
"""Index of a unit, and of one of its windows."""


@dataclass(slots=True)
class _Job:
    """One turn of a model.

    Attributes:
        asker: index of the model.
        keys: the statements.
        statements: it is asked about them.
        control: it is asked about the control that is made of them.
    """

    asker: int
    keys: list[Key]
    statements: bool = True
    control: bool = False


@dataclass(slots=True)
class _Ballot:
    """What came back: votes with the index of their model, replies to controls by model, and the usage."""

    votes: dict[Key, list[tuple[int, Vote]]] = field(default_factory=dict)
    controls: dict[Key, dict[int, list[Vote]]] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


async def judge_units(
    units: Sequence[Unit],
    askers: Sequence[Asker],
    *,
    votes: int,
    deadline: float | None,
    distrust: bool,
    control: ControlMode,
) -> tuple[list[ClaimJudgement], Usage]:
    """Ask every model about every statement, and sum up.

    Calls start in the order of ``units``, so that what a budget does not cover is the last of them.

    Args:
        units: what to judge.
        askers: the models.
        votes: replies of each model.
        deadline: value of ``time.monotonic()``.
        distrust: a unit with flags gets no score.
        control: when the models are asked about the statements with an invention in them. Models that take
            all statements in one call are asked in the same call, unless it is ``"never"``.

    Returns:
        One judgement per unit, in order, and what all calls used.
    """
    ballot = _Ballot()
    await _carry_out(_jobs(units, askers, votes, control), units, askers, deadline, ballot)
    if control == "auto":
        await _carry_out(_controls(units, askers, ballot, distrust), units, askers, deadline, ballot)
    results = [
        _summed_up(at, unit, ballot, distrust=distrust, controlled=control != "never")
        for at, unit in enumerate(units)
    ]
    return results, ballot.usage


async def _carry_out(
    jobs: Sequence[_Job],
    units: Sequence[Unit],
    askers: Sequence[Asker],
    deadline: float | None,
    ballot: _Ballot,
) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def work(job: _Job) -> tuple[list[Cast], Cast | None]:
        async with gate:
            shown = [units[u].materials[w] for u, w in job.keys]
            if not job.control:
                return await askers[job.asker].ask(shown, deadline), None
            asked = shown if job.statements else []
            at = secrets.randbelow(len(asked) + 1)
            casts = await askers[job.asker].ask([*asked[:at], control_of(shown), *asked[at:]], deadline)
            return [*casts[:at], *casts[at + 1 :]], casts[at]

    results = await asyncio.gather(*(work(job) for job in jobs))
    for job, (casts, control) in zip(jobs, results, strict=True):
        if job.statements:
            for key, one in zip(job.keys, casts, strict=True):
                ballot.votes.setdefault(key, []).append((job.asker, one.vote))
        for one in casts:
            ballot.usage = ballot.usage + one.usage
        if control is not None:
            ballot.usage = ballot.usage + control.usage
            for key in job.keys:
                ballot.controls.setdefault(key, {}).setdefault(job.asker, []).append(control.vote)


def _jobs(units: Sequence[Unit], askers: Sequence[Asker], votes: int, control: ControlMode) -> list[_Job]:
    keys = [(u, w) for u, unit in enumerate(units) for w in range(len(unit.materials))]
    single = [at for at, asker in enumerate(askers) if not asker.in_one_call]
    jobs = [_Job(at, [key]) for key in keys for at in single for _ in range(votes)]
    if control == "always":
        groups = _in_groups(units, keys, _CONTROL_TOKENS)
        jobs += [_Job(at, group, statements=False, control=True) for group in groups for at in single]
    grouped = [at for at, asker in enumerate(askers) if asker.in_one_call]
    jobs += [
        _Job(at, group, control=control != "never")
        for group in _in_groups(units, keys, None)
        for at in grouped
        for _ in range(votes)
    ]
    return jobs


def _controls(units: Sequence[Unit], askers: Sequence[Asker], ballot: _Ballot, distrust: bool) -> list[_Job]:
    """One control per source and model for all statements that got a low score, while that would count."""
    low: list[Key] = []
    for at, unit in enumerate(units):
        if unit.problem is None and not (distrust and unit.flags):
            best, tallies = _best(at, unit, ballot)
            if is_low(tallies[best].score):
                low.append((at, best))
    jobs: list[_Job] = []
    for at, asker in enumerate(askers):
        if asker.in_one_call:
            continue
        own = [key for key in low if any(who == at and is_low(one.score) for who, one in ballot.votes[key])]
        groups = _in_groups(units, own, _CONTROL_TOKENS)
        jobs += [_Job(at, group, statements=False, control=True) for group in groups]
    return jobs


def _in_groups(units: Sequence[Unit], keys: Sequence[Key], most: int | None) -> list[list[Key]]:
    """Statements with the same source, question and answer; at most so many tokens together."""
    groups: dict[tuple[str, str | None, str | None], list[list[Key]]] = {}
    sizes: dict[tuple[str, str | None, str | None], int] = {}
    for u, w in keys:
        material = units[u].materials[w]
        same = (material.source, material.question, material.answer)
        size = sizes.get(same, 0) + (estimate_tokens(material.statement) if most else 0)
        parts = groups.setdefault(same, [[]])
        if most and parts[-1] and size > most:
            parts.append([])
            size = estimate_tokens(material.statement)
        parts[-1].append((u, w))
        sizes[same] = size
    return [part for parts in groups.values() for part in parts]


def _best(at: int, unit: Unit, ballot: _Ballot) -> tuple[int, list[Tally]]:
    """The best-supporting window of a unit, and the sums of all of them."""
    tallies = [tally([vote for _, vote in ballot.votes[at, w]]) for w in range(len(unit.materials))]
    return min(range(len(tallies)), key=lambda w: _order(tallies[w])), tallies


def _summed_up(at: int, unit: Unit, ballot: _Ballot, *, distrust: bool, controlled: bool) -> ClaimJudgement:
    """The judgement on a unit: its best-supporting window counts.

    A window that does not speak about a statement scores high and says nothing. A window that could not be
    judged might have supported it, so that the score is then an upper bound; the reason stays.
    """
    if unit.problem is not None:
        return ClaimJudgement(unit.text, unit.start, unit.end, None, risk_of(None), (unit.problem,))
    best, tallies = _best(at, unit, ballot)
    chosen = tallies[best]
    missing = [reason for item in tallies if item.score is None for reason in item.reasons]
    flags = set(unit.flags)
    distrusted = distrust and bool(unit.flags)
    votes = tuple(vote for _, vote in ballot.votes[at, best])
    controls = ballot.controls.get((at, best), {})
    if controlled and not distrusted and is_low(chosen.score):
        after = checked(ballot.votes[at, best], controls)
        chosen, votes = after.tally, after.votes
        if after.failed:
            flags.add(Flag.CONTROL_FAILED)
    score = None if distrusted else chosen.score
    reasons = [*chosen.reasons, *missing, *unit.reasons]
    if unit.flags:
        reasons.insert(0 if distrusted else len(reasons), Reason.HOSTILE_TEXT)
    detail = chosen.detail or next((item.detail for item in tallies if item.detail), None)
    return ClaimJudgement(
        text=unit.text,
        start=unit.start,
        end=unit.end,
        score=score,
        risk_level=risk_of(score),
        reasons=tuple(dict.fromkeys(reasons)),
        flags=tuple(sorted(flags)),
        votes=votes,
        agreement=None if score is None else chosen.agreement,
        detail=detail,
        controls=tuple(reply for replies in controls.values() for reply in replies),
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
