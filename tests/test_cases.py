"""The benchmark of short cases: how verdicts are counted, and a run on a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.cases import load, main, outcome, unseen_words  # noqa: E402


@pytest.mark.parametrize(
    ("expect", "found", "result"),
    [
        ("S", "S", "right"),
        ("X", "U", "right"),
        ("U", "X", "right"),
        ("S-X", "NSX", "right"),  # a heading is not listed
        ("N", "NN", "right"),
        ("N-S", "S", "right"),
        ("X", "S", "false_pass"),
        ("S-U", "XS", "false_pass"),  # the worse of two errors counts
        ("S", "U", "false_strip"),
        ("S", "N", "false_strip"),
        ("S", "R", "open"),
        ("X", "R", "open"),
        ("X", "N", "open"),
        ("N", "U", "open"),
        ("S", "SS", "open"),
        ("S", "", "false_strip"),
    ],
)
def test_how_verdicts_count(expect: str, found: str, result: str) -> None:
    assert outcome(expect, found) == result


def test_the_rule_of_unseen_words() -> None:
    case = {
        "sources": ["The kit holds 12 pens."],
        "answer": "It holds:\n- 12 pens\n- 2 rulers",
        "expect": "S-U",
    }
    assert unseen_words(case) == "SU"


def test_a_run_reports_and_asserts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {"id": "a", "kind": "plain", "sources": ["Entry is free on Mondays and Tuesdays."], "expect": "S"}
        | {"answer": "Entry is free on Mondays and Tuesdays."},
        {"id": "b", "kind": "plain", "sources": ["Entry is free."], "answer": "Hello!", "expect": "S"},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(case) for case in cases) + "\n")
    main([str(path), "--threads", "1", "--show", "--json", str(tmp_path / "out.jsonl")])
    printed = capsys.readouterr().out
    assert "b: false_strip, S expected, N found: Hello!" in printed
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert written[0]["verify"] == {"found": "S", "outcome": "right"}
    assert written[1]["all supported"]["outcome"] == "right"


def test_a_faulty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a", "kind": "b", "sources": [], "answer": "x", "expect": "Q"}\n')
    with pytest.raises(ValueError, match=r"cases\.jsonl:1"):
        load(path)
