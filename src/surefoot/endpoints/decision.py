"""Decision models: typed questions about one text, each answered with a probability in a single call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from surefoot.endpoints.budget import Budget
from surefoot.endpoints.calls import Caller, Ledger, Limits, check_deadline, parse_json, printable
from surefoot.endpoints.chat import token_bound
from surefoot.endpoints.http import Address, HttpClient, read_key
from surefoot.endpoints.loop import run, run_sync
from surefoot.endpoints.records import DecisionReply
from surefoot.errors import ConfigurationError, EndpointReplyError, InputError

__all__ = ["DecisionEndpoint", "Flavour"]

Flavour = Literal["systemone", "openai"]

_PATHS: Final[Mapping[str, str]] = {"systemone": "/v1/systemone", "openai": "/v1/decisions"}
_ANSWER_TOKENS: Final = 32
"""Tokens that a server may count for one answer, from above; most count none."""


class DecisionEndpoint:
    """A decision model: ``POST /v1/systemone``.

    Args:
        model: name of the model.
        base_url: address of the server, with or without ``/v1`` at the end.
        api_key: the key; by default from the environment.
        api_key_env: environment variable with the key; ``None`` reads none.
        flavour: ``"systemone"``, or ``"openai"`` for ``/v1/decisions``. The latter is sent the same
            body; that its server expects this body is not verified.
        timeout: seconds for one attempt.
        retries: further attempts after timeouts, lost connections, 408, 409, 429 and 5xx.
        concurrency: calls at a time, over all threads and event loops.
        budget: see :class:`Budget`; may be shared with other endpoints.
        input_price: money for a million input tokens.
        output_price: money for a million output tokens.
        headers: sent with every request.

    Raises:
        ConfigurationError: an option cannot work.
        MissingExtraError: the ``openai`` package, which does the sending, is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        api_key_env: str | None = None,
        flavour: Flavour = "systemone",
        timeout: float = 30.0,
        retries: int = 2,
        concurrency: int = 8,
        budget: Budget | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ConfigurationError("model must be the name of a model")
        if flavour not in _PATHS:
            raise ConfigurationError(f"flavour must be one of {', '.join(_PATHS)}")
        self.model = printable(model)
        self.flavour = flavour
        limits = Limits(
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
            budget=budget,
            input_price=input_price,
            output_price=output_price,
        )
        address = Address.parse(base_url)
        address = Address(address.url.removesuffix("/v1"), address.host, address.basic)
        http = HttpClient(
            address,
            key=read_key(api_key, api_key_env),
            headers=headers,
            connections=concurrency,
            timeout=timeout,
        )
        self._caller = Caller(http, limits)

    def __repr__(self) -> str:
        return f"DecisionEndpoint({self.model!r}, host={self._caller.http.host!r})"

    @property
    def budget(self) -> Budget | None:
        """The budget that this endpoint was given."""
        return self._caller.limits.budget

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
            questions: for each id a statement that is true or not.
            deadline: value of ``time.monotonic()`` by which the call ends, whatever happens.

        Raises:
            InputError: no question, or ``state`` cannot be written as JSON.
            ConfigurationError: ``deadline`` is no number.
            EndpointTimeoutError: too late.
            EndpointUnavailableError: no connection, 429 or 5xx to the last.
            EndpointRejectedError: the server does not accept the request.
            EndpointReplyError: an answer is missing, of another type, or no number in [0, 1].
            BudgetExceededError: the call might exceed the budget.
        """
        return await run(self._decide(*_checked(state, questions, deadline)))

    def decide_sync(
        self,
        state: str | Mapping[str, Any],
        questions: Mapping[str, str],
        *,
        deadline: float | None = None,
    ) -> DecisionReply:
        """:meth:`decide` for synchronous code; works where the thread already runs an event loop."""
        return run_sync(self._decide(*_checked(state, questions, deadline)))

    async def aclose(self) -> None:
        """Close the connections. The endpoint stays usable and opens new ones."""
        await run(self._caller.http.close())

    def close(self) -> None:
        """:meth:`aclose` for synchronous code."""
        run_sync(self._caller.http.close())

    async def _decide(self, state: Any, questions: dict[str, str], deadline: float | None) -> DecisionReply:
        ledger = Ledger()
        body = {
            "model": self.model,
            "state": state,
            "questions": {name: {"type": "noul", "instructions": text} for name, text in questions.items()},
        }
        written = state if isinstance(state, str) else json.dumps(state)
        async with self._caller.slot(deadline):
            outcome = await self._caller.send(
                _PATHS[self.flavour],
                body,
                input_tokens=token_bound([written, *questions, *questions.values()]),
                output_tokens=_ANSWER_TOKENS * len(questions),
                deadline=deadline,
                ledger=ledger,
            )
        if not 200 <= (outcome.status or 0) < 300:
            raise self._caller.rejected(outcome, ledger)
        problem = None
        try:
            named, probabilities = _answers(parse_json(outcome.body), questions)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = str(error) if type(error) is ValueError else "not of the shape of a decision"
        if problem is not None:
            clean = self._caller.http.redactor.clean(problem)
            raise self._caller.error(EndpointReplyError, f"invalid reply: {clean}", ledger)
        return DecisionReply(probabilities, named or self.model, ledger.total())


def _checked(
    state: str | Mapping[str, Any], questions: Mapping[str, str], deadline: float | None
) -> tuple[Any, dict[str, str], float | None]:
    check_deadline(deadline)
    if not isinstance(questions, Mapping) or not questions:
        raise InputError("questions must be a mapping of ids to statements, and not empty")
    if not all(isinstance(part, str) for pair in questions.items() for part in pair):
        raise InputError("the ids of the questions and the questions must be strings")
    asked = {printable(name): printable(text) for name, text in questions.items()}
    if len(asked) != len(questions):
        raise InputError("two ids of questions differ in lone surrogates only")
    if isinstance(state, str):
        return printable(state), asked, deadline
    if not isinstance(state, Mapping):
        raise InputError("state must be a string or a mapping")
    try:
        # Escaped and read again: a copy, of plain values, and without lone surrogates.
        copied = json.loads(printable(json.dumps(dict(state), ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError):
        copied = None
    if copied is None:
        raise InputError("state holds something that cannot be written as JSON")
    return copied, asked, deadline


def _answers(parsed: Any, questions: Mapping[str, str]) -> tuple[str | None, dict[str, float]]:
    """Model and probabilities; raises ValueError, TypeError, KeyError or AttributeError where invalid."""
    answers = parsed["answers"]
    if not isinstance(answers, dict):
        raise ValueError("answers is no object")
    probabilities: dict[str, float] = {}
    for name in questions:
        answer = answers.get(name)
        if answer is None:
            raise ValueError(f"no answer to question {name}")
        value = answer["noul"] if answer["type"] == "noul" else None
        # bool is a kind of int in Python, and True would pass for a probability of 1.
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"the answer to question {name} is no probability")
        if not 0.0 <= value <= 1.0:  # false for NaN as well
            raise ValueError(f"the answer to question {name} is not in [0, 1]")
        probabilities[name] = float(value)
    named = parsed.get("model")
    return (printable(named) if isinstance(named, str) else None), probabilities
