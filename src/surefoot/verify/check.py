"""Claims against an evidence index: choose premises, score them cheapest first, compare facts, decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from surefoot.errors import ModelError
from surefoot.evidence.index import EvidenceIndex, Premise, Ranked
from surefoot.facts import compare_facts
from surefoot.inference.entailment import NliModel
from surefoot.language import is_english
from surefoot.models.manifest import Calibration
from surefoot.schema import Evidence, Reason, Verdict
from surefoot.verify.decide import Decision, Scored, decide, doubtful, settled
from surefoot.verify.features import features_of, source_words

__all__ = ["ALL_STEPS", "ClaimChecker", "Outcome"]

Progress = Callable[[int, int], None]

ALL_STEPS: Final = frozenset(
    {"verbatim", "static", "joined", "window", "second_window", "facts", "contradiction_first"}
)
"""The steps that an ablation can switch off."""

_RANKED: Final = 8
_FEW: Final = 3
_PREMISE_ROOM: Final = 128
"""Tokens of a selected premise. Longer ones let more false claims pass: see the ablation table."""
_WINDOW_ROOM: Final = 256
"""Tokens of a window when every one is scored."""
_LEAST_ROOM: Final = 32
"""A claim that leaves a premise fewer tokens than this is not checked but reported as too long."""
_CHUNK: Final = 32
_CHUNK_IN_A_HURRY: Final = 4
"""Claims between two looks at the clock; fewer share a batch then, which costs a little."""
_EVIDENCE: Final = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one claim; fields as in :class:`~surefoot.schema.Claim`."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    support: float | None = None
    contradiction: float | None = None
    evidence: tuple[Evidence, ...] = ()
    detail: str | None = None
    basis: frozenset[str] = frozenset()
    """Ids of the sources in the premise that the decision rests on."""


@dataclass(slots=True)
class _Work:
    text: str
    ranked: list[Ranked]
    room: int
    verbatim: Ranked | None
    only: frozenset[str] | None
    scored: list[Scored] = field(default_factory=list)


class ClaimChecker:
    """Checks claims against one set of sources.

    Args:
        model: the NLI model.
        index: the sources.
        calibration: what makes a decision of scores; the model's own by default.
        multilingual: the model reads other languages than English too.
        steps: a subset of :data:`ALL_STEPS`.
        exhaustive: score every (claim, passage window) pair instead of selected premises.
    """

    def __init__(
        self,
        model: NliModel,
        index: EvidenceIndex,
        *,
        calibration: Calibration | None = None,
        multilingual: bool = False,
        steps: Collection[str] = ALL_STEPS,
        exhaustive: bool = False,
    ) -> None:
        self._model = model
        self._index = index
        self._multilingual = multilingual
        self._steps = frozenset(steps)
        self._exhaustive = exhaustive
        self._encoder = model.pairs.encoder
        self._calibration = model.record.calibration if calibration is None else calibration
        self._words: dict[frozenset[str] | None, float] = {}

    def check(
        self, claims: Sequence[str], *, progress: Progress | None = None, deadline: float | None = None
    ) -> list[Outcome]:
        """Check claims, each given as the text that the model should see.

        Args:
            claims: texts without citation markers and markup.
            progress: called with (claims done, claims to do).
            deadline: :func:`time.monotonic` value after which the claims left are ``review``.

        Returns:
            One outcome per claim, in order.
        """
        outcomes: list[Outcome] = []
        size = _CHUNK if deadline is None else _CHUNK_IN_A_HURRY
        for start in range(0, len(claims), size):
            chunk = claims[start : start + size]
            if deadline is not None and time.monotonic() > deadline:
                outcomes.extend(Outcome(Verdict.REVIEW, (Reason.DEADLINE,)) for _ in claims[start:])
                break
            try:
                outcomes.extend(self._chunk(chunk))
            except ModelError:
                outcomes.extend(self._alone(claim) for claim in chunk)
            if progress is not None:
                progress(len(outcomes), len(claims))
        return outcomes

    def support(self, claim: str, source_ids: Collection[str]) -> float | None:
        """Calibrated support of a claim by some of the sources, joined; ``None`` if it cannot be computed."""
        work = self._prepare(claim, only=frozenset(source_ids))
        if isinstance(work, Outcome):
            return 0.0 if work.verdict is Verdict.UNSUPPORTED else None
        try:
            self._score([work])
        except ModelError:
            return None
        return self._decide(work).support if work.scored else None

    def _alone(self, claim: str) -> Outcome:
        """Check one claim of a batch that failed, so that it fails only by itself."""
        try:
            return self._chunk([claim])[0]
        except ModelError as error:
            return Outcome(Verdict.REVIEW, (Reason.CHECKER_FAILED,), detail=str(error))

    def _chunk(self, claims: Sequence[str]) -> list[Outcome]:
        prepared = [self._prepare(claim, only=None) for claim in claims]
        self._score([item for item in prepared if isinstance(item, _Work)])
        return [item if isinstance(item, Outcome) else self._outcome(item) for item in prepared]

    def _prepare(self, claim: str, *, only: frozenset[str] | None) -> Outcome | _Work:
        if not self._multilingual and not is_english(claim):
            return Outcome(Verdict.REVIEW, (Reason.LANGUAGE,))
        room = self._model.pairs.room(claim)
        if room < _LEAST_ROOM:
            return Outcome(Verdict.REVIEW, (Reason.CLAIM_TOO_LONG,))
        ranked = self._index.rank(claim, limit=_RANKED, only=only)
        if not ranked:
            return Outcome(Verdict.UNSUPPORTED, (Reason.NO_RELEVANT_EVIDENCE,), 0.0, 0.0)
        verbatim = self._index.verbatim(claim, ranked) if "verbatim" in self._steps else None
        return _Work(claim, ranked, room, verbatim, only)

    def _score(self, works: Sequence[_Work]) -> None:
        if self._exhaustive:
            windows = [
                list(self._index.windows(w.text, self._encoder, min(w.room, _WINDOW_ROOM), only=w.only))
                for w in works
            ]
            self._read(works, windows)
            return
        self._read(works, [self._first(work) for work in works])
        open_works = [w for w in works if not w.verbatim and not (w.scored and settled(w.scored))]
        self._read(open_works, [self._window(work, 0) for work in open_works])
        if "second_window" in self._steps:
            # The best sentence may be about something else with the same words: look once more before a claim
            # fails. Claims that found their evidence do not pay for it.
            failing = [w for w in open_works if w.scored and doubtful(w.scored)]
            self._read(failing, [self._window(work, 1) for work in failing])

    def _read(self, works: Sequence[_Work], premises: Sequence[Sequence[Premise]]) -> None:
        """Score premises that were not read yet; all claims share one batch."""
        pairs: list[tuple[_Work, Premise]] = []
        for work, offered in zip(works, premises, strict=True):
            known = {item.premise.text for item in work.scored}
            for premise in offered:
                if premise.text not in known:
                    known.add(premise.text)
                    pairs.append((work, premise))
        scores = self._model.score([(premise.text, work.text) for work, premise in pairs])
        for (work, premise), score in zip(pairs, scores, strict=True):
            work.scored.append(Scored(premise, score))

    def _first(self, work: _Work) -> list[Premise]:
        """The few best sentences, wherever they stand."""
        if work.verbatim is not None:
            return self._joined([work.verbatim], work.room)
        few = work.ranked[: _FEW if "joined" in self._steps else 1]
        # A sentence too long for the usual room is still read, as long as the model can.
        return self._joined(few, min(work.room, _PREMISE_ROOM)) or self._joined(few, work.room)

    def _window(self, work: _Work, place: int) -> list[Premise]:
        """The passage around a sentence, the best or the next: what pronouns refer to, what qualifies it."""
        if "window" not in self._steps or place >= len(work.ranked):
            return []
        room = min(work.room, _PREMISE_ROOM)
        window = self._index.window(work.ranked[place], work.text, self._encoder, room)
        return [] if window is None else [window]

    def _joined(self, ranked: Sequence[Ranked], room: int) -> list[Premise]:
        premise = self._index.joined(ranked, self._encoder, room)
        return [] if premise is None else [premise]

    def _decide(self, work: _Work) -> Decision:
        facts = None
        if "facts" in self._steps and work.verbatim is None:
            facts = compare_facts(work.text, [item.sentence.text for item in work.ranked])
        return decide(
            work.scored,
            facts,
            self._calibration,
            verbatim=work.verbatim is not None,
            contradiction_first="contradiction_first" in self._steps,
            features=self._features(work),
        )

    def _features(self, work: _Work) -> dict[str, float] | None:
        """What the calibration asks for beside the model's probabilities."""
        if self._calibration.decision is None:
            return None
        if work.only not in self._words:
            texts = [s.text for s in self._index.sources if work.only is None or s.id in work.only]
            self._words[work.only] = source_words(texts)
        claim = self._index.tokens_of(work.text)
        return features_of(claim, work.ranked, self._index.lexicon, source_words=self._words[work.only])

    def _outcome(self, work: _Work) -> Outcome:
        if not work.scored:  # beside this claim not even one sentence of evidence fits into the model
            return Outcome(Verdict.REVIEW, (Reason.CLAIM_TOO_LONG,))
        decision = self._decide(work)
        evidence: tuple[Evidence, ...] = ()
        basis: frozenset[str] = frozenset()
        if decision.best is not None:
            evidence = self._evidence(decision.best)
            basis = frozenset(self._index.sources[p.sentence.source].id for p in decision.best.premise.parts)
        return Outcome(
            decision.verdict,
            decision.reasons,
            decision.support,
            decision.contradiction,
            evidence,
            basis=basis,
        )

    def _evidence(self, scored: Scored) -> tuple[Evidence, ...]:
        parts = sorted(scored.premise.parts, key=lambda part: (-part.rank_score, part.sentence.text))
        return tuple(
            Evidence(
                source_id=self._index.sources[part.sentence.source].id,
                start=part.sentence.start,
                end=part.sentence.end,
                text=self._index.shown(part.sentence),
                relevance=part.overlap,
                entailment=scored.score.entailment,
                neutral=scored.score.neutral,
                contradiction=scored.score.contradiction,
            )
            for part in parts[:_EVIDENCE]
        )
