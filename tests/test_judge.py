"""The judge: scores, votes, windows, and what becomes of every fault of an endpoint."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

from scripted_endpoint import (
    Act,
    Request,
    ScriptedEndpoint,
    chat,
    decisions,
    disconnect,
    drip,
    endless,
    error,
    hang,
    oversized,
    rate_limited,
    reply,
    slow,
)
from surefoot import ConfigurationError, InputError, Source
from surefoot.endpoints import Budget, ChatEndpoint, DecisionEndpoint
from surefoot.judge import PROMPT_VERSION, Judge, Judgement, Vote
from surefoot.judge.asking import ReplyMode
from surefoot.judge.records import risk_of
from surefoot.judge.votes import tally
from surefoot.judge.windows import estimate_tokens, select, whole, windows
from surefoot.schema import Reason, RiskLevel

SOURCE = "The notice period is two months. The deposit is 600 euros."
RESPONSE = "The notice period is two months."
KEY = "a-key-that-nobody-may-see"


def endpoint(server: ScriptedEndpoint, **options: Any) -> ChatEndpoint:
    return ChatEndpoint("m", base_url=server.url, api_key=KEY, **{"retries": 0, "timeout": 5.0, **options})


def uncontrolled(model: Any, **options: Any) -> Judge:
    """A judge without controls: they have tests of their own."""
    return Judge(model, control="never", **options)


def saying(text: str, **options: Any) -> Judge:
    return uncontrolled(lambda prompt: text, **options)


def statement(prompt: str) -> str:
    """What is judged, out of a prompt."""
    return prompt.split("<<<STATEMENT ")[1].split("\n| ", 1)[1].split("\nSTATEMENT ")[0]


# scores and levels


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (0.0, RiskLevel.LOW),
        (0.29, RiskLevel.LOW),
        (0.3, RiskLevel.MEDIUM),
        (0.69, RiskLevel.MEDIUM),
        (0.7, RiskLevel.HIGH),
        (1.0, RiskLevel.HIGH),
        (None, RiskLevel.UNKNOWN),
    ],
)
def test_risk_levels(score: float | None, level: RiskLevel) -> None:
    assert risk_of(score) is level
    if score is not None:
        assert saying(f"Score: {score}").judge(SOURCE, RESPONSE).risk_level is level


def test_a_judgement_says_all_that_belongs_to_it() -> None:
    with ScriptedEndpoint(default=chat('{"score": 0.1}', usage=(200, 5))) as server:
        judgement = uncontrolled(endpoint(server)).judge(SOURCE, RESPONSE, question="How long?")
        request = server.requests[0]
    assert judgement.score == 0.1
    assert judgement.risk_level is RiskLevel.LOW
    assert judgement.reasons == judgement.flags == judgement.claims == ()
    assert judgement.votes == (Vote("scripted-1", 0.1),)
    assert judgement.agreement is None
    assert judgement.model == "m"
    assert judgement.prompt_version == PROMPT_VERSION
    assert (judgement.usage.calls, judgement.usage.input_tokens, judgement.usage.output_tokens) == (1, 200, 5)
    assert judgement.seconds > 0
    assert request.body["temperature"] == 0.0
    assert request.body["response_format"]["json_schema"]["schema"]["required"] == ["score"]
    for text in (SOURCE, RESPONSE, "How long?"):
        assert text in request.prompt
    loaded = json.loads(judgement.to_json())
    assert loaded["risk_level"] == "low"
    assert loaded["votes"][0]["score"] == 0.1


@pytest.mark.parametrize("response", [None, "", " \n\t"])
def test_an_empty_response_is_unknown(response: str | None) -> None:
    judgement = saying("Score: 0.0").judge(SOURCE, response)
    assert (judgement.score, judgement.risk_level) == (None, RiskLevel.UNKNOWN)
    assert judgement.reasons == (Reason.EMPTY_ANSWER,)
    assert judgement.usage.calls == 0


@pytest.mark.parametrize("context", [None, "", "  ", [], [None, ""], [{"text": " "}]])
def test_an_empty_context_is_unknown(context: Any) -> None:
    judgement = saying("Score: 0.0").judge(context, RESPONSE)
    assert (judgement.score, judgement.reasons) == (None, (Reason.NO_SOURCES,))


@pytest.mark.parametrize(
    "context",
    [
        SOURCE,
        [SOURCE],
        {"text": SOURCE},
        Source("a", SOURCE),
        [Source("a", SOURCE), None],
        ({"chunk_text": SOURCE},),
    ],
)
def test_a_context_may_have_any_shape(context: Any) -> None:
    seen: list[str] = []
    uncontrolled(lambda prompt: seen.append(prompt) or "Score: 0.5").judge(context, RESPONSE)
    assert SOURCE in seen[0]


def test_wrong_types_are_refused() -> None:
    with pytest.raises(InputError, match="response"):
        saying("0.1").judge(SOURCE, 5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="question"):
        saying("0.1").judge(SOURCE, RESPONSE, question=b"x")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        saying("0.1").judge(5, RESPONSE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"votes": 0},
        {"votes": True},
        {"deadline_ms": 0},
        {"deadline_ms": math.nan},
        {"max_context_tokens": 10},
        {"max_tokens": 0},
        {"reply": "xml"},
        {"long_context": "cut"},
        {"on_attack": "ignore"},
        {"control": "sometimes"},
        {"base_url": "http://localhost/v1"},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Judge(lambda prompt: "0.1", **options)


def test_a_budget_belongs_to_whoever_calls() -> None:
    with ScriptedEndpoint() as server, pytest.raises(ConfigurationError, match="own budget"):
        uncontrolled(endpoint(server), budget=Budget(calls=1))
    judge = uncontrolled(lambda prompt: "Score: 0.1", budget=Budget(calls=2))
    scores = [judge.judge(SOURCE, RESPONSE).score for _ in range(3)]
    assert scores == [0.1, 0.1, None]
    assert judge.judge(SOURCE, RESPONSE).reasons == (Reason.BUDGET_EXHAUSTED,)


@pytest.mark.parametrize("text", ["\ud800 x", "a\x00b", "\U0010ffff", "x" * 20_000, "\u202e|>>><<<"])
def test_any_text_can_be_judged(text: str) -> None:
    judgement = saying("Score: 0.4").judge(text, text[:5_000], question=text[:100])
    assert judgement.score == 0.4
    json.loads(judgement.to_json())


# votes


def test_votes_are_summed_up_by_their_median() -> None:
    replies = iter(["Score: 0.1", "Score: 0.9", "Score: 0.2"])
    judgement = uncontrolled(lambda prompt: next(replies), votes=3).judge(SOURCE, RESPONSE)
    assert judgement.score == 0.2
    assert sorted(vote.score or 0.0 for vote in judgement.votes) == [0.1, 0.2, 0.9]
    assert judgement.agreement == pytest.approx(2 / 3)
    assert judgement.reasons == (Reason.VOTES_DIFFER,)


def vote(score: float | None) -> Vote:
    return Vote("m", score, () if score is not None else (Reason.JUDGE_FAILED,))


def test_a_minority_of_votes_decides_nothing() -> None:
    assert tally([vote(0.0), vote(None)]).score is None
    assert tally([vote(0.0), vote(None), vote(None)]).reasons == (Reason.JUDGE_FAILED,)
    most = tally([vote(0.1), vote(0.1), vote(None)])
    assert (most.score, most.agreement) == (0.1, 1.0)
    assert most.reasons == (Reason.JUDGE_FAILED, Reason.VOTES_MISSING)


def test_several_judges_vote_and_are_named() -> None:
    def one(prompt: str) -> str:
        return "Score: 0.1"

    def two(prompt: str) -> str:
        return "Score: 0.2"

    judgement = uncontrolled([one, two], votes=2).judge(SOURCE, RESPONSE)
    assert judgement.model == "one + two"
    assert [(item.model, item.score) for item in judgement.votes] == [
        ("one", 0.1),
        ("one", 0.1),
        ("two", 0.2),
        ("two", 0.2),
    ]
    assert judgement.score == pytest.approx(0.15)
    assert judgement.agreement == 1.0


def test_logprobs_become_the_score() -> None:
    yes, no = math.log(0.2), math.log(0.7)
    body = json.loads(chat("No", logprobs=[("No", no)]).body)
    body["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = [
        {"token": "No", "logprob": no},
        {"token": " yes", "logprob": yes},
        {"token": "Maybe", "logprob": math.log(0.1)},
    ]
    with ScriptedEndpoint(default=reply(body)) as server:
        judgement = uncontrolled(endpoint(server), reply="logprobs").judge(SOURCE, RESPONSE)
        assert server.requests[0].body["logprobs"] is True
    assert judgement.score == pytest.approx(0.2 / 0.9)


@pytest.mark.parametrize(
    "act",
    [chat("No"), chat("0.1", logprobs=[("0", -0.01)]), chat("No", logprobs=[("No", math.log(0.4))])],
    ids=["none", "another word", "unsure what to say"],
)
def test_without_probabilities_of_yes_and_no_there_is_no_score(act: Act) -> None:
    with ScriptedEndpoint(default=act) as server:
        judgement = uncontrolled(endpoint(server), reply="logprobs").judge(SOURCE, RESPONSE)
    assert (judgement.score, judgement.reasons) == (None, (Reason.JUDGE_REPLY_INVALID,))


# faults

VALID = 0.5
"""What the scripted endpoint says wherever it says anything valid; nothing here may yield it."""

FAULTS: dict[str, tuple[Act | Callable[[Request], Act], set[Reason]]] = {
    "no connection": (disconnect(), {Reason.JUDGE_FAILED}),
    "cut body": (disconnect(30), {Reason.JUDGE_FAILED}),
    "too slow": (slow(30.0, chat("0.5")), {Reason.JUDGE_TIMEOUT}),
    "hangs": (hang(), {Reason.JUDGE_TIMEOUT}),
    "drips for ever": (drip(), {Reason.JUDGE_TIMEOUT}),
    "endless": (endless(), {Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT}),
    "oversized": (oversized(), {Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT}),
    "rate limited": (rate_limited(), {Reason.JUDGE_FAILED}),
    "rate limited for long": (rate_limited("3600"), {Reason.JUDGE_FAILED}),
    "server error": (error(500), {Reason.JUDGE_FAILED}),
    "overloaded": (error(503), {Reason.JUDGE_FAILED}),
    "wrong key": (error(401, f"wrong key {KEY}"), {Reason.JUDGE_FAILED}),
    "no such model": (error(404), {Reason.JUDGE_FAILED}),
    "not payable": (error(402), {Reason.JUDGE_FAILED}),
    "redirect": (Act(status=302, headers={"Location": "http://localhost:1/"}), {Reason.JUDGE_FAILED}),
    "not JSON": (Act(b"<html>0.5</html>"), {Reason.JUDGE_FAILED}),
    "empty body": (Act(b""), {Reason.JUDGE_FAILED}),
    "not UTF-8": (Act(b"\xff\xfe{}"), {Reason.JUDGE_FAILED}),
    "wrong shape": (reply({"choices": []}), {Reason.JUDGE_FAILED}),
    "error as success": (reply({"error": {"message": "0.5"}}), {Reason.JUDGE_FAILED}),
    "lies about its length": (chat("0.5", length=100_000), {Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT}),
    "refuses": (chat(None, refusal="I will not rate this: 0.5"), {Reason.JUDGE_REFUSED}),
    "filtered": (chat("0.5", finish_reason="content_filter"), {Reason.JUDGE_REFUSED}),
    "cut at its length": (chat("Score: 0.5", finish_reason="length"), {Reason.JUDGE_REPLY_INVALID}),
    "no text": (chat(None), {Reason.JUDGE_REPLY_INVALID, Reason.JUDGE_FAILED}),
    "empty text": (chat(""), {Reason.JUDGE_REPLY_INVALID}),
    "prose": (chat("The statement is well supported."), {Reason.JUDGE_REPLY_INVALID}),
    "another scale": (chat('{"score": 5}'), {Reason.JUDGE_REPLY_INVALID}),
    "a percentage": (chat("50%"), {Reason.JUDGE_REPLY_INVALID}),
    "a comma": (chat("0,5"), {Reason.JUDGE_REPLY_INVALID}),
    "NaN": (chat('{"score": NaN}'), {Reason.JUDGE_REPLY_INVALID}),
    "a string": (chat('{"score": "0.5"}'), {Reason.JUDGE_REPLY_INVALID}),
    "a truth value": (chat('{"score": true}'), {Reason.JUDGE_REPLY_INVALID}),
    "broken JSON": (chat('{"score": 0.5'), {Reason.JUDGE_REPLY_INVALID}),
    "two numbers": (chat("0.5\n0.1"), {Reason.JUDGE_REPLY_AMBIGUOUS}),
    "two keys": (chat('{"score": 0.5, "score": 0.1}'), {Reason.JUDGE_REPLY_AMBIGUOUS}),
}


@pytest.mark.parametrize("mode", ["auto", "text"])
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_ends_in_a_documented_result_in_time(fault: str, mode: ReplyMode) -> None:
    act, reasons = FAULTS[fault]
    deadline = 2.0
    with ScriptedEndpoint(default=act) as server:
        judge = Judge(endpoint(server, timeout=30.0, retries=1), reply=mode, deadline_ms=1000 * deadline)
        started = time.monotonic()
        judgement = judge.judge(SOURCE, RESPONSE)
        passed = time.monotonic() - started
    assert judgement.score is None
    assert judgement.risk_level is RiskLevel.UNKNOWN
    # On a busy machine the deadline may come first, which is a documented end too.
    assert set(judgement.reasons) <= reasons | {Reason.JUDGE_TIMEOUT}
    assert judgement.reasons
    assert judgement.detail
    assert KEY not in judgement.to_json()
    assert [item.score for item in judgement.votes] == [None]
    assert passed < deadline + 10, "in time, with room for a busy machine: some faults would take for ever"


DECISION_FAULTS = {
    "no answers": {},
    "another type": {"0": {"type": "score", "score": 0.5}},
    "out of range": {"0": {"type": "noul", "noul": 1.5}},
    "a string": {"0": {"type": "noul", "noul": "0.5"}},
    "a truth value": {"0": {"type": "noul", "noul": True}},
    "another question": {"1": {"type": "noul", "noul": 0.5}},
}


@pytest.mark.parametrize("fault", DECISION_FAULTS)
def test_faults_of_a_decision_model_too(fault: str) -> None:
    with ScriptedEndpoint(default=decisions(DECISION_FAULTS[fault])) as server:
        judgement = Judge(DecisionEndpoint("m", base_url=server.url, retries=0)).judge(SOURCE, RESPONSE)
    assert (judgement.score, judgement.reasons) == (None, (Reason.JUDGE_FAILED,))


@pytest.mark.parametrize(
    "exception", [ValueError("secret"), TimeoutError(), OSError("secret"), RuntimeError("secret")]
)
def test_a_function_that_raises_is_a_fault_too(exception: Exception) -> None:
    def model(prompt: str) -> str:
        raise exception

    judgement = uncontrolled(model).judge(SOURCE, RESPONSE)
    assert judgement.score is None
    assert set(judgement.reasons) <= {Reason.JUDGE_FAILED, Reason.JUDGE_TIMEOUT}
    assert "secret" not in judgement.to_json()


def test_a_function_that_never_returns_is_left_behind() -> None:
    async def model(prompt: str) -> str:
        await asyncio.sleep(60)
        return "0.5"

    started = time.monotonic()
    judgement = uncontrolled(model, deadline_ms=200).judge(SOURCE, RESPONSE)
    assert (judgement.score, judgement.reasons) == (None, (Reason.JUDGE_TIMEOUT,))
    assert time.monotonic() - started < 10


def test_a_server_without_schemas_is_asked_without() -> None:
    def picky(request: Request) -> Act:
        return (
            error(400, "response_format is not supported")
            if "response_format" in request.body
            else chat("0.25")
        )

    with ScriptedEndpoint(default=picky) as server:
        judge = uncontrolled(endpoint(server))
        assert judge.judge(SOURCE, RESPONSE).score == 0.25
        judge.judge(SOURCE, RESPONSE)
        assert "Score: <number" in server.requests[-1].prompt, (
            "a model that is held to nothing is asked for a line"
        )


# synchronous, asynchronous, many at once


def test_both_forms_give_the_same() -> None:
    judge = saying("Score: 0.3")
    one, two = asyncio.run(judge.ajudge(SOURCE, RESPONSE)), judge.judge(SOURCE, RESPONSE)
    assert (one.score, one.reasons, one.votes) == (two.score, two.reasons, two.votes)


def test_the_synchronous_form_works_inside_an_event_loop() -> None:
    async def inside() -> float | None:
        return saying("Score: 0.3").judge(SOURCE, RESPONSE).score

    assert asyncio.run(inside()) == 0.3


def test_many_at_once_keep_to_the_limit_and_none_is_lost() -> None:
    def player(request: Request) -> Act:
        number = int(statement(request.prompt).split()[-1].rstrip("."))
        return slow(0.05, chat(json.dumps({"score": number / 1000})))

    with ScriptedEndpoint(default=player) as server:
        judge = uncontrolled(endpoint(server, concurrency=50, timeout=60.0))

        async def all_of_them() -> list[Judgement]:
            return await asyncio.gather(*(judge.ajudge(SOURCE, f"The deposit is {i}.") for i in range(200)))

        results = asyncio.run(all_of_them())
        assert 2 <= server.most_active <= 50
    assert [result.score for result in results] == [i / 1000 for i in range(200)]


# claims

ANSWER = "The notice period is two months. The deposit is 900 euros. Is that all?"


def by_statement(prompt: str) -> str:
    return "Score: 0.9" if "900" in statement(prompt) else "Score: 0.1"


def test_each_claim_is_judged_by_itself() -> None:
    judgement = uncontrolled(by_statement).judge_claims(SOURCE, ANSWER)
    assert [(claim.text, claim.score) for claim in judgement.claims] == [
        ("The notice period is two months.", 0.1),
        ("The deposit is 900 euros.", 0.9),
    ]
    assert all(ANSWER[claim.start : claim.end] == claim.text for claim in judgement.claims)
    assert judgement.score == 0.9
    assert judgement.usage.calls == 2
    assert uncontrolled(by_statement, per_claim=True).judge(SOURCE, ANSWER).claims == judgement.claims


def test_a_claim_without_a_verdict_leaves_the_whole_undefined() -> None:
    def model(prompt: str) -> str:
        return "no idea" if "900" in statement(prompt) else "Score: 0.1"

    judgement = uncontrolled(model).judge_claims(SOURCE, ANSWER)
    assert [claim.score for claim in judgement.claims] == [0.1, None]
    assert (judgement.score, judgement.risk_level) == (None, RiskLevel.UNKNOWN)
    assert judgement.reasons == (Reason.JUDGE_REPLY_INVALID,)


def test_an_answer_without_claims_is_undefined() -> None:
    judgement = saying("Score: 0.0").judge_claims(SOURCE, "Is that all?")
    assert (judgement.score, judgement.reasons) == (None, (Reason.NO_CHECKABLE_CLAIM,))


def test_spans_choose_what_is_judged() -> None:
    judge = saying("Score: 0.2")
    judgement = judge.judge_claims(SOURCE, ANSWER, spans=[(33, 58), (0, 0), (0, 32)])
    assert [(claim.text, claim.score) for claim in judgement.claims] == [
        ("The deposit is 900 euros.", 0.2),
        ("", None),
        ("The notice period is two months.", 0.2),
    ]
    with pytest.raises(InputError):
        judge.judge_claims(SOURCE, ANSWER, spans=[(0, 1_000)])


def test_a_decision_model_gets_all_claims_in_one_call() -> None:
    def player(request: Request) -> Act:
        return decisions(lambda _, text: 0.05 if "900" in text else 0.9, request)

    with ScriptedEndpoint(default=player) as server:
        judgement = uncontrolled(DecisionEndpoint("m", base_url=server.url)).judge_claims(SOURCE, ANSWER)
        assert len(server.requests) == 1
        assert server.requests[0].body["state"]["source"] == SOURCE
    assert [claim.score for claim in judgement.claims] == pytest.approx([0.1, 0.95])
    assert judgement.usage.calls == 1


# long contexts

FILLER = "".join(f"Paragraph {i} speaks of the weather in the year {1500 + i}. " for i in range(1_500))
LONG = [f"{FILLER}\n\nThe deposit is 600 euros.\n\n{FILLER}", "The notice period is two months."]


def test_a_context_that_fits_is_shown_whole() -> None:
    seen: list[str] = []
    judge = uncontrolled(lambda prompt: seen.append(prompt) or "0.1", max_context_tokens=200_000)
    judgement = judge.judge(LONG, RESPONSE)
    assert judgement.reasons == ()
    shown = seen[0].replace("\n| ", "\n")
    assert all(source in shown for source in LONG)


def test_of_a_long_context_what_matters_is_shown_and_that_is_said() -> None:
    seen: list[str] = []
    judge = uncontrolled(lambda prompt: seen.append(prompt) or "Score: 0.1", max_context_tokens=1_000)
    judgement = judge.judge(LONG, "The notice period is two months. The deposit is 600 euros.")
    assert judgement.reasons == (Reason.PARTIAL_CONTEXT,)
    assert "The deposit is 600 euros." in seen[0].split("<<<STATEMENT")[0]
    assert "The notice period is two months." in seen[0].split("<<<STATEMENT")[0]
    assert estimate_tokens(seen[0].split("<<<SOURCE")[2].split("SOURCE ")[0]) < 1_200
    per_claim = judge.judge_claims(LONG, "The deposit is 600 euros.")
    assert per_claim.claims[0].reasons == (Reason.PARTIAL_CONTEXT,)


def test_the_best_supporting_window_counts_and_all_are_read() -> None:
    seen: list[str] = []

    def model(prompt: str) -> str:
        source = prompt.split("<<<SOURCE ")[2].split("\nSOURCE ")[0]
        seen.append(source)
        return "Score: 0.05" if "deposit is 600" in source else "Score: 1.0"

    judge = uncontrolled(model, max_context_tokens=4_000, long_context="windows")
    judgement = judge.judge(LONG, "The deposit is 600 euros.")
    assert len(seen) > 5
    assert judgement.claims[0].score == 0.05
    assert judgement.score == 0.05
    assert Reason.PARTIAL_CONTEXT not in judgement.reasons
    everything = "\n".join(seen)
    assert all(f"in the year {1500 + i}." in everything for i in range(1_500))


def test_a_window_that_failed_stays_in_the_reasons() -> None:
    def model(prompt: str) -> str:
        source = prompt.split("<<<SOURCE ")[2].split("\nSOURCE ")[0]
        return "Score: 0.8" if "deposit is 600" in source else "??"

    judge = uncontrolled(model, max_context_tokens=4_000, long_context="windows")
    judgement = judge.judge(LONG, "The deposit is 600 euros.")
    assert judgement.score == 0.8
    assert Reason.JUDGE_REPLY_INVALID in judgement.reasons


def test_a_statement_that_cannot_fit_is_unknown_and_not_cut() -> None:
    judgement = saying("Score: 0.0", max_context_tokens=300).judge(SOURCE, "word " * 1_000)
    assert (judgement.score, judgement.reasons) == (None, (Reason.CLAIM_TOO_LONG,))


@pytest.mark.parametrize(
    "text", ["x" * 50_000, "日本語。" * 9_000, "🙂" * 9_000, "a\n" * 20_000, FILLER, " ".join("ab" * 9_000)]
)
def test_windows_hold_everything_and_none_is_too_long(text: str) -> None:
    sources = [Source("a", text), Source("b", " "), Source("c", "short", "Title")]
    found = windows(sources, 700)
    assert all(estimate_tokens(window.text) <= 720 for window in found)
    assert all(window.partial for window in found)
    pieces = [window.text.removeprefix("[1]\n").strip() for window in found]
    at = 0
    for piece in pieces[:-1]:
        start = text.find(piece[:60], max(0, at - 2_500))
        assert 0 <= start <= at, "no gap between one window and the next"
        at = max(at, start + len(piece) + 1)
    assert "[3] Title\nshort" in found[-1].text


def test_selection_keeps_the_order_of_the_sources() -> None:
    sources = [Source("a", LONG[0], "Lease"), Source("b", LONG[1])]
    shown = select(sources, ["The notice period is two months.", "The deposit is 600 euros."], 800)
    assert shown.partial
    assert shown.text.index("[1] Lease") < shown.text.index("600 euros") < shown.text.index("[2]\nThe notice")
    assert estimate_tokens(shown.text) <= 800
    assert not whole(sources).partial
