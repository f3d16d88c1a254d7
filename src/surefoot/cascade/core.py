"""Local verdicts first, and a judge only for the claims that the local model leaves uncertain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from surefoot.cascade.records import CascadeReport, Decision
from surefoot.cascade.settle import Judged, decided, endpoint_failure, failures, summed_up
from surefoot.endpoints.budget import Budget, Reservation
from surefoot.endpoints.loop import run_sync
from surefoot.endpoints.records import Usage
from surefoot.errors import BudgetExceededError, ConfigurationError
from surefoot.judge.core import Judge
from surefoot.judge.records import Judgement
from surefoot.schema import ClaimKind, Reason, TruthfulnessReport, Verdict
from surefoot.sources import SourceLike
from surefoot.verify import Verifier

__all__ = ["Cascade"]

_WAVE: Final = 8
"""Claims that are sent at a time: when none of them gets a reply, the rest is not sent."""


class Cascade:
    """A verifier, and a judge for what it leaves uncertain.

    Args:
        verifier: the local model.
        judge: asked per claim; a decision model is asked about all claims of an answer in one call.
        band: claims whose local support lies in it (both ends included) are reviewed, and those whose local
            verdict is ``review``; by default only the latter.
        max_judged: at most so many claims of one answer are sent.
        budget: of tokens and calls for this cascade, on top of any that the endpoint has. A limit on money
            belongs to the endpoint, which knows the prices.
        deadline_ms: milliseconds for the judge's part of one answer.

    Raises:
        ConfigurationError: an option cannot work.
    """

    def __init__(
        self,
        verifier: Verifier,
        judge: Judge,
        *,
        band: tuple[float, float] | None = None,
        max_judged: int | None = None,
        budget: Budget | None = None,
        deadline_ms: float | None = None,
    ) -> None:
        if band is not None and not 0.0 <= band[0] <= band[1] <= 1.0:
            raise ConfigurationError(f"band must be (low, high) with 0 <= low <= high <= 1, not {band!r}")
        if max_judged is not None and max_judged < 0:
            raise ConfigurationError(f"max_judged must not be negative: {max_judged}")
        if deadline_ms is not None and not 0 < deadline_ms < float("inf"):
            raise ConfigurationError(f"deadline_ms must be a positive number, not {deadline_ms!r}")
        if budget is not None and budget.cost is not None:
            raise ConfigurationError("a budget with a cost belongs to the endpoint, which knows the prices")
        self._verifier = verifier
        self._judge = judge
        self._band = band
        self._max_judged = max_judged
        self._budget = budget
        self._deadline = None if deadline_ms is None else deadline_ms / 1000.0

    def verify(
        self,
        answer: str | None,
        sources: Iterable[SourceLike],
        *,
        question: str | None = None,
        **options: Any,
    ) -> CascadeReport:
        """Check an answer; works where the thread already runs an event loop.

        Args:
            answer: plain text or Markdown; ``None`` counts as empty.
            sources: as for :meth:`surefoot.Verifier.verify`.
            question: carried into the report, and shown to the judge.
            options: further ones of :meth:`surefoot.Verifier.verify`.

        Raises:
            InputError: an argument has the wrong type.
            ModelError: the local model cannot be loaded.
        """
        started = time.perf_counter()
        local = self._verifier.verify(answer, sources, question=question, **options)
        return run_sync(self.settle(local, started=started))

    async def averify(
        self,
        answer: str | None,
        sources: Iterable[SourceLike],
        *,
        question: str | None = None,
        **options: Any,
    ) -> CascadeReport:
        """:meth:`verify` for asynchronous code: the local check runs in a thread."""
        started = time.perf_counter()
        local = await asyncio.to_thread(self._verifier.verify, answer, sources, question=question, **options)
        return await self.settle(local, started=started)

    async def settle(self, local: TruthfulnessReport, *, started: float | None = None) -> CascadeReport:
        """Ask the judge about the uncertain claims of a report that exists already.

        Args:
            local: report of a verifier.
            started: value of ``time.perf_counter()`` from which ``seconds`` counts; now by default.
        """
        started = time.perf_counter() if started is None else started
        order = self._order(local)
        judged = await self._ask(local, order)
        claims = list(local.claims)
        decisions: list[Decision] = []
        for index in order:
            decision, claims[index] = decided(index, local.claims[index], judged)
            decisions.append(decision)
        report = summed_up(local, tuple(claims))
        failed = [item for item in decisions if not item.settled and failures(item.reasons)]
        reasons = tuple(dict.fromkeys(reason for item in failed for reason in failures(item.reasons)))
        if failed:
            report = replace(report, degraded=True, reasons=tuple(dict.fromkeys((*report.reasons, *reasons))))
        return CascadeReport(
            report=report,
            local=local,
            decisions=tuple(decisions),
            usage=judged.usage,
            model=self._judge.model,
            prompt_version=self._judge.prompt_version,
            degraded=report.degraded,
            reasons=report.reasons,
            seconds=time.perf_counter() - started,
            detail=judged.detail,
        )

    def _order(self, report: TruthfulnessReport) -> list[int]:
        """Claims in the review band, the most uncertain first; without a support, nothing is known at all."""
        found: list[tuple[float, int]] = []
        if Reason.NO_SOURCES in report.reasons:
            return []
        for index, claim in enumerate(report.claims):
            if claim.kind is not ClaimKind.CLAIM or claim.verdict is Verdict.NOT_CHECKABLE:
                continue
            support = claim.support
            inside = (
                self._band is not None and support is not None and self._band[0] <= support <= self._band[1]
            )
            if inside or claim.verdict is Verdict.REVIEW:
                found.append((-1.0 if support is None else abs(support - 0.5), index))
        return [index for _, index in sorted(found)]

    async def _ask(self, local: TruthfulnessReport, order: Sequence[int]) -> Judged:
        judged = Judged()
        within = list(order if self._max_judged is None else order[: self._max_judged])
        judged.left_out.update(dict.fromkeys(order[len(within) :], Reason.BUDGET_EXHAUSTED))
        deadline = None if self._deadline is None else time.monotonic() + self._deadline
        size = len(within) if self._judge.in_one_call else _WAVE
        at = 0
        while at < len(within):
            wave: list[int] = []
            held: list[Reservation] = []
            for index in within[at : at + max(size, 1)]:
                if not self._reserve(local, index, held):
                    break
                wave.append(index)
            if not wave:
                judged.left_out.update(dict.fromkeys(within[at:], Reason.BUDGET_EXHAUSTED))
                break
            at += len(wave)
            result = await self._wave(local, wave, held, deadline)
            judged.usage = judged.usage + result.usage
            judged.detail = judged.detail or result.detail
            if not result.claims:
                judged.left_out.update(dict.fromkeys(wave, Reason.JUDGE_FAILED))
                continue
            judged.judgements.update(zip(wave, result.claims, strict=True))
            down = [endpoint_failure(item) for item in result.claims]
            if all(down):
                # Nobody is there: the other claims would only wait for the same failure.
                judged.left_out.update(dict.fromkeys(within[at:], down[0] or Reason.JUDGE_FAILED))
                break
        return judged

    async def _wave(
        self,
        local: TruthfulnessReport,
        wave: Sequence[int],
        held: Sequence[Reservation],
        deadline: float | None,
    ) -> Judgement:
        spans = [(local.claims[index].start, local.claims[index].end) for index in wave]
        usage: Usage | None = None
        try:
            result = await self._judge.ajudge_claims(
                local.sources, local.answer, question=local.question, spans=spans, deadline=deadline
            )
            usage = result.usage
        finally:
            for place, reservation in enumerate(held):
                if self._budget is not None:
                    self._budget.settle(reservation, usage if place == 0 else None)
        return result

    def _reserve(self, local: TruthfulnessReport, index: int, held: list[Reservation]) -> bool:
        """Set aside what judging a claim can use at most; ``False`` where that is more than there is."""
        if self._budget is None:
            return True
        claim = local.claims[index]
        tokens = self._judge.token_bound(
            local.sources, local.answer, local.answer[claim.start : claim.end], local.question
        )
        taken: list[Reservation] = []
        try:
            for _ in range(self._judge.calls_per_claim):
                taken.append(self._budget.reserve(tokens, None))
        except BudgetExceededError:
            for reservation in taken:
                self._budget.settle(reservation, None)
            return False
        held.extend(taken)
        return True
