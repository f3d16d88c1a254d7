"""The verifier: an answer and its sources in, a report out.

The order of the steps is the order of this file: read the sources, segment the answer, find the markers,
check the claims, judge the citations, sum up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from surefoot.citations import (
    MAX_MARKERS,
    assign,
    citations_from_records,
    find_markers,
    known_keys,
    placed,
    resolve,
    strip_markers,
)
from surefoot.citations.alce import CitationMode, check_citations, merge_citations
from surefoot.errors import ConfigurationError, InputError
from surefoot.evidence.index import EvidenceIndex
from surefoot.evidence.lexicon import load_lexicon
from surefoot.inference.entailment import NliModel
from surefoot.inference.session import Arithmetic, check_arithmetic
from surefoot.models.manifest import Calibration, resolve_model
from surefoot.schema import (
    Citation,
    Claim,
    ClaimKind,
    Reason,
    Source,
    TruthfulnessReport,
    Verdict,
)
from surefoot.segment import Segment, plain_text, segment_answer
from surefoot.sources import SourceLike, coerce_sources
from surefoot.verify.check import ALL_STEPS, ClaimChecker, Outcome
from surefoot.verify.summary import summarise

__all__ = ["ABLATIONS", "Verifier"]

Progress = Callable[[int, int], None]

ABLATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    f"without {step}": {"steps": ALL_STEPS - {step}} for step in sorted(ALL_STEPS)
}
"""Options that switch off one step each, for measuring what it does."""

_models: dict[tuple[str | None, int | None, str | None, Arithmetic], NliModel] = {}
_models_lock = threading.Lock()


class Verifier:
    """Checks answers against sources with an NLI cross-encoder.

    The model is loaded at the first check (or by :meth:`load`) and shared by all verifiers of the process
    that name the same one. A verifier may be used from many threads at once.

    Args:
        model: ``None`` for the bundled model; else a bundled model's name, a folder, or a Hugging Face name.
        citations: with ``"required"`` an answer without citations has groundedness 0; with ``"optional"`` the
            citation term is dropped and the score rescaled.
        threads: pairs scored at a time; every available core by default.
        min_words: sentences with fewer words are ``too_short``.
        multilingual: the model reads more than English; without it, claims in other languages are ``review``.
        max_claims: claims beyond this number are not checked but ``review``.
        deadline: seconds after which the claims left are ``review``; none by default.
        preset: thresholds for a task, by a name that the model's manifest knows; general ones by default.
        download: allow one download of a Hugging Face model that is not on this machine yet.
        revision: commit, tag or branch of a Hugging Face model.
        arithmetic: ``"int8"`` is faster on processors with VNNI or AMX and moves scores a little; elsewhere
            it stays ``"float32"`` (:class:`~surefoot.inference.pairs.PairModel`); ``report.model`` says
            which.
        steps: for measurements only: the steps to use, see :data:`ABLATIONS`.

    Raises:
        ConfigurationError: an option is out of range.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        citations: CitationMode = "required",
        threads: int | None = None,
        min_words: int = 4,
        multilingual: bool = False,
        max_claims: int = 5_000,
        deadline: float | None = None,
        preset: str | None = None,
        download: bool = False,
        revision: str | None = None,
        arithmetic: Arithmetic = "float32",
        steps: Collection[str] = ALL_STEPS,
    ) -> None:
        if citations not in ("required", "optional"):
            raise ConfigurationError(f"citations must be 'required' or 'optional', not {citations!r}")
        for name, value, least in (
            ("threads", threads, 1),
            ("min_words", min_words, 1),
            ("max_claims", max_claims, 0),
        ):
            if value is not None and value < least:
                raise ConfigurationError(f"{name} must be at least {least}, not {value}")
        if deadline is not None and not deadline > 0:
            raise ConfigurationError(f"deadline must be a positive number of seconds, not {deadline}")
        unknown = frozenset(steps) - ALL_STEPS
        if unknown:
            raise ConfigurationError(f"unknown steps: {sorted(unknown)}; known: {sorted(ALL_STEPS)}")
        check_arithmetic(arithmetic)
        self._name = model
        self._citations: CitationMode = citations
        self._threads = threads
        self._min_words = min_words
        self._multilingual = multilingual
        self._max_claims = max_claims
        self._deadline = deadline
        self._preset = preset
        self._download = download
        self._revision = revision
        self._arithmetic: Arithmetic = arithmetic
        self._steps = frozenset(steps)
        self._model: NliModel | None = None
        self._calibration = Calibration()

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def load(self) -> None:
        """Load the model now rather than at the first check.

        Raises:
            ModelError: the model cannot be found, is damaged, or fails its self-test.
            ConfigurationError: the model has no such preset.
        """
        if self._model is not None:
            return
        name = None if self._name is None else os.fspath(self._name)
        key = (name, self._threads, self._revision, self._arithmetic)
        with _models_lock:
            loaded = _models.get(key)
            if loaded is None:
                resolved = resolve_model(
                    self._name, task="nli", download=self._download, revision=self._revision
                )
                loaded = _models[key] = NliModel(resolved, threads=self._threads, arithmetic=self._arithmetic)
            calibration = loaded.record.calibration
            self._calibration = calibration if self._preset is None else calibration.preset(self._preset)
            self._model = loaded

    def verify(
        self,
        answer: str | None,
        sources: Iterable[SourceLike],
        *,
        question: str | None = None,
        citations: Sequence[Mapping[str, Any] | Citation] | None = None,
        citation_pattern: str | None = None,
        exhaustive: bool = False,
        progress: Progress | None = None,
    ) -> TruthfulnessReport:
        """Check an answer.

        Args:
            answer: plain text or Markdown; ``None`` counts as empty.
            sources: strings, mappings, :class:`~surefoot.Source` records or ``None``, as retrieved.
            question: carried into the report.
            citations: records of the caller's own, see :func:`~surefoot.citations.citations_from_records`.
            citation_pattern: a regular expression for markers of another form; its first group, or the one
                named ``key``, is the key. Its running time is the caller's responsibility.
            exhaustive: score every (claim, passage window) pair; slow, for comparison.
            progress: called with (claims done, claims to do).

        Returns:
            A report; undefined figures are ``None`` with a reason.

        Raises:
            InputError: an argument has the wrong type.
            ModelError: the model cannot be loaded.
        """
        started = time.perf_counter()
        deadline = self._due()
        text = _text("answer", answer) or ""
        question = _text("question", question)
        records, duplicated = coerce_sources(sources)
        markers = find_markers(text, pattern=citation_pattern, known=known_keys(records))
        handed_in = citations_from_records(citations, records) if citations else ()
        found = placed(resolve(markers, records, records=handed_in), text)
        segments = segment_answer(text, min_words=self._min_words)
        spans = [(segment.start, segment.end) for segment in segments]
        at = sorted((c for c in found if c.start >= 0), key=lambda c: (c.start, c.end))
        cited = [[at[number] for number in numbers] for numbers in assign(at, spans, text)]

        reasons = _reasons(text, records, segments, found, duplicated, len(markers) >= MAX_MARKERS)
        model_name = "none"
        claims: tuple[Claim, ...]
        if Reason.NO_SOURCES in reasons or Reason.NO_CHECKABLE_CLAIM in reasons:
            claims = tuple(
                _claim(text, segment, None, own) for segment, own in zip(segments, cited, strict=True)
            )
        else:
            checker = self._checker(records, exhaustive=exhaustive)
            model_name = self._loaded.title
            shown = [plain_text(strip_markers(text, s.start, s.end, markers)) for s in segments]
            outcomes = self._outcomes(checker, segments, shown, progress, deadline)
            claims = tuple(
                _claim(text, segment, outcome, own)
                for segment, outcome, own in zip(segments, outcomes, cited, strict=True)
            )
            support = _Support(checker, shown, outcomes, deadline)
            claims = check_citations(claims, support, citations=self._citations)
            if support.late:
                reasons.append(Reason.DEADLINE)
        merged = merge_citations(found, claims)
        return summarise(
            text,
            question,
            records,
            claims,
            merged,
            reasons=reasons,
            mode=self._citations,
            model=model_name,
            seconds=time.perf_counter() - started,
        )

    def check_claims(
        self, claims: Iterable[str], sources: Iterable[SourceLike], *, exhaustive: bool = False
    ) -> tuple[Claim, ...]:
        """Check statements as they are, each as one claim: no segmentation, no citations, no kinds.

        Args:
            claims: statements; an empty one is ``not_checkable``.
            sources: as for :meth:`verify`.
            exhaustive: as for :meth:`verify`.

        Returns:
            One claim per statement, in order; ``start`` is 0 and ``end`` its length.
        """
        if isinstance(claims, str):
            raise InputError("claims must be a list of strings, not one string")
        claims = [_text(f"claims[{index}]", claim) or "" for index, claim in enumerate(claims)]
        records, _ = coerce_sources(sources)
        segments = [
            Segment(0, len(text), ClaimKind.CLAIM if text.strip() else ClaimKind.TOO_SHORT, index)
            for index, text in enumerate(claims)
        ]
        if not any(source.text.strip() for source in records):
            return tuple(_claim(text, part, None, []) for text, part in zip(claims, segments, strict=True))
        outcomes = self._outcomes(
            self._checker(records, exhaustive=exhaustive),
            segments,
            [plain_text(text) for text in claims],
            None,
            self._due(),
        )
        return tuple(
            _claim(text, segment, outcome, [])
            for text, segment, outcome in zip(claims, segments, outcomes, strict=True)
        )

    @property
    def _loaded(self) -> NliModel:
        self.load()
        if self._model is None:  # load() sets it or raises
            raise ConfigurationError("the model is not loaded")
        return self._model

    def _due(self) -> float | None:
        """When the check that begins now has to end."""
        return None if self._deadline is None else time.monotonic() + self._deadline

    def _checker(self, sources: Sequence[Source], *, exhaustive: bool) -> ClaimChecker:
        index = EvidenceIndex(sources, load_lexicon(), static="static" in self._steps)
        model = self._loaded
        return ClaimChecker(
            model,
            index,
            calibration=self._calibration,
            multilingual=self._multilingual,
            steps=self._steps,
            exhaustive=exhaustive,
        )

    def _outcomes(
        self,
        checker: ClaimChecker,
        segments: Sequence[Segment],
        shown: Sequence[str],
        progress: Progress | None,
        deadline: float | None,
    ) -> list[Outcome | None]:
        """One outcome per segment; ``None`` for those that are no claims."""
        checkable = [index for index, segment in enumerate(segments) if segment.kind is ClaimKind.CLAIM]
        within = checkable[: self._max_claims]
        results = checker.check([shown[index] for index in within], progress=progress, deadline=deadline)
        outcomes: list[Outcome | None] = [None] * len(segments)
        for index in checkable[self._max_claims :]:
            outcomes[index] = Outcome(Verdict.REVIEW, (Reason.TOO_MANY_CLAIMS,))
        for index, result in zip(within, results, strict=True):
            outcomes[index] = result
        return outcomes


