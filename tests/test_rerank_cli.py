"""``surefoot rerank``: what it reads, what it prints where, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from surefoot import cli
from surefoot.inference.relevance import RelevanceModel
from surefoot.rerank import Reranker

MODEL = Path(__file__).parent / "fixtures" / "models" / "bert-relevance"
QUERY = "when does the store open"
TEXTS = ["A dog ran along the river.", "The store opens at nine.", "Two men were fishing."]


@pytest.fixture(autouse=True)
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model has random weights, which its self-test would rightly refuse."""
    monkeypatch.setattr(RelevanceModel, "self_test", lambda self: None)


def run(*arguments: str | Path, stdin: str | bytes = "", model: str | Path = MODEL) -> Result:
    words = ["rerank", *map(str, arguments), "--model", str(model)]
    result = CliRunner().invoke(
        cli.app, words, input=stdin, prog_name="surefoot", env={"SUREFOOT_DEBUG": None}
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def order(result: Result) -> list[int]:
    return [source["index"] for source in json.loads(result.stdout)["sources"]]


@pytest.fixture(scope="module")
def expected() -> list[int]:
    return [source.index for source in Reranker(MODEL, self_test=False).rerank(QUERY, TEXTS)]


def written(tmp_path: Path, name: str, content: Any) -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "request_",
    [
        {"query": QUERY, "passages": TEXTS},
        {"question": QUERY, "sources": [{"id": str(i), "text": text} for i, text in enumerate(TEXTS)]},
    ],
    ids=["query and passages", "question and sources"],
)
def test_a_request(request_: dict[str, Any], tmp_path: Path, expected: list[int]) -> None:
    result = run(written(tmp_path, "r.json", request_), "--json")
    assert result.exit_code == 0
    assert order(result) == expected
    assert result.stderr == ""


def test_other_inputs(tmp_path: Path, expected: list[int]) -> None:
    array = written(tmp_path, "a.json", TEXTS)
    lines = written(
        tmp_path, "b.jsonl", "\n".join(json.dumps({"chunk_text": text}) for text in TEXTS) + "\n\n"
    )
    plain = written(tmp_path, "c.txt", "\n".join(TEXTS) + "\n\n")
    files = [str(written(tmp_path, f"{index}.txt", text)) for index, text in enumerate(TEXTS)]
    for arguments in (
        [array],
        [lines],
        [plain, "--lines"],
        [word for file in files for word in ("--source", file)],
    ):
        result = run(*arguments, "--query", QUERY, "--json")
        assert result.exit_code == 0, result.stderr
        assert order(result) == expected
    assert order(run("-", "--query", QUERY, "--json", stdin=json.dumps(TEXTS))) == expected
    assert order(run("-", "--lines", "--query", QUERY, "--json", stdin="\n".join(TEXTS))) == expected


def test_the_query_of_the_command_wins(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", {"query": "other", "passages": TEXTS})
    assert json.loads(run(path, "--query", QUERY, "--json").stdout)["query"] == QUERY


def test_what_is_printed(tmp_path: Path, expected: list[int]) -> None:
    items = [{"id": f"doc\x1b{i}", "text": text} for i, text in enumerate(TEXTS)]
    result = run(written(tmp_path, "r.json", {"query": QUERY, "passages": [*items, None]}))
    lines = result.stdout.splitlines()
    assert len(lines) == 8
    assert lines[0].startswith("1.  relevance 0.")
    assert f"was {expected[0] + 1}." in lines[0]
    assert "doc<U+001B>" in lines[0]
    assert "\x1b" not in result.stdout
    assert lines[1] == f"   {TEXTS[expected[0]]}"
    assert lines[6].startswith("4.  empty")
    assert run(written(tmp_path, "r.json", {"query": QUERY, "passages": TEXTS}), "--quiet").stdout == ""


def test_how_many(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", {"query": QUERY, "passages": [*TEXTS, *map(str, range(6))]})
    assert len(order(run(path, "--json"))) == 5
    assert len(order(run(path, "--json", "--top-k", "2"))) == 2
    assert len(order(run(path, "--json", "--all"))) == 9


def test_fields_and_windows(tmp_path: Path) -> None:
    long = "The store opens at nine on Monday. " * 20
    path = written(tmp_path, "r.json", {"query": QUERY, "passages": [{"body": long, "text": "x"}]})
    result = run(path, "--text-field", "body", "--max-length", "32")
    assert "best of" in result.stdout
    assert len(result.stdout.splitlines()[1]) < 310


def test_explain(tmp_path: Path) -> None:
    text = "The store opens at nine. A dog ran along."
    path = written(tmp_path, "r.json", {"query": QUERY, "passages": [text, None, TEXTS[2]]})
    shown = run(path, "--explain").stdout
    assert shown.count("alone") == 3
    assert "  The store opens at nine." in shown
    data = json.loads(run(path, "--explain", "--json").stdout)
    assert sum(len(item["sentences"]) for item in data["explanations"]) == 3


def test_a_threshold_that_nothing_reaches(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", {"query": QUERY, "passages": TEXTS})
    result = run(path, "--threshold", "1")
    assert (result.exit_code, result.stdout) == (1, "no passage reaches the threshold\n")
    assert run(path, "--threshold", "0").exit_code == 0
    assert run(path, "--threshold", "3.5").exit_code == 2
    empty = run(written(tmp_path, "e.json", []), "--query", QUERY)
    assert (empty.exit_code, empty.stdout) == (0, "no passage\n")


def test_unranked_passages_are_printed_and_said_to_be(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", {"query": QUERY, "passages": TEXTS})
    result = run(path, "--json", model="no-such-model")
    assert result.exit_code == 3
    assert order(result) == [0, 1, 2]
    assert "warning: not reranked: no bundled model" in result.stderr
    result = run(path, "--quiet", model="no-such-model")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "not reranked" in result.stderr  # never silent about that
    assert "partial" in run(path, "--json", "--deadline-ms", "0.000001").stdout
    assert run(path, "--deadline-ms", "0.000001").exit_code == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1, column 2"),
        ('"text"', "expected an array of passages"),
        ('{"query": "q"}', 'the field "passages" is missing'),
        ('{"query": 3, "passages": []}', "query: expected a string"),
        ('{"query": "q", "passages": [3]}', "passages[0] must be a string"),
        ('{"query": "q", "passages": ["a"], "query": "r"}', "appears twice"),
        ('{"query": "q", "passages": [{"text": "a", "score": NaN}]}', "NaN is not JSON"),
    ],
)
def test_wrong_input(content: str, message: str, tmp_path: Path) -> None:
    result = run(written(tmp_path, "r.json", content))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


def test_wrong_commands(tmp_path: Path) -> None:
    path = written(tmp_path, "r.json", TEXTS)
    for arguments in ([], [path], [path, "--source", path], ["--source", path, "--lines", "--query", "q"]):
        assert run(*arguments).exit_code == 2
    assert run(tmp_path / "no.json").exit_code == 2
    jsonl = written(tmp_path, "r.jsonl", '"a"\n{\n')
    result = run(jsonl, "--query", "q")
    assert result.exit_code == 2
    assert "line 2" in result.stderr
