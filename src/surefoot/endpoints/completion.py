"""Reading a chat completion: strict where a wrong reading could become a verdict, lenient elsewhere."""

from __future__ import annotations

from typing import Any

from surefoot.endpoints.calls import printable
from surefoot.endpoints.records import ChatReply, TokenLogprob, Usage

__all__ = ["read_completion"]


def read_completion(parsed: Any, *, model: str, usage: Usage) -> ChatReply:
    """The reply in a chat completion.

    Args:
        parsed: the JSON of the server.
        model: the name as asked for, used where the server gives none.
        usage: of the call.

    Raises:
        ValueError: it is none; the message says why.
        TypeError: it has another shape; so do KeyError and AttributeError.
    """
    if "choices" not in parsed and parsed.get("error"):
        raise ValueError("an error with a status of success")
    if not isinstance(parsed["choices"], list) or not parsed["choices"]:
        raise ValueError("no choices")
    choice = parsed["choices"][0]
    message = choice["message"]
    content, refusal, finish = message.get("content"), message.get("refusal"), choice.get("finish_reason")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") in {"text", "output_text"})
    if refusal is not None and not isinstance(refusal, str):
        raise ValueError("a refusal that is no text")
    if not refusal and finish == "content_filter":
        refusal = "content_filter"
    if content is None and (refusal or finish == "length"):
        content = ""  # nothing was written: it refused, or used up its tokens with thinking
    if not isinstance(content, str):
        raise ValueError("no content")
    named = parsed.get("model")
    return ChatReply(
        text=printable(content),
        model=printable(named) if isinstance(named, str) and named else model,
        usage=usage,
        finish_reason=finish if isinstance(finish, str) else None,
        refusal=printable(refusal) if refusal else None,
        logprobs=_logprobs(choice.get("logprobs")),
    )


def _logprobs(value: Any) -> tuple[TokenLogprob, ...] | None:
    """The log probabilities of a choice; ``None`` where they are missing or not of that kind."""
    try:
        tokens = []
        for entry in value["content"]:
            top = tuple(
                (_text(one["token"]), _log(one["logprob"])) for one in entry.get("top_logprobs") or ()
            )
            tokens.append(TokenLogprob(_text(entry["token"]), _log(entry["logprob"]), top))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return tuple(tokens) or None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return printable(value)


def _log(value: Any) -> float:
    # Rounding makes some servers report a little more than 0. NaN is refused, -Infinity is no JSON.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e9 <= value <= 1e-3:
        raise ValueError("no logarithm of a probability")
    return min(0.0, float(value))
