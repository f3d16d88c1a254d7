"""What a judge hands back: a judgement, the votes that it was made of, and what was found in the texts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from surefoot.endpoints.records import Usage
from surefoot.schema import Reason, RiskLevel

__all__ = ["MEDIUM_FROM", "ClaimJudgement", "Flag", "Judgement", "Vote", "risk_of"]

MEDIUM_FROM = 0.3
HIGH_FROM = 0.7


class Flag(StrEnum):
    """What in the texts tried, or seemed to try, to influence the judge. Codes are stable."""

    INVISIBLE = "invisible"
    """Characters that people do not see: inside words, as tags, overriding the direction, in long runs."""
    ROLE_MARKER = "role_marker"
    """Marks of a chat: ``Assistant:``, ``<|im_start|>``, ``[INST]``."""
    DELIMITER = "delimiter"
    """Something that looks like the end of the quoted text, or like a new section of the prompt."""
    FORGED_VERDICT = "forged_verdict"
    """A score or a verdict on the answer, as prose or as JSON."""
    INSTRUCTION = "instruction"
    """An instruction to whoever reads it: to ignore others, to play a role, to give a rating."""
    ENCODED = "encoded"
    """One of the above in disguise: base64, hexadecimal, rot13, reversed, spaced out, in entities."""
    CONTROL_FAILED = "control_failed"
    """Whatever it is: with these texts before it, the model lets a statement pass that was invented on the
    spot. There is no score then."""


def risk_of(score: float | None) -> RiskLevel:
    """The risk level of a score: low < 0.3 <= medium < 0.7 <= high."""
    if score is None:
        return RiskLevel.UNKNOWN
    if score < MEDIUM_FROM:
        return RiskLevel.LOW
    return RiskLevel.MEDIUM if score < HIGH_FROM else RiskLevel.HIGH


@dataclass(frozen=True, slots=True)
class Vote:
    """One reply of one model.

    Attributes:
        model: as the endpoint names itself, else as it was asked for.
        score: 0 to 1; ``None`` where there was no valid reply.
        reasons: why it is ``None``, or what was odd about the reply.
        detail: the same in words, for people; never holds a secret.
    """

    model: str
    score: float | None
    reasons: tuple[Reason, ...] = ()
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """The judgement on one statement.

    Attributes:
        text: the statement: ``response[start:end]``.
        start, end: its position in the response, in code points.
        score: median of the valid votes, 0 (supported) to 1 (hallucinated); ``None`` where undefined.
        risk_level: of the score.
        reasons: why it is undefined, and what was odd.
        flags: what was found in the texts that the judge was shown for this statement.
        votes: of the window that counted, where a long context was read in windows.
        agreement: share of the valid votes that have the risk level of the score; ``None`` below two.
        detail: what went wrong, for people.
        controls: replies to the statement with an invention in it, one per model that was asked.
    """

    text: str
    start: int
    end: int
    score: float | None
    risk_level: RiskLevel
    reasons: tuple[Reason, ...] = ()
    flags: tuple[Flag, ...] = ()
    votes: tuple[Vote, ...] = ()
    agreement: float | None = None
    detail: str | None = None
    controls: tuple[Vote, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """How likely it is that a response is not supported by its context.

    Attributes:
        score: 0 (every part is supported) to 1 (hallucinated); ``None`` where it is undefined. In the mode
            per claim it is the highest of the claims, and undefined as soon as that of one claim is.
        risk_level: low < 0.3 <= medium < 0.7 <= high; ``unknown`` where the score is ``None``.
        reasons: why the score is undefined, and what was odd: ``hostile_text``, ``partial_context``, ...
        flags: what tried, or seemed to try, to influence the judge. A low score with flags is no approval;
            with ``control_failed`` there is none.
        votes: every reply that was asked for; empty in the mode per claim.
        agreement: share of the valid votes that have the risk level of the score; ``None`` below two. Per
            claim it is the lowest of the claims.
        claims: one result per claim in the mode per claim; else empty.
        model: the models that were asked, joined by ``" + "``.
        prompt_version: of the prompt text; it changes whenever a word of it does.
        usage: calls, tokens and money of the whole judgement, those of failed votes included as far as
            the endpoint reported them.
        seconds: time that it took.
        detail: what went wrong, for people.
        controls: replies to the response with an invention in it, one per model that was asked; empty in the
            mode per claim, and where no control was needed.
    """

    score: float | None
    risk_level: RiskLevel
    reasons: tuple[Reason, ...] = ()
    flags: tuple[Flag, ...] = ()
    votes: tuple[Vote, ...] = ()
    agreement: float | None = None
    claims: tuple[ClaimJudgement, ...] = ()
    model: str = ""
    prompt_version: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    detail: str | None = None
    controls: tuple[Vote, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The judgement as plain dicts, lists, strings and numbers."""
        return plain(self)  # type: ignore[no-any-return]

    def to_json(self, *, indent: int | None = None) -> str:
        """The judgement as ASCII-only JSON: valid even where the response holds lone surrogates."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def plain(value: object) -> Any:
    """Records of this package as plain JSON values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
