"""Decision models: typed questions about one text, each answered with a probability in a single call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Unpack

from surefoot.endpoints.calls import Endpoint, EndpointOptions, Limits, token_bound
from surefoot.endpoints.http import Host, read_key
from surefoot.endpoints.loop import run, run_sync
from surefoot.endpoints.records import DecisionReply, check_deadline
from surefoot.endpoints.wire import printable
from surefoot.errors import InputError

__all__ = ["DecisionEndpoint"]

_ANSWER_TOKENS: Final = 32
"""Upper bound on the tokens that a server may count for one answer; most count none."""


class DecisionEndpoint(Endpoint):
    """A decision model: ``POST /v1/systemone``.

    Args:
        model: name of the model.
        base_url: address of the server, with or without ``/v1`` at the end.
        api_key: the key; by default from the environment.
        api_key_env: environment variable with the key; ``None`` reads none.
        headers: sent with every request.
        options: ``timeout``, ``retries``, ``concurrency``, ``budget``, ``input_price``, ``output_price``; see
            :class:`~surefoot.endpoints.calls.Limits`.

    Raises:
        ConfigurationError: an option has an invalid value.
        MissingExtraError: the extra ``judge`` is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        host = Host(base_url, key=read_key(api_key, api_key_env), headers=headers)
        super().__init__(model, host, Limits(**options))
        self._path = "/systemone" if host.url.endswith("/v1") else "/v1/systemone"

    async def decide(
        self,
        state: str | Mapping[str, Any],
        questions: Mapping[str, str],
        *,
        deadline: float | None = None,
    ) -> DecisionReply:
        """The probability of "yes" for each question.

        Args:
            state: what the questions are about: text, or an object of plain values.
            questions: for each id a statement that is true or false.
            deadline: value of ``time.monotonic()`` by which the call ends, whatever happens.

        Raises:
            InputError: there is no question, or ``state`` cannot be written as JSON.
            ConfigurationError: ``deadline`` is not a number.
            EndpointTimeoutError: no reply in time.
            EndpointUnavailableError: no connection, 429 or 5xx after all retries.
            EndpointRejectedError: the server does not accept the request.
            EndpointReplyError: an answer is missing, has another type, or is not a number in [0, 1].
            BudgetExceededError: the call might exceed the budget.
        """
        return await run(self._decide(*_checked(state, questions), deadline))

    def decide_sync(
        self,
        state: str | Mapping[str, Any],
        questions: Mapping[str, str],
        *,
        deadline: float | None = None,
    ) -> DecisionReply:
        """:meth:`decide` for synchronous code, with or without a running event loop."""
        return run_sync(self._decide(*_checked(state, questions), deadline))

    async def _decide(self, state: str, questions: dict[str, str], deadline: float | None) -> DecisionReply:
        check_deadline(deadline)
        body = {
            "model": self.model,
            "state": json.loads(state),
            "questions": {name: {"type": "noul", "instructions": text} for name, text in questions.items()},
        }
        async with self.calling(deadline) as call:
            outcome = await call.send(
                self._path,
                body,
                input_tokens=token_bound([state, *questions, *questions.values()]),
                output_tokens=_ANSWER_TOKENS * len(questions),
            )
            model, probabilities = call.read(
                outcome, lambda parsed: _answers(parsed, questions), shape="decision"
            )
            return DecisionReply(probabilities, model or self.model, call.usage())


def _checked(state: str | Mapping[str, Any], questions: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A copy of both, as what can be sent; the state as JSON."""
    if not isinstance(questions, Mapping) or not questions:
        raise InputError("questions must be a mapping of ids to statements, and not empty")
    if not all(isinstance(part, str) for pair in questions.items() for part in pair):
        raise InputError("the ids of the questions and the questions must be strings")
    asked = {printable(name): text for name, text in questions.items()}
    if len(asked) != len(questions):
        raise InputError("two ids of questions differ in lone surrogates only")
    if not isinstance(state, str | Mapping):
        raise InputError("state must be a string or a mapping")
    try:
        plain = state if isinstance(state, str) else dict(state)
        return json.dumps(plain, ensure_ascii=False, allow_nan=False), asked
    except (TypeError, ValueError, RecursionError):
        pass
    raise InputError("state holds something that cannot be written as JSON")


def _answers(parsed: Any, questions: Mapping[str, str]) -> tuple[str | None, dict[str, float]]:
    """Model and probabilities; raises ValueError, TypeError, KeyError or AttributeError if invalid."""
    answers = parsed["answers"]
    if not isinstance(answers, dict):
        raise ValueError("answers is not an object")
    probabilities: dict[str, float] = {}
    for name in questions:
        answer = answers.get(name)
        if answer is None:
            raise ValueError(f"no answer to question {name}")
        value = answer["noul"] if answer["type"] == "noul" else None
        # bool is a kind of int in Python, and True would pass for a probability of 1.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"the answer to question {name} is not a probability")
        if not 0.0 <= value <= 1.0:  # false for NaN as well
            raise ValueError(f"the answer to question {name} is not in [0, 1]")
        probabilities[name] = float(value)
    named = parsed.get("model")
    return (printable(named) if isinstance(named, str) else None), probabilities
