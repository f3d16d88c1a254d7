"""From the reply of a model to a number, or to the reason why there is none.

A verdict is *explicit* when it is a JSON object with the key ``score``, a number behind a word such as
"Score:", or a line that holds nothing but a number. The rules, in this order:

1. A refusal, an empty reply and a reply that was cut at its length hold no verdict.
2. A reply that is JSON as a whole has to be an object with one ``score``: a number in [0, 1], no string, no
   boolean. Nothing else is fished out of it, and broken JSON is no verdict.
3. Of the labelled verdicts (JSON objects and "Score: x") the last one wins: a model that quotes a forged
   score, or changes its mind, says its own last. Where they differ, or the reply holds another decimal
   between 0 and 1, the result carries ``judge_wavered``.
   If the last one is no valid number, there is no verdict: an earlier one is not taken instead.
4. Without a label, lines that are nothing but a number must all say the same number; else the reply must
   start with its only number. Two different numbers without a label are ambiguous, and no verdict.

A number is ``0``, ``1``, ``0.05``, ``.05`` or ``1.0``. ``5``, ``1.7`` and ``-0.1`` are out of range and never
clamped: a model that answers on another scale has not understood the question. ``0,3``, ``50%``, ``7/10``,
``0.2-0.4`` and ``NaN`` are no numbers here: reading them means guessing.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

from surefoot.schema import Reason

__all__ = ["ParsedReply", "parse_reply"]

_TOKEN: Final = re.compile(r"(?<![\w.,])[+\-−]?\.?\d[\w.,:%]{0,40}")
"""Anything that starts like a number, as a whole: ``0.05``, ``0,3``, ``50%``, ``1e5``, ``0.2.1``."""

_PROBABILITY: Final = re.compile(r"(?<![\w.,\-−])(?:0?\.[0-9]{1,20}|1\.0{1,20})(?![\w%,]|\.[0-9])", re.ASCII)
"""A decimal between 0 and 1 anywhere in a reply."""

_VALID: Final = re.compile(r"(?:[0-9]{1,3}(?:\.[0-9]{1,20})?|\.[0-9]{1,20})", re.ASCII)

_LABELLED: Final = re.compile(
    r"\b(?:(?:hallucination|final|overall|my|risk)[ _-]{1,3})?(?:score|verdict|rating|probability|estimate)\b"
    r"[\s\"'*_`)\]]{0,6}(?:is|of|would be|:|=|-{1,2}>|→)[\s\"'*_`(\[$]{0,6}"
    r"(?P<value>[^\s\"'*_`)\]}$]{1,40})",
    re.IGNORECASE,
)
_OBJECT: Final = re.compile(r"\{[^{}]*\}")
_RANGE: Final = re.compile(
    r"[\"'*_`)\]$]{0,3}\s{0,3}(?:[-–—/~]|to\b|or\b|and\b|out of\b|of\b)\s{0,3}[\d.]", re.IGNORECASE
)
_FENCE: Final = re.compile(r"\A\s*```[\w-]{0,20}[^\S\n]*\n(?P<body>.*?)\n?\s*```\s*\Z", re.DOTALL)
_THOUGHT: Final = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_BARE_LINE: Final = re.compile(r"[\s\"'*_`(\[$]{0,6}(?P<value>[^\s\"'*_`()\[\]$]{1,40})[\s\"'*_`)\]$.]{0,6}")


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The number of a reply.

    Attributes:
        score: in [0, 1], or ``None``.
        reasons: why there is none; ``judge_wavered`` beside a score.
        detail: the same in words.
    """

    score: float | None
    reasons: tuple[Reason, ...] = ()
    detail: str | None = None


def parse_reply(text: str, *, finish_reason: str | None = None, refusal: str | None = None) -> ParsedReply:
    """Read the score out of a reply.

    Args:
        text: what the model wrote.
        finish_reason: as the endpoint gave it; ``"length"`` makes the reply incomplete.
        refusal: not ``None`` where the model refused.
    """
    if refusal is not None or finish_reason == "content_filter":
        return ParsedReply(None, (Reason.JUDGE_REFUSED,), "the model refused")
    text = _THOUGHT.sub("", text, count=1).strip()
    if not text:
        return _invalid("the reply is empty")
    if finish_reason == "length":
        return _invalid("the reply was cut at its length")
    if fenced := _FENCE.match(text):
        text = fenced["body"].strip()
    if text.startswith(("{", "[")):
        return _json(text)
    labelled = _labelled(text)
    if labelled:
        return _last(labelled, text)
    return _unlabelled(text)


def _invalid(detail: str) -> ParsedReply:
    return ParsedReply(None, (Reason.JUDGE_REPLY_INVALID,), detail)


def _ambiguous(detail: str) -> ParsedReply:
    return ParsedReply(None, (Reason.JUDGE_REPLY_AMBIGUOUS,), detail)


