"""The quality benchmark: its figures on hand-made outcomes, and the script on a tiny folder of data."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks import quality  # noqa: E402
from benchmarks.answer_figures import FIGURES, answer_figures, summed_up_answers  # noqa: E402
from benchmarks.baselines import (  # noqa: E402
    AlwaysSupported,
    AnswerClaim,
    Outcome,
    Straightforward,
    UnseenShare,
    pack_passages,
    sentences,
)
from benchmarks.datasets import (  # noqa: E402
    AnswerRow,
    GroundingRow,
    claims_shared,
    discover,
    load_answers,
    load_grounding,
    passages_of,
    sample,
)
from benchmarks.figures import (  # noqa: E402
    differences,
    families,
    grounding_figures,
    leave_one_out,
    mean_figures,
    summed_up,
)
from benchmarks.hardware import describe  # noqa: E402
from benchmarks.markdown import answers_table, cell, means_table, sets_table  # noqa: E402
from benchmarks.resampling import draw, interval, mean_of, weighted_auroc  # noqa: E402
from benchmarks.systems import build, outcome_of  # noqa: E402

from surefoot import metrics  # noqa: E402
from surefoot.schema import Claim, Reason, Verdict  # noqa: E402


def verifier_problem() -> str | None:
    """Why surefoot itself cannot be run here, if it cannot: no model in a fresh checkout, say."""
    if importlib.util.find_spec("surefoot.verify") is None:
        return "surefoot has no verifier yet"
    from surefoot import Verifier
    from surefoot.errors import ModelNotFoundError

    try:
        Verifier().check_claims(["The library is open."], ["The library is open."])
    except ModelNotFoundError as error:
        return str(error)
    return None


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
RULES = ("", "_strict", "_loso")
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


def outcomes(scores: list[float], **more: Any) -> list[Outcome]:
    return [Outcome(score=s, supported=s >= 0.5, strict=s >= 0.5, **more) for s in scores]


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
    shared = claims_shared({"a": rows_of([1, 0]), "b": rows_of([1, 0, 1]), "c": rows_of([1], "other ")})
    assert shared["a", "b"] == 1.0
    assert shared["a", "c"] == 0.0
    groups = families(shared, ["a", "b", "c"], at_least=0.5)
    assert sorted(map(sorted, groups)) == [["a", "b"], ["c"]]


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
    assert [c.abstained for c in checked] == [False, True, False]


def test_straightforward_takes_the_best_passage_and_cuts() -> None:
    seen: list[list[tuple[str, str]]] = []

    def scorer(pairs: Any) -> list[float]:
        seen.append(list(pairs))
        return [0.9 if "needle" in premise else 0.1 for premise, _ in pairs]

    premise = ("hay " * 199 + ". ") * 3 + "A needle lies here."  # three full passages, then one
    cut = Straightforward(scorer, scorer_name="words")
    (found,) = cut.claims(premise, ["c" * 300])
    assert found.score == 0.9
    assert len(seen) == 1, "one call per claim"
    assert max(len(p) for p, _ in seen[0]) == 512
    assert {len(c) for _, c in seen[0]} == {256}
    uncut = Straightforward(scorer, scorer_name="words", cut=False)
    assert uncut.name == "straightforward_nocut"
    uncut.claims(premise, ["c" * 300])
    assert max(len(p) for p, _ in seen[1]) > 512
    assert {len(c) for _, c in seen[1]} == {300}
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
            Outcome(score=0.9, supported=True, strict=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.UNCERTAIN,), support=0.6),
            Outcome(score=0.6, supported=True, strict=False, review=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.UNCERTAIN,), support=0.4),
            Outcome(score=0.4, supported=False, strict=False, review=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.CHECKER_FAILED,), support=0.9),
            Outcome(score=0.0, supported=False, strict=False, review=True, abstained=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.REVIEW, reasons=(Reason.LANGUAGE,)),
            Outcome(score=0.0, supported=False, strict=False, review=True, abstained=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.NOT_CHECKABLE),
            Outcome(score=0.0, supported=False, strict=False, abstained=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.CONTRADICTED, support=0.8),
            Outcome(score=0.8, supported=False, strict=False, veto=True),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.UNSUPPORTED, support=0.2),
            Outcome(score=0.2, supported=False, strict=False),
        ),
        (
            Claim("x", 0, 1, verdict=Verdict.UNSUPPORTED),
            Outcome(score=0.0, supported=False, strict=False),
        ),
    ],
)
def test_how_a_verdict_counts(claim: Claim, expected: Outcome) -> None:
    assert outcome_of(claim) == expected


# --- figures -----------------------------------------------------------------------------------------


def test_grounding_figures_by_hand() -> None:
    rows = rows_of([1, 1, 0, 0, 0])
    said = [*outcomes([0.9, 0.4, 0.1, 0.2]), Outcome(score=0.6, supported=True, strict=False, review=True)]
    figures = grounding_figures("x", summed_up(rows, said), seed=0)
    assert figures["x.balanced_accuracy"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert figures["x.balanced_accuracy_strict"] == pytest.approx((1 / 2 + 1) / 2)
    assert figures["x.false_pass"] == pytest.approx(1 / 3)
    assert figures["x.false_strip"] == pytest.approx(1 / 2)
    assert figures["x.auroc"] == pytest.approx(5 / 6)
    assert figures["x.review"] == 1
    assert figures["x.balanced_accuracy_loso"] is None, "no other set to choose a threshold on"
    low, high = figures["x.false_pass.ci"]  # type: ignore[misc]
    assert low < 1 / 3 < high


def test_always_supported_scores_half() -> None:
    rows = rows_of([1, 1, 1, 0])
    result = summed_up(rows, AlwaysSupported().claims("p", [row.claim for row in rows]))
    figures = grounding_figures("x", result, seed=0)
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
    assert decided["low"].threshold_loso == pytest.approx(0.75)
    assert decided["low"].figure("balanced_accuracy_loso") == 0.5
    assert decided["high"].threshold_loso == pytest.approx(0.25)
    assert decided["high"].figure("balanced_accuracy_loso") == 0.5
    together = leave_one_out(results, [{"low", "high"}])
    assert together["low"].figure("balanced_accuracy_loso") is None


def test_no_threshold_brings_back_what_was_rejected() -> None:
    rows = rows_of([1, 0])
    vetoed = [Outcome(score=0.9, supported=False, strict=False, veto=True)] * 2
    results = {"a": summed_up(rows, vetoed), "b": summed_up(rows_of([1, 0], "b"), outcomes([0.9, 0.1]))}
    decided = leave_one_out(results, [{"a"}, {"b"}])
    assert decided["a"].loso is not None
    assert not decided["a"].loso.any()


def test_means_and_differences_over_sets() -> None:
    labels = [1, 1, 0, 0]
    good = {
        name: summed_up(rows_of(labels, name), outcomes([0.9, 0.8, 0.1, 0.2])) for name in ("a", "b", "c")
    }
    bad = {name: summed_up(rows_of(labels, name), outcomes([0.9] * 4)) for name in ("a", "b")}
    mixed = {**good, "c": summed_up(rows_of(labels, "c"), outcomes([0.9, 0.9, 0.9, 0.9]))}
    figures = mean_figures(mixed, [{"a", "b"}, {"c"}], seed=0)
    assert figures["mean.balanced_accuracy"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert figures["mean_distinct.balanced_accuracy"] == pytest.approx((1 + 0.5) / 2)
    apart = differences(good, bad, seed=0)
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
    assert figures["x.auroc"] == 1.0
    assert figures["x.f1"] == figures["x.precision"] == figures["x.recall"] == 1.0
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


def test_a_span_of_part_of_a_word_is_no_bad_claim() -> None:
    claims = [[AnswerClaim(0, 26, outcomes([0.2])[0]), AnswerClaim(27, 56, outcomes([0.8])[0])]]
    part = answer_figures("x", [answer_row(0, ((5, 7),))], claims, seed=0)
    assert part["x.claim_auroc"] is None
    whole = answer_figures("x", [answer_row(0, ((4, 11),))], claims, seed=0)
    assert whole["x.claim_auroc"] == 1.0


def test_every_resampled_figure_is_the_figure_itself_when_all_rows_are_drawn_once() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 40)
    scores = np.round(np.clip(labels * 0.3 + rng.random(40) * 0.7, 0, 1), 1)
    result = summed_up(rows_of(labels.tolist()), outcomes(scores.tolist()))
    result = leave_one_out({"a": result, "b": result}, [{"a"}, {"b"}])["a"]
    once = np.ones((1, 40))
    names = [f"{base}{rule}" for base in ("balanced_accuracy", "false_pass", "false_strip") for rule in RULES]
    for name in [*names, "auroc", "brier"]:
        assert result.resampled(name, once)[0] == pytest.approx(result.figure(name), abs=1e-12)
    rows, claims = [], []
    for i in range(40):
        rows.append(answer_row(i, ((27, 31),) if labels[i] else ()))
        one, two = outcomes([1 - scores[i], round(float(rng.random()), 1)])
        claims.append([AnswerClaim(0, 26, one), AnswerClaim(27, 56, two)])
    answers = summed_up_answers(rows, claims, seed=0)
    for name in FIGURES:
        everything = np.ones(40, dtype=bool)
        assert answers.resampled(name, once)[0] == pytest.approx(answers.figure(name, everything), abs=1e-12)


def test_resampled_figures_agree_with_figures_of_repeated_rows() -> None:
    rng = np.random.default_rng(5)
    labels, scores = rng.random(30) < 0.5, np.round(rng.random(30), 1)
    groups = [str(i // 3) for i in range(30)]
    weights = draw(groups, seed=3, name="x", resamples=20)
    for row in weights.astype(int):
        assert row.sum() == 30
        assert all(len(set(row[i : i + 3])) == 1 for i in range(0, 30, 3)), "groups stay whole"
    areas = weighted_auroc(weights, labels, scores)
    for row, area in zip(weights.astype(int), areas, strict=True):
        assert area == pytest.approx(metrics.auroc(np.repeat(labels, row), np.repeat(scores, row)))
    assert (weights == draw(groups, seed=3, name="x", resamples=20)).all()
    assert (weights != draw(groups, seed=4, name="x", resamples=20)).any()


def test_intervals_agree_with_the_library() -> None:
    rng = np.random.default_rng(6)
    labels = rng.random(200) < 0.5
    scores = np.clip(labels * 0.3 + rng.random(200) * 0.7, 0, 1)
    groups = [str(i // 2) for i in range(200)]
    ours = interval(weighted_auroc(draw(groups, seed=0, name="x"), labels, scores))
    theirs = metrics.bootstrap_interval(
        lambda rows: metrics.auroc(labels[rows], scores[rows]), 200, groups=groups, seed=0
    )
    assert ours == pytest.approx(theirs, abs=0.015)


def test_undefined_resamples_are_left_out() -> None:
    assert interval(np.array([np.nan, np.nan, np.nan, 0.5])) is None
    assert interval(np.array([np.nan, 0.5, 0.5, 0.5])) == [0.5, 0.5]
    mean = mean_of([np.array([0.5, np.nan]), np.array([1.0, np.nan])])
    assert mean[0] == 0.75
    assert np.isnan(mean[1])


def test_hardware_is_plain_and_dated() -> None:
    found = describe(threads=2)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["threads"] == 2
    assert found["packages"]["numpy"] == np.__version__  # type: ignore[index]


# --- the script --------------------------------------------------------------------------------------


def test_simple_systems_end_to_end(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "q.json"
    arguments = ["--data", str(data), "--json", str(out), "--systems", "always_supported,unseen_share"]
    assert quality.main(arguments) == 0
    table = capsys.readouterr().out
    assert "unseen_share" in table
    figures = json.loads(out.read_text())
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
    assert figures["hardware"]["cores"] >= 1
    assert figures["settings"]["rows"]["first"] == [8, 8]
    assert not any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in walk(figures))


def test_a_second_run_uses_finished_parts_and_changed_data_does_not(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("--data", str(data), "--json", str(tmp_path / "q.json"), "--work", str(tmp_path / "w")),
        *("--systems", "unseen_share", "--sets", "first,notes"),
    ]
    assert quality.main(arguments) == 0
    first = json.loads((tmp_path / "q.json").read_text())
    assert "kept" not in capsys.readouterr().err
    assert quality.main(arguments) == 0
    assert capsys.readouterr().err.count("kept from an earlier run") == 2
    second = json.loads((tmp_path / "q.json").read_text())
    assert {k: v for k, v in first.items() if k != "hardware"} == {
        k: v for k, v in second.items() if k != "hardware"
    }
    assert quality.main([*arguments, "--limit", "4"]) == 0
    assert "kept" not in capsys.readouterr().err
    (tmp_path / "w" / "unseen_share__first.json").write_text("{")  # as a kill in mid-write would not leave it
    assert quality.main([*arguments, "--limit", "4"]) == 0
    assert capsys.readouterr().err.count("kept from an earlier run") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ["--systems", "psychic"],
        ["--sets", "third"],
        ["--limit", "-1"],
        ["--checkpoint", "/does/not/exist"],
        ["--data", "/does/not/exist"],
    ],
)
def test_wrong_requests_are_refused(data: Path, tmp_path: Path, wrong: list[str]) -> None:
    arguments = ["--data", str(data), "--json", str(tmp_path / "q.json"), "--systems", "unseen_share", *wrong]
    assert quality.main(arguments) == 2
    assert not (tmp_path / "q.json").exists()


def test_the_script_runs_by_its_path(data: Path, tmp_path: Path) -> None:
    command = [
        *(sys.executable, str(ROOT / "benchmarks" / "quality.py"), "--data", str(data)),
        *("--json", str(tmp_path / "q.json"), "--limit", "4", "--systems", "always_supported"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "rows/s" in done.stderr
    assert json.loads((tmp_path / "q.json").read_text())["always_supported/first.n"] == 4


def test_surefoot_end_to_end(data: Path, tmp_path: Path) -> None:
    problem = verifier_problem()
    if problem:
        pytest.skip(problem)
    out = tmp_path / "q.json"
    assert quality.main(["--data", str(data), "--json", str(out), "--limit", "6"]) == 0
    figures = json.loads(out.read_text())
    for system in ("", "exhaustive/", "straightforward/", "unseen_share/", "always_supported/"):
        for set_name in ("first", "second", "mean"):
            for figure in ("balanced_accuracy", "auroc", "false_pass", "false_strip"):
                assert 0 <= figures[f"{system}{set_name}.{figure}"] <= 1
        for task in ("notes", "notes.qa", "notes.summary"):
            assert f"{system}{task}.auroc" in figures
            assert f"{system}{task}.f1_tuned" in figures
    assert figures["mean.balanced_accuracy"] > figures["always_supported/mean.balanced_accuracy"]
    assert "not sentence-transformers" in figures["systems"]["straightforward"]["scorer"]
    assert not any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in walk(figures))


def test_every_ablation_can_be_built() -> None:
    problem = verifier_problem()
    if problem:
        pytest.skip(problem)
    from benchmarks.systems import ablations

    names = list(ablations())
    assert names
    for name in names:
        system = build(f"ablation_{name}", model=None, checkpoint=None, threads=1)
        (found,) = system.claims("The library opens at nine.", ["The library opens at nine."])
        assert found.supported
    with pytest.raises(ValueError, match="no system"):
        build("ablation_nothing", model=None, checkpoint=None, threads=1)


def test_the_published_tables_are_those_of_the_published_figures():
    figures = json.loads((ROOT / "benchmarks" / "results" / "quality.json").read_text("utf-8"))
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    card = (ROOT / "docs" / "models" / "verify.md").read_text("utf-8")
    rows = means_table(figures).splitlines()[2:]
    assert len(rows) == 5
    for row in (*rows, *sets_table(figures).splitlines()[2:]):
        assert row in page, row
        assert row in card, row
    for row in answers_table(figures, "ragtruth").splitlines()[2:]:
        assert row in page, row


def test_a_cell_is_a_percentage_with_its_interval():
    figures = {"a": 0.5, "a.ci": [0.4, 0.61], "b": 1.0, "b.ci": [1.0, 1.0], "c": None}
    assert [cell(figures, key) for key in "abcd"] == ["50.0 [40.0, 61.0]", "100.0", "-", "-"]
