"""A language model as a judge of hallucination: fenced prompt, strict parsing, votes, detected attacks."""

from __future__ import annotations

from surefoot.judge.core import Judge
from surefoot.judge.parsing import ParsedReply, parse_reply
from surefoot.judge.prompts import PROMPT_VERSION
from surefoot.judge.records import ClaimJudgement, Flag, Judgement, Vote

__all__ = [
    "PROMPT_VERSION",
    "ClaimJudgement",
    "Flag",
    "Judge",
    "Judgement",
    "ParsedReply",
    "Vote",
    "parse_reply",
]
