"""What the replies to a control say about a low score.

A score below the limit of low risk says that the model found nothing wrong. If the model says that of a text
with an invention in it as well, it would have said it whatever the text, and there is no score. The
limit is the same for both, since the prompt's own scale puts a text of which a part is not in the source at
0.5, and a long one with a single invention may get less. Higher scores need no control: nothing is bought
with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from surefoot.judge.records import MEDIUM_FROM, Vote
from surefoot.judge.votes import Tally, tally
from surefoot.schema import Reason

__all__ = ["Checked", "ControlMode", "checked", "is_low"]

ControlMode = Literal["auto", "always", "never"]
"""When a control is asked for: after a low score, together with the question, or not at all."""

_NO_REPLY: Final = frozenset({Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT, Reason.BUDGET_EXHAUSTED})
"""Reasons that lie with the endpoint or with a limit: the control was not carried out."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Votes after the control.

    Attributes:
        tally: of the votes that still count.
        votes: all of them; those that do not count say why.
        failed: a model failed, and there is no score for that.
    """

    tally: Tally
    votes: tuple[Vote, ...]
    failed: bool


def is_low(score: float | None) -> bool:
    """Whether a score says that nothing is wrong."""
    return score is not None and score < MEDIUM_FROM


def checked(votes: Sequence[tuple[int, Vote]], controls: Mapping[int, Sequence[Vote]]) -> Checked:
    """Take the low votes of models that did not stand the control out of the count.

    Args:
        votes: index of a model, and its vote.
        controls: by index, the replies of the model to the control; none count as not carried out.
    """
    found = {model: _problem(controls.get(model, ())) for model, _ in votes}
    counted: list[Vote] = []
    shown: list[Vote] = []
    failed = False
    for model, vote in votes:
        problem = found[model]
        if problem is None or not is_low(vote.score):
            counted.append(vote)
            shown.append(vote)
            continue
        failed |= Reason.CONTROL_FAILED in problem.reasons
        counted.append(replace(problem, model=vote.model))
        shown.append(replace(vote, reasons=(*vote.reasons, *problem.reasons)))
    result = tally(counted)
    return Checked(result, tuple(shown), failed and result.score is None)


def _problem(replies: Sequence[Vote]) -> Vote | None:
    """A vote without a score that says why the control was not stood; ``None`` where it was."""
    result = tally(replies) if replies else Tally(None, (), None, None)
    if result.score is not None:
        if not is_low(result.score):
            return None
        detail = f"control: {result.score:.2f} for a text with an invented statement in it"
        return Vote("", None, (Reason.CONTROL_FAILED,), detail)
    missing = tuple(reason for reason in result.reasons if reason in _NO_REPLY)
    # A reply that cannot be read, where the question itself got one that can, was talked into it.
    replied = any(not _NO_REPLY.intersection(vote.reasons) for vote in replies)
    first = Reason.CONTROL_FAILED if replied else Reason.CONTROL_SKIPPED
    return Vote("", None, (first, *missing), f"control: {result.detail or 'not asked'}")
