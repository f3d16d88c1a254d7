"""What a pipeline hands back: a result, an event for each stage, and why something is missing from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from surefoot.endpoints.records import Usage
from surefoot.errors import SurefootError
from surefoot.judge.records import Judgement
from surefoot.rerank.records import Ranking
from surefoot.schema import Record, Source, TruthfulnessReport, plain

__all__ = ["Draft", "PipelineResult", "Quote", "Stage", "StageCode", "StageError", "StageEvent", "StageNote"]


class Stage(StrEnum):
    """The steps of a pipeline, in order."""

    RETRIEVE = "retrieve"
    RERANK = "rerank"
    GENERATE = "generate"
    VERIFY = "verify"
    JUDGE = "judge"
    DONE = "done"
    """No step: the last event, which holds the result."""


class StageCode(StrEnum):
    """What a stage could not do, or did otherwise than usual. Codes are stable; more may be added."""

    NO_PASSAGES = "no_passages"
    """Nothing was retrieved, or only empty passages."""
    WEAK_EVIDENCE = "weak_evidence"
    """No passage speaks of what is asked: nothing was generated."""
    NOT_RERANKED = "not_reranked"
    """The order is, wholly or in part, the first stage's."""
    SOURCES_LEFT_OUT = "sources_left_out"
    """Some passages did not fit into the prompt."""
    GENERATOR_FAILED = "generator_failed"
    GENERATOR_TIMEOUT = "generator_timeout"
    GENERATOR_REFUSED = "generator_refused"
    """The model refused, or its endpoint filtered the answer."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    EMPTY_ANSWER = "empty_answer"
    ANSWER_CUT = "answer_cut"
    """The answer ends at the limit of its length."""
    VERIFIER_FAILED = "verifier_failed"
    """There is no report: the answer is unchecked."""
    CHECK_INCOMPLETE = "check_incomplete"
    """Some claims could not be checked; the report says why."""
    JUDGE_FAILED = "judge_failed"
    """The judge gave no score."""


_NO_FAILURE: Final = frozenset({StageCode.NO_PASSAGES, StageCode.WEAK_EVIDENCE})


class StageError(SurefootError):
    """A stage of a pipeline failed, so that there is no result; chained to what the stage raised.

    Attributes:
        stage: which one.
    """

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage


@dataclass(frozen=True, slots=True)
class StageNote:
    """Something that a stage could not do, or did otherwise than usual.

    Attributes:
        stage: which one.
        code: what.
        detail: the same for people; never holds a secret.
    """

    stage: Stage
    code: StageCode
    detail: str = ""

    @property
    def degrades(self) -> bool:
        """Whether the result is less than was asked for, rather than a proper "no"."""
        return self.code not in _NO_FAILURE


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that the extractive answerer quotes.

    Attributes:
        number: of the source in the answer: ``[Doc number]``, from 1.
        source_id: its id.
        start, end: where the sentence stands in the source's text, in code points.
        text: as it is quoted: without Markdown, citation markers and line breaks.
        relevance: what it was chosen by, 0 to 1.
    """

    number: int
    source_id: str
    start: int
    end: int
    text: str
    relevance: float


@dataclass(frozen=True, slots=True)
class Draft:
    """What a generator wrote.

    Attributes:
        text: the answer; ``None`` where there is none.
        model: name of the generator.
        prompt_version: of the prompt, where there was one.
        quotes: what the extractive answerer quoted, in the order of the answer.
        usage: tokens and money of the call, as far as it is known.
        notes: what went wrong or was left out.
    """

    text: str | None
    model: str
    prompt_version: str | None = None
    quotes: tuple[Quote, ...] = ()
    usage: Usage | None = None
    notes: tuple[StageNote, ...] = ()


@dataclass(frozen=True, slots=True)
class PipelineResult(Record):
    """An answer with everything that it rests on.

    Attributes:
        question: as asked.
        retrieved: the passages that were found, in the order of the first stage.
        ranked: the passages that the answer was written from: ``[Doc n]`` is ``ranked[n - 1]``.
        answer: ``None`` where none could be generated; ``notes`` say why.
        cannot_answer: the answer says that the passages do not answer the question, or nothing that could
            be checked besides.
        evidence: how far the passages speak of what is asked, 0 to 1; ``None`` where that was not looked at.
        draft: the answer with its quotes, the model that wrote it, and what the call used.
        report: the check of the answer; ``None`` where there is no answer, or the check failed.
        judgement: of the judge; ``None`` where there is none, or nothing to judge.
        notes: what a stage could not do, or did otherwise than usual.
        timings: seconds that each stage took, for the stages that ran.
        seconds: of the whole.
    """

    question: str
    retrieved: tuple[Source, ...] = ()
    ranked: Ranking = field(default_factory=lambda: Ranking("", ()))
    answer: str | None = None
    cannot_answer: bool = False
    evidence: float | None = None
    draft: Draft | None = None
    report: TruthfulnessReport | None = None
    judgement: Judgement | None = None
    notes: tuple[StageNote, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict, hash=False)
    seconds: float = 0.0

    @property
    def degraded(self) -> bool:
        """Whether a stage failed, in whole or in part."""
        return any(note.degrades for note in self.notes)

    @property
    def reasons(self) -> tuple[StageCode, ...]:
        """The codes of ``notes``, each once."""
        return tuple(dict.fromkeys(note.code for note in self.notes))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages of ``ranked``: ``[Doc n]`` is ``sources[n - 1]``."""
        return tuple(ranked.item for ranked in self.ranked)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dicts, lists, strings and numbers."""
        return {**plain(self), "degraded": self.degraded, "reasons": [str(code) for code in self.reasons]}


@dataclass(frozen=True, slots=True)
class StageEvent:
    """A stage has ended.

    Attributes:
        stage: which one; ``done`` comes last.
        seconds: that it took; of the whole for ``done``.
        result: everything that is known so far; all of it for ``done``.
        notes: of this stage; all of them for ``done``.
    """

    stage: Stage
    seconds: float
    result: PipelineResult
    notes: tuple[StageNote, ...] = ()
