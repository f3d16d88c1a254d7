"""``surefoot judge``: a response against its context, by a language model."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from surefoot.cli.output import FAILED, FINE, UNDER_THRESHOLD, errors, say, write
from surefoot.report.wording import printable, reason_words
from surefoot.schema import Reason

if TYPE_CHECKING:
    from surefoot.cli.request import CheckRequest
    from surefoot.judge import Judge, Judgement

__all__ = ["register"]

_NOTHING_TO_JUDGE: Final = {Reason.EMPTY_ANSWER, Reason.NO_SOURCES, Reason.NO_CHECKABLE_CLAIM}


class OnAttack(StrEnum):
    """What becomes of a score beside hostile text."""

    FLAG = "flag"
    UNKNOWN = "unknown"


class Control(StrEnum):
    """When the model is asked again with an invented statement."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class ReplyForm(StrEnum):
    """How the model is asked to reply."""

    AUTO = "auto"
    SCHEMA = "schema"
    TEXT = "text"
    LOGPROBS = "logprobs"


class LongContext(StrEnum):
    """What happens to a context that is too long for one call."""

    SELECT = "select"
    WINDOWS = "windows"


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(judge)


def judge(
    file: Annotated[
        str | None, typer.Argument(help="A JSON request with answer and sources; - for standard input.")
    ] = None,
    response: Annotated[
        str | None,
        typer.Option("--response", metavar="FILE", help="The response as a text file; - for stdin."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context", metavar="FILE", help="A context: text, Markdown, HTML, PDF or JSON. Repeat."
        ),
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", help="The question, where it is not in the request.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Name of the model at the endpoint. Repeat to ask several."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", help="OpenAI-compatible server, up to /v1; else OPENAI_BASE_URL, else OpenAI."
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env", help="Environment variable with the key; OPENAI_API_KEY for chat models."
        ),
    ] = None,
    decision: Annotated[
        bool, typer.Option("--decision", help="The model is a decision model (POST /v1/systemone).")
    ] = False,
    votes: Annotated[int, typer.Option("--votes", min=1, max=99, help="Replies of each model.")] = 1,
    per_claim: Annotated[
        bool, typer.Option("--per-claim", help="Judge each claim of the response by itself.")
    ] = False,
    reply: Annotated[ReplyForm, typer.Option("--reply", help="How the model replies.")] = ReplyForm.AUTO,
    max_context_tokens: Annotated[
        int, typer.Option("--max-context-tokens", min=256, help="Of the context in one call.")
    ] = 8_000,
    long_context: Annotated[
        LongContext, typer.Option("--long-context", help="What happens to a longer context.")
    ] = LongContext.SELECT,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="Seconds for one attempt of a call.")
    ] = 30.0,
    retries: Annotated[int, typer.Option("--retries", min=0, help="Further attempts.")] = 2,
    deadline: Annotated[
        float | None, typer.Option("--deadline", min=0.001, help="Seconds for everything.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=0, help="Budget: tokens of all calls, read and written.")
    ] = None,
    on_attack: Annotated[
        OnAttack, typer.Option("--on-attack", help="With hostile text: flag it, or give no score.")
    ] = OnAttack.FLAG,
    control: Annotated[
        Control,
        typer.Option(
            "--control",
            help="Ask again, with an invented statement put in: after a low score, always, or never.",
        ),
    ] = Control.AUTO,
    fail_over: Annotated[
        float | None,
        typer.Option(
            "--fail-over",
            min=0.0,
            max=1.0,
            help="Exit with 1 if the score is higher, there is nothing to judge, or hostile text was found.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the judgement as JSON.")] = False,
    max_mb: Annotated[
        float, typer.Option("--max-mb", min=0.001, help="Refuse an input file of more megabytes.")
    ] = 64.0,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only errors and what was asked for.")
    ] = False,
) -> None:
    """Ask a language model how likely it is that a response is hallucinated.

    Exit code: 0 fine, or nothing to judge; 1 score over the threshold; 2 wrong command or input; 3 no valid
    score came back, also because hostile text fooled the model or the text is too long.
    """
    with errors():
        from surefoot.endpoints import Budget, ChatEndpoint, DecisionEndpoint
        from surefoot.judge import Judge

        if not model:
            raise typer.BadParameter("name a model with --model")
        if decision and base_url is None:
            raise typer.BadParameter("--decision needs --base-url")
        request = _request(file, response, context or [], question, max_mb)
        if not quiet:
            for warning in request.warnings:
                say(f"warning: {warning}")
        budget = None if max_tokens is None else Budget(tokens=max_tokens)
        endpoints: list[ChatEndpoint | DecisionEndpoint] = []
        for name in model:
            if decision:  # a key of OpenAI's is not sent to whoever runs a decision model
                endpoints.append(
                    DecisionEndpoint(
                        name,
                        base_url=base_url or "",
                        api_key_env=api_key_env,
                        timeout=timeout,
                        retries=retries,
                        budget=budget,
                    )
                )
                continue
            endpoints.append(
                ChatEndpoint(
                    name,
                    base_url=base_url,
                    api_key_env=api_key_env or "OPENAI_API_KEY",
                    timeout=timeout,
                    retries=retries,
                    budget=budget,
                )
            )
        asked = Judge(
            endpoints,
            votes=votes,
            reply=reply.value,
            deadline_ms=None if deadline is None else deadline * 1000.0,
            max_context_tokens=max_context_tokens,
            long_context=long_context.value,
            per_claim=per_claim,
            on_attack=on_attack.value,
            control=control.value,
        )
        judgement = _judged(asked, request)
        if as_json:
            write(judgement.to_json(indent=2) + "\n")
        elif not quiet:
            write(_text(judgement))
    raise typer.Exit(_exit_code(judgement, fail_over))