class _TwiceError(ValueError):
    """A JSON object with two different values under one key."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    scores = [value for key, value in pairs if key == "score"]
    if any(value != scores[0] for value in scores[1:]):
        raise _TwiceError
    return dict(pairs)


def _decode(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_pairs)


def _json(text: str) -> ParsedReply:
    try:
        value = _decode(text)
    except _TwiceError:
        return _ambiguous("the reply gives two scores")
    except (ValueError, RecursionError):
        return _several(text)
    if not isinstance(value, dict) or "score" not in value:
        return _invalid("the reply is JSON without a score")
    return _of_json(value["score"])


def _several(text: str) -> ParsedReply:
    """A reply that starts like JSON and is not: objects one after the other, prose behind one, or broken."""
    labelled = _labelled(text) if text.startswith("{") and _OBJECT.match(text) else []
    # Only whole objects count: a label inside broken JSON is no verdict.
    return _last(labelled, text) if labelled and labelled[0][0] == 0 else _invalid("the reply is broken JSON")


def _of_json(score: object) -> ParsedReply:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return _invalid("the score in the reply is no number")
    if not math.isfinite(score) or not 0 <= score <= 1:
        return _invalid("the score in the reply is not between 0 and 1")
    return ParsedReply(float(score))


def _labelled(text: str) -> list[tuple[int, ParsedReply]]:
    """Labelled verdicts with their position, in order."""
    found: list[tuple[int, ParsedReply]] = []
    covered = 0
    spans: list[tuple[int, int]] = []
    for match in _OBJECT.finditer(text):
        if '"score"' not in match.group():
            continue
        spans.append(match.span())
        try:
            value = _decode(match.group())
        except _TwiceError:
            found.append((match.start(), _ambiguous("the reply gives two scores")))
            continue
        except (ValueError, RecursionError):
            found.append((match.start(), _invalid("the reply is broken JSON")))
            continue
        found.append((match.start(), _of_json(value.get("score"))))
    for match in _LABELLED.finditer(text):
        while covered < len(spans) and spans[covered][1] <= match.start():
            covered += 1
        if covered < len(spans) and spans[covered][0] <= match.start():
            continue  # a key inside an object that was read above
        found.append(
            (match.start(), _number(match["value"], text[match.end("value") : match.end("value") + 20]))
        )
    return sorted(found, key=lambda item: item[0])


def _last(verdicts: list[tuple[int, ParsedReply]], text: str) -> ParsedReply:
    last = verdicts[-1][1]
    differ = any(verdict.score != last.score for _, verdict in verdicts)
    return _with_others(last, text, differ=differ)


def _with_others(verdict: ParsedReply, text: str, *, differ: bool = False) -> ParsedReply:
    """The verdict, marked where the reply names another number that could have been meant as one."""
    if verdict.score is None:
        return verdict
    others = (float(match.group()) for match in _PROBABILITY.finditer(text))
    if differ or any(other != verdict.score for other in others):
        detail = "the reply holds different scores; the last verdict counts"
        return ParsedReply(verdict.score, (Reason.JUDGE_WAVERED,), detail)
    return verdict


def _unlabelled(text: str) -> ParsedReply:
    lines = [line for line in text.splitlines() if line.strip()]
    bare = [
        match["value"]
        for line in lines
        if (match := _BARE_LINE.fullmatch(line)) and _TOKEN.match(match["value"])
    ]
    if bare:
        read = [_number(value, "") for value in bare]
        if (
            len(
                {
                    (item.score, value if item.score is None else "")
                    for item, value in zip(read, bare, strict=True)
                }
            )
            > 1
        ):
            return _ambiguous("the reply gives different numbers")
        return _with_others(read[-1], text)
    tokens = [match.group().rstrip(".,:") for match in _TOKEN.finditer(text)]
    if len(set(tokens)) > 1:
        return _ambiguous("the reply gives different numbers")
    opening = _TOKEN.match(text.lstrip("\"'*_`( ["))
    if opening is None:
        return _invalid("the reply holds no score")
    rest = text.lstrip("\"'*_`( [")[opening.end() :]
    return _number(opening.group(), rest[:20])


def _number(token: str, after: str) -> ParsedReply:
    """The number that ``token`` is, all of it; ``after`` is what follows, to tell a range from a number."""
    token = token.rstrip(".,;:!") if not token.startswith(".") else token[:1] + token[1:].rstrip(".,;:!")
    if _RANGE.match(after):
        return _ambiguous("the reply gives a range or a fraction")
    if not _VALID.fullmatch(token):
        return _invalid("the score in the reply is no number")
    value = float(token)
    return ParsedReply(value) if value <= 1 else _invalid("the score in the reply is not between 0 and 1")
