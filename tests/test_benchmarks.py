"""The quality benchmark: its figures on hand-made outcomes, and the script on a tiny folder of data."""

from __future__ import annotations

import gzip
import importlib
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.__main__ import BENCHMARKS, main  # noqa: E402
from benchmarks.datasets import (  # noqa: E402
    AnswerRow,
    GroundingRow,
    discover,
    families,
    load_answers,
    load_grounding,
    passages_of,
    sample,
)
from benchmarks.figures import (  # noqa: E402
    answer_figures,
    claim_figures,
    gains,
    leave_one_out,
    mean_figures,
    set_figures,
    summed_up,
)
from benchmarks.quality import answers_table, means_table, sets_table, steps_table  # noqa: E402
from benchmarks.record import cell, hardware, table, weights  # noqa: E402
from benchmarks.systems import (  # noqa: E402
    STEPS,
    AlwaysSupported,
    AnswerClaim,
    Outcome,
    Straightforward,
    UnseenShare,
    build,
    outcome_of,
    pack_passages,
    sentences,
)

from surefoot import metrics  # noqa: E402
from surefoot.models.manifest import bundled  # noqa: E402
from surefoot.schema import Claim, Reason, Verdict  # noqa: E402

SENTENCES = [
    ("The library opens at nine.", "The library opens at nine.", "supported"),
    ("The library opens at nine.", "Dogs may swim in the harbour.", "unsupported"),
    ("Trains leave from platform four.", "Trains leave from platform four.", "supported"),
    ("Trains leave from platform four.", "Trains do not leave from platform four.", "contradicted"),
    ("The bakery sells rye bread every morning.", "The bakery sells rye bread.", "supported"),
    ("The bakery sells rye bread every morning.", "The mayor resigned on Tuesday.", "unsupported"),
    ("Tickets cost ten euros.", "Tickets cost ten euros.", "supported"),
    ("Tickets cost ten euros.", "Penguins cannot fly at all.", "unsupported"),
]
ANSWER = "The library opens at nine. Dogs may swim in the harbour."


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two grounding sets and one of answers."""
    folder = tmp_path / "data"
    for name, order in (("first", 1), ("second", -1)):
        rows = [
            {
                "id": f"{name}-{i}",
                "premise": p,
                "claim": c if order > 0 else f"{c[:-1]} today.",
                "label": label,
            }
            for i, (p, c, label) in enumerate(SENTENCES[::order])
        ]
        write_rows(folder / "grounding" / f"{name}.jsonl.gz", rows)
    answers = []
    for i in range(8):
        answers.append(
            {
                "id": f"a-{i}",
                "task": "qa" if i % 2 else "summary",
                "context": f"Notice {i}. The library opens at nine.",
                "question": "When does it open?" if i % 2 else None,
                "answer": ANSWER if i < 4 else ANSWER[:26],
                "spans": [[27, len(ANSWER), "baseless"]] if i < 4 else [],
            }
        )
    answers.append({**answers[-1], "id": "refusal", "answer": "I don't know.", "spans": []})
    write_rows(folder / "answer" / "notes.jsonl.gz", answers)
    return folder


def outcomes(scores: list[float]) -> list[Outcome]:
    return [Outcome(score=s, supported=s >= 0.5) for s in scores]


def rows_of(labels: list[int], prefix: str = "") -> list[GroundingRow]:
    return [
        GroundingRow(str(i), f"premise {i}", f"{prefix}claim {i}", bool(label), f"{prefix}{i}", str(label))
        for i, label in enumerate(labels)
    ]


def walk(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in walk(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in walk(item)]
    return [value]


# --- data --------------------------------------------------------------------------------------------


def test_loading(data: Path) -> None:
    assert list(discover(data, "grounding")) == ["first", "second"]
    rows = load_grounding(data / "grounding" / "first.jsonl.gz")
    assert [row.supported for row in rows] == [True, False, True, False, True, False, True, False]
    assert rows[0].group == rows[1].group != rows[2].group
    answers = load_answers(data / "answer" / "notes.jsonl.gz")
    assert answers[0].spans == ((27, len(ANSWER)),)
    assert answers[0].answer[slice(*answers[0].spans[0])] == "Dogs may swim in the harbour."
    assert answers[0].question is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"premise": "a", "claim": "b", "label": "maybe"}, r"bad\.jsonl\.gz:2: label"),
        ({"premise": "a", "label": "supported"}, r"bad\.jsonl\.gz:2: claim"),
        ([1], r"bad\.jsonl\.gz:2: not an object"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: Any, message: str) -> None:
    good = {"premise": "a", "claim": "b", "label": "supported"}
    write_rows(tmp_path / "bad.jsonl.gz", [good, row])
    with pytest.raises(ValueError, match=message):
        load_grounding(tmp_path / "bad.jsonl.gz")


def test_spans_are_clipped_and_merged(tmp_path: Path) -> None:
    spans = [[5, 9, "x"], [0, 3, "x"], [2, 6, "y"], [9, 99, "x"], [4, 4, "x"]]
    row = {"context": "c", "answer": "0123456789", "spans": spans}
    write_rows(tmp_path / "a.jsonl.gz", [row, {**row, "spans": [[3, 5, "x"], [7, 9, "x"]]}])
    loaded = load_answers(tmp_path / "a.jsonl.gz")
    assert [one.spans for one in loaded] == [((0, 10),), ((3, 5), (7, 9))]


def test_numbered_passages_become_sources() -> None:
    assert passages_of("passage 1:One.\n\npassage 2: Two.\n\n") == ["One.", "Two."]
    assert passages_of("The passage 1: of two") == ["The passage 1: of two"]
    assert passages_of("Intro\npassage 1: One.") == ["Intro\npassage 1: One."]


def test_sampling_is_seeded_and_in_proportion() -> None:
    rows = rows_of([1] * 30 + [0] * 70)
    first = sample(rows, 10, seed=1, name="x", stratum=lambda row: row.stratum)
    assert first == sample(rows, 10, seed=1, name="x", stratum=lambda row: row.stratum)
    assert first != sample(rows, 10, seed=2, name="x", stratum=lambda row: row.stratum)
    assert sum(row.supported for row in first) == 3
    assert [int(row.id) for row in first] == sorted(int(row.id) for row in first)
    assert sample(rows, 0, seed=1, name="x", stratum=lambda row: row.stratum) == rows
    odd = sample(rows_of([1, 1, 0, 0, 0]), 3, seed=1, name="x", stratum=lambda row: row.stratum)
    assert len(odd) == 3


def test_sets_that_share_claims_are_families() -> None:
    sets = {"a": rows_of([1, 0]), "b": rows_of([1, 0, 1]), "c": rows_of([1], "other ")}
    assert sorted(map(sorted, families(sets, at_least=0.5))) == [["a", "b"], ["c"]]
    chain = sets | {"d": [*rows_of([1]), *rows_of([1], "other ")]}
    assert len(families(chain, at_least=0.5)) == 1


# --- systems -----------------------------------------------------------------------------------------


def test_sentences_and_passages_keep_the_text() -> None:
    text = "One is 3.5 long. Two!  Three\n\n- Four\n" + "word " * 450
    found = [text[start:end] for start, end in sentences(text)]
    assert found[:4] == ["One is 3.5 long.", "Two!", "Three", "- Four"]
    passages = pack_passages(text, 200)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(len(passage.split()) <= 200 for passage in passages)
    assert [len(passage.split()) for passage in passages] == [8, 200, 200, 50]
    assert pack_passages(" \n") == ()


def test_unseen_share() -> None:
    system = UnseenShare()
    premise = "The library opens at nine."
    checked = system.claims(premise, ["The LIBRARY opens early.", "Is it the?", "Dogs swim."])
    assert [c.score for c in checked] == [pytest.approx(2 / 3), 0.0, 0.0]
    assert [c.supported for c in checked] == [True, False, False]
    assert [c.rejected for c in checked] == [False, True, False]


def test_straightforward_takes_the_best_passage_and_cuts() -> None:
    seen: list[list[tuple[str, str]]] = []

    def scorer(pairs: Any) -> list[float]:
        seen.append(list(pairs))
        return [0.9 if "needle" in premise else 0.1 for premise, _ in pairs]

    premise = ("hay " * 199 + ". ") * 3 + "A needle lies here."  # three full passages, then one
    cut = Straightforward(scorer)
    (found,) = cut.claims(premise, ["c" * 300])
    assert found.score == 0.9
    assert len(seen) == 1, "one call per claim"
    assert max(len(p) for p, _ in seen[0]) == 512
    assert {len(c) for _, c in seen[0]} == {256}
    assert cut.claims("", ["claim"])[0].score == 0.0


def test_answer_claims_are_sentences_of_four_words() -> None:
    row = AnswerRow("1", "qa", "Nothing.", None, "Yes it is. The library opens at nine.", (), "g", "s")
    (claim,) = AlwaysSupported().answer(row)
    assert row.answer[claim.start : claim.end] == "The library opens at nine."


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (
            Claim("x", 0, 1, verdict=Verdict.SUPPORTED, support=0.9),
            Outcome(score=0.9, supported=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.UNCERTAIN,), support=0.6),
            Outcome(score=0.6, supported=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.UNCERTAIN,), support=0.4),
            Outcome(score=0.4, supported=False),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.CHECKER_FAILED,), support=0.9),
            Outcome(score=0.0, supported=False, rejected=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.LANGUAGE,)),
            Outcome(score=0.0, supported=False, rejected=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.NOT_CHECKABLE),
            Outcome(score=0.0, supported=False, rejected=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.CONTRADICTED, support=0.8),
            Outcome(score=0.8, supported=False, rejected=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.UNSUPPORTED, support=0.2),
            Outcome(score=0.2, supported=False),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.UNSUPPORTED),
            Outcome(score=0.0, supported=False),
        ),
    ],
)
def test_how_a_verdict_counts(claim: Claim, expected: Outcome) -> None:
    assert outcome_of(claim) == expected


# --- figures -----------------------------------------------------------------------------------------


def figures_of(name: str, rows: list[GroundingRow], said: list[Outcome]) -> dict[str, Any]:
    result = summed_up(rows, said)
    return set_figures(name, result, claim_figures(result, seed=0, name=name))


def test_grounding_figures_by_hand() -> None:
    rows = rows_of([1, 1, 0, 0, 0])
    figures = figures_of("x", rows, outcomes([0.9, 0.4, 0.1, 0.2, 0.6]))
    assert figures["x.balanced_accuracy"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert figures["x.false_pass"] == pytest.approx(1 / 3)
    assert figures["x.false_strip"] == pytest.approx(1 / 2)
    assert figures["x.auroc"] == pytest.approx(5 / 6)
    assert (figures["x.n"], figures["x.supported"]) == (5, 2)
    assert "x.balanced_accuracy_loso" not in figures, "no other set to choose a threshold on"
    assert figures["x.false_pass.ci"] == pytest.approx(metrics.wilson_interval(1, 3))
    assert figures["x.false_strip.ci"] == pytest.approx(metrics.wilson_interval(1, 2))
    with pytest.raises(ValueError, match="5 rows and 1 outcomes"):
        summed_up(rows, outcomes([0.5]))


def test_always_supported_scores_half() -> None:
    rows = rows_of([1, 1, 1, 0])
    figures = figures_of("x", rows, AlwaysSupported().claims("p", [row.claim for row in rows]))
    assert figures["x.balanced_accuracy"] == figures["x.auroc"] == 0.5
    assert figures["x.false_pass"] == 1.0
    assert figures["x.false_strip"] == 0.0


def test_thresholds_come_from_the_other_sets_only() -> None:
    labels = [1, 1, 0, 0]
    results = {
        "low": summed_up(rows_of(labels, "l"), outcomes([0.3, 0.4, 0.1, 0.2])),
        "high": summed_up(rows_of(labels, "h"), outcomes([0.8, 0.9, 0.6, 0.7])),
    }
    decided = leave_one_out(results, [{"low"}, {"high"}])
    for name in results:  # 0.75 fits the one and 0.25 the other: each set is decided all wrongly or all alike
        figures = set_figures(name, decided[name], claim_figures(decided[name], seed=0, name=name))
        assert figures[f"{name}.balanced_accuracy_loso"] == 0.5
    assert decided["low"].loso.tolist() == [False] * 4
    assert decided["high"].loso.tolist() == [True] * 4
    assert leave_one_out(results, [{"low", "high"}])["low"].loso is None


def test_no_threshold_brings_back_what_was_rejected() -> None:
    rows = rows_of([1, 0])
    results = {
        "a": summed_up(rows, [Outcome(score=0.9, supported=False, rejected=True)] * 2),
        "b": summed_up(rows_of([1, 0], "b"), outcomes([0.9, 0.1])),
    }
    decided = leave_one_out(results, [{"a"}, {"b"}])
    assert decided["a"].loso.tolist() == [False, False]


def test_means_and_gains_over_sets() -> None:
    labels = [1, 1, 0, 0]
    good, bad = (
        {
            name: claim_figures(summed_up(rows_of(labels, name), outcomes(scores)), seed=0, name=name)
            for name in "abc"
        }
        for scores in ([0.9, 0.8, 0.1, 0.2], [0.9] * 4)
    )
    mixed = {**good, "c": bad["c"]}
    means = mean_figures(
        mixed, {f"{name}.ece": value for name, value in zip("abc", (0.1, 0.2, 0.6), strict=True)}
    )
    assert means["mean.balanced_accuracy"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert means["mean.ece"] == pytest.approx(0.3)
    apart = gains(good, {name: bad[name] for name in "ab"})
    assert apart["mean.balanced_accuracy_surefoot_minus_this"] == pytest.approx(0.5)
    assert apart["mean.balanced_accuracy_surefoot_minus_this.ci"] == pytest.approx([0.5, 0.5])


def answer_row(index: int, spans: tuple[tuple[int, int], ...], task: str = "qa") -> AnswerRow:
    return AnswerRow(str(index), task, f"context {index}", None, ANSWER, spans, f"g{index}", "s")


def test_answer_figures_by_hand() -> None:
    rows = [
        answer_row(0, ((27, 31),)),
        answer_row(1, ()),
        answer_row(2, ()),
        answer_row(3, ((0, 3),), "summary"),
    ]

    def said(first: float, second: float) -> list[AnswerClaim]:
        one, two = outcomes([first, second])
        return [AnswerClaim(0, 26, one), AnswerClaim(27, len(ANSWER), two)]

    claims = [said(0.9, 0.2), said(0.9, 0.6), [], said(0.9, 0.3)]
    figures = answer_figures("x", rows, claims, seed=0)
    assert figures["x.no_claims"] == 1
    assert figures["x.no_claims_ids"] == ["2"]
    assert figures["x.auroc"] == figures["x.auroc_worst"] == figures["x.auroc_mean"] == 1.0
    assert figures["x.f1"] == 1.0
    assert figures["x.f1_always"] == pytest.approx(2 * 2 / (2 * 2 + 2))
    flagged = len(ANSWER) - 27
    assert figures["x.span_precision"] == pytest.approx(4 / (2 * flagged))
    assert figures["x.span_recall"] == pytest.approx(4 / 7)
    assert figures["x.span_f1"] == pytest.approx(2 * 4 / (2 * flagged + 7))
    # Bad claims: second of answer 0 (score .8), first of answer 3 (.1); others .1 .1 .4 .7.
    # .8 beats all four; .1 ties with two and loses to two.
    assert figures["x.claim_auroc"] == pytest.approx((4 + 1) / 8)
    assert figures["x.qa.n"] == 3
    assert figures["x.summary.auroc"] is None, "one class only"


def test_answers_are_ranked_by_the_mean_of_their_five_least_supported_claims() -> None:
    rows = [answer_row(0, ((0, 3),)), answer_row(1, ())]
    scores = [[0.5] * 5 + [1.0] * 20, [0.0] + [0.9] * 4]  # means of five .5 and .72, of all .9 and .72
    claims = [[AnswerClaim(0, 26, outcome) for outcome in outcomes(each)] for each in scores]
    figures = answer_figures("x", rows, claims, seed=0)
    assert [figures[f"x.{key}"] for key in ("auroc", "auroc_worst", "auroc_mean")] == [1.0, 0.0, 0.0]


def test_each_half_of_the_answers_is_decided_at_the_threshold_of_the_other() -> None:
    rows = [answer_row(i, ((27, 31),) if i % 2 else ()) for i in range(20)]
    # 1 - support is .6 for the clean and .7 for the others: as shipped all are flagged.
    claims = [[AnswerClaim(27, 56, outcomes([0.3 if row.spans else 0.4])[0])] for row in rows]
    figures = answer_figures("x", rows, claims, seed=0)
    assert figures["x.f1"] == pytest.approx(2 / 3)
    assert figures["x.f1_tuned"] == 1.0


def test_a_span_of_part_of_a_word_is_no_bad_claim() -> None:
    claims = [[AnswerClaim(0, 26, outcomes([0.2])[0]), AnswerClaim(27, 56, outcomes([0.8])[0])]]
    part = answer_figures("x", [answer_row(0, ((5, 7),))], claims, seed=0)
    assert part["x.claim_auroc"] is None
    whole = answer_figures("x", [answer_row(0, ((4, 11),))], claims, seed=0)
    assert whole["x.claim_auroc"] == 1.0


# --- records and tables ------------------------------------------------------------------------------


def test_a_record_is_plain_and_names_machine_versions_and_weights() -> None:
    found = hardware()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["packages"]["numpy"] == np.__version__
    assert found["cores"] >= 1
    held = weights(["verify", "verify decision"])
    assert held["verify"] == bundled("verify").fingerprint
    assert held["verify decision"] != held["verify"]


def test_a_decision_is_told_apart_whatever_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    before = weights(["verify", "verify decision"])
    model = bundled("verify")
    other = replace(model.record, calibration=replace(model.record.calibration, review_low=0.123))
    monkeypatch.setattr("benchmarks.record.bundled", lambda name: replace(model, record=other))
    after = weights(["verify", "verify decision"])
    assert after["verify"] == before["verify"]
    assert after["verify decision"] != before["verify decision"]


def test_a_cell_is_a_percentage_with_its_interval() -> None:
    figures = {"a": 0.5, "a.ci": [0.4, 0.61], "b": 1.0, "b.ci": [1.0, 1.0], "c": None}
    assert [cell(figures, key) for key in "abcd"] == ["50.0 [40.0, 61.0]", "100.0", "-", "-"]
    assert cell(figures, "a", signed=True) == "+50.0 [+40.0, +61.0]"
    assert table(["x", "y"], [["1", 2]]).splitlines() == ["| x | y |", "|---|---|", "| 1 | 2 |"]


# --- the command -------------------------------------------------------------------------------------


def run(data: Path, out: Path, *more: str) -> dict[str, Any]:
    assert main(["quality", "--data", str(data), "--json", str(out), *more]) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    assert not any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in walk(found))
    return found


def test_simple_systems_end_to_end(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = run(data, tmp_path / "q.json", "--systems", "always_supported,unseen_share")
    assert "| share of unseen words |" in capsys.readouterr().out
    assert figures["always_supported/first.balanced_accuracy"] == 0.5
    assert figures["always_supported/mean.false_pass"] == 1.0
    assert figures["unseen_share/first.false_strip"] == 0.0
    assert figures["unseen_share/notes.span_f1"] == 1.0
    assert figures["always_supported/notes.no_claims_ids"] == ["refusal"]
    for set_name in ("first", "second", "mean"):
        for figure in ("balanced_accuracy", "auroc", "false_pass", "false_strip", "balanced_accuracy_loso"):
            assert 0 <= figures[f"unseen_share/{set_name}.{figure}"] <= 1
            low, high = figures[f"unseen_share/{set_name}.{figure}.ci"]
            assert 0 <= low <= high <= 1
    assert figures["rows"] == {"first": 8, "second": 8, "notes": 9}
    assert figures["weights"].keys() == {"verify", "verify decision", "static"}
    assert figures["settings"]["limit"] == 200
    again = run(data, tmp_path / "q.json", "--systems", "unseen_share", "--limit", "4", "--sets", "first")
    assert again["unseen_share/first.n"] == 4


@pytest.mark.parametrize(
    "wrong",
    [["--systems", "psychic"], ["--sets", "third"], ["--limit", "-1"], ["--data", "/does/not/exist"]],
)
def test_wrong_requests_are_refused(data: Path, tmp_path: Path, wrong: list[str]) -> None:
    arguments = ["--data", str(data), "--json", str(tmp_path / "q.json"), "--systems", "unseen_share", *wrong]
    assert main(["quality", *arguments]) == 2
    assert not (tmp_path / "q.json").exists()


def test_surefoot_end_to_end(data: Path, tmp_path: Path) -> None:
    figures = run(data, tmp_path / "q.json", "--limit", "6")
    for system in ("", "exhaustive/", "straightforward/", "unseen_share/", "always_supported/"):
        for set_name in ("first", "second", "mean"):
            for figure in ("balanced_accuracy", "auroc", "false_pass", "false_strip"):
                assert 0 <= figures[f"{system}{set_name}.{figure}"] <= 1
        for task in ("notes", "notes.qa", "notes.summary"):
            assert f"{system}{task}.auroc" in figures
            assert f"{system}{task}.f1_tuned" in figures
    assert figures["mean.balanced_accuracy"] > figures["always_supported/mean.balanced_accuracy"]
    assert "unseen_share/mean.auroc_surefoot_minus_this.ci" in figures


def test_every_step_can_be_switched_off() -> None:
    assert STEPS
    for name in STEPS:
        (found,) = build(name, model=None, threads=1).claims("The library opens at nine.", [SENTENCES[0][1]])
        assert found.supported


def test_the_list_of_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in BENCHMARKS)
    assert main(["nonsense"]) == 2
    for name, benchmark in BENCHMARKS.items():
        module = importlib.import_module(f"benchmarks.{benchmark.module}")
        assert callable(module.measure), name
        assert callable(module.show), name
        assert weights(benchmark.weights).keys() == set(benchmark.weights), name


# --- what is published -------------------------------------------------------------------------------

RESULTS = ROOT / "benchmarks" / "results"
NOTES = {"embed", "rerank-training", "verify-training"}
"""Records of training runs, not results of a benchmark; each says in ``what`` how it was made."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def sections(text: str) -> list[str]:
    return re.split(r"(?m)^(?=#+ )", text)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_published_result_has_its_command_and_is_of_the_present_weights_or_marked(path: Path) -> None:
    result = json.loads(path.read_text("utf-8"))
    shown = [
        (page, part) for page in PAGES for part in sections(page.read_text("utf-8")) if path.name in part
    ]
    assert shown, "no page shows it"
    if path.stem in NOTES:
        assert result["what"]
        return
    now = weights(BENCHMARKS[path.stem].weights)
    older = {name for name, value in result["weights"].items() if now[name] != value}
    missing = set(now) - set(result["weights"])  # nothing shows that they are the present ones
    for page, part in shown:
        assert ("older weights" in part.lower()) == bool(older | missing), (
            page.name,
            sorted(older | missing),
        )
    command = f"make bench WHAT={path.stem}"
    assert any(command in part for _, part in shown), f"no page that shows it says {command}"


def test_the_published_tables_are_those_of_the_published_figures() -> None:
    figures = json.loads((RESULTS / "quality.json").read_text("utf-8"))
    steps = json.loads((RESULTS / "ablation.json").read_text("utf-8"))
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    card = (ROOT / "docs" / "models" / "verify.md").read_text("utf-8")
    rows = means_table(figures).splitlines()[2:]
    assert len(rows) == 5
    for row in (*rows, *sets_table(figures).splitlines()[2:]):
        assert row in page, row
    for row in (rows[1], rows[-1]):
        assert row.split("|", 2)[2].strip() in card, row
    for row in answers_table(figures, "ragtruth").splitlines()[2:]:
        assert row in page, row
    for row in steps_table(steps).splitlines()[2:]:
        cells = row.split("|", 2)[2].replace("-", "\N{MINUS SIGN}")  # the page has names of steps in words
        assert cells.strip() in page, row