def _request(
    file: str | None, response: str | None, context: list[str], question: str | None, max_mb: float
) -> CheckRequest:
    import dataclasses

    from surefoot.cli.request import read_files, read_request

    if (file is None) == (response is None):
        raise typer.BadParameter("give either a JSON request, or --response FILE with --context FILE")
    if response is not None:
        return read_files(response, context, question=question, max_mb=max_mb)
    if context:
        raise typer.BadParameter("--context goes with --response; a JSON request has its own sources")
    request = read_request(file or "-", max_mb=max_mb)
    return request if question is None else dataclasses.replace(request, question=question)


def _judged(judge: Judge, request: CheckRequest) -> Judgement:
    return judge.judge(request.sources, request.answer, question=request.question)


def _exit_code(judgement: Judgement, fail_over: float | None) -> int:
    if judgement.score is None and not _NOTHING_TO_JUDGE.intersection(judgement.reasons):
        return FAILED  # before the threshold: what was not judged is not over it
    if fail_over is None:
        return FINE
    # Hostile text may have made the score what it is: it approves nothing.
    passed = judgement.score is not None and judgement.score <= fail_over and not judgement.flags
    return FINE if passed else UNDER_THRESHOLD


def _text(judgement: Judgement) -> str:
    score = "undefined" if judgement.score is None else f"{judgement.score:.3f}"
    lines = [f"score {score}, risk {judgement.risk_level}"]
    lines += [f"note: {reason_words(reason)}" for reason in judgement.reasons]
    if judgement.flags:
        lines.append(f"found: {', '.join(judgement.flags)}")
    if judgement.agreement is not None:
        lines.append(f"agreement {judgement.agreement:.2f}")
    for claim in judgement.claims:
        one = "   ?" if claim.score is None else f"{claim.score:.2f}"
        lines.append(f"{one}  {claim.text}")
        lines += [f"      {reason_words(reason)}" for reason in claim.reasons]
    if judgement.detail:
        lines.append(f"detail: {judgement.detail}")
    usage = judgement.usage
    tokens = usage.input_tokens + usage.output_tokens
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    lines.append(f"{judgement.model}: {calls}, {tokens} tokens; prompt {judgement.prompt_version}")
    return "\n".join(printable(line) for line in lines) + "\n"