class _Support:
    """Support of a claim by some sources, for the citation check; none after the deadline."""

    def __init__(
        self,
        checker: ClaimChecker,
        shown: Sequence[str],
        outcomes: Sequence[Outcome | None],
        deadline: float | None,
    ) -> None:
        self._checker = checker
        self._shown = shown
        self._outcomes = outcomes
        self._deadline = deadline
        self.late = False

    def __call__(self, claim: int, source_ids: tuple[str, ...]) -> float | None:
        outcome = self._outcomes[claim]
        if outcome is None or outcome.support is None:
            return None
        # The verdict already rests on exactly these sources: asking again would cost and change nothing.
        if outcome.basis and outcome.basis == frozenset(source_ids) and outcome.verdict is Verdict.SUPPORTED:
            return outcome.support
        if self._deadline is not None and time.monotonic() > self._deadline:
            self.late = True
            return None
        return self._checker.support(self._shown[claim], source_ids)


def _text(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} must be a string or None, not {type(value).__name__}")
    return value


def _reasons(
    answer: str,
    sources: Sequence[Source],
    segments: Sequence[Segment],
    citations: Sequence[Citation],
    duplicated: bool,
    too_many_markers: bool,
) -> list[Reason]:
    reasons: list[Reason] = []
    if not answer.strip():
        reasons.append(Reason.EMPTY_ANSWER)
    if not any(source.text.strip() for source in sources):
        reasons.append(Reason.NO_SOURCES)
    if not any(segment.kind is ClaimKind.CLAIM for segment in segments):
        reasons.append(Reason.NO_CHECKABLE_CLAIM)
    elif not citations:
        reasons.append(Reason.NO_CITATIONS)
    if duplicated:
        reasons.append(Reason.DUPLICATE_SOURCE_ID)
    if too_many_markers:
        reasons.append(Reason.TOO_MANY_MARKERS)
    return reasons


def _claim(answer: str, segment: Segment, outcome: Outcome | None, citations: Sequence[Citation]) -> Claim:
    if segment.kind is not ClaimKind.CLAIM:
        verdict, reasons = Verdict.NOT_CHECKABLE, (Reason.NOT_A_CLAIM,)
    else:
        verdict, reasons = Verdict.REVIEW, (Reason.NO_SOURCES,)
    if outcome is not None:
        verdict, reasons = outcome.verdict, outcome.reasons  # type: ignore[assignment]
    return Claim(
        text=answer[segment.start : segment.end],
        start=segment.start,
        end=segment.end,
        kind=segment.kind,
        verdict=verdict,
        reasons=reasons,
        support=None if outcome is None else outcome.support,
        contradiction=None if outcome is None else outcome.contradiction,
        evidence=() if outcome is None else outcome.evidence,
        citations=tuple(citations),
        detail=None if outcome is None else outcome.detail,
        block=segment.block,
    )
