"""``surefoot ask``: what it reads, what it prints where, and its exit codes."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from scripted_endpoint import ScriptedEndpoint, chat, error
from surefoot import cli
from surefoot.inference.embedding import Embedder
from surefoot.pipeline import REFUSAL
from surefoot.retrieve import Index

EMBEDDER = Path(__file__).parent / "fixtures" / "models" / "bert-embed"
QUESTION = "How much does the return label cost?"
TEXTS = {
    "labels.md": "# Parcels\n\nThe return label costs 4.50 euros. We deduct this amount from the refund.\n",
    "gold.txt": "Gold membership costs 29 euros a year and renews itself unless it is cancelled.\n",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("documents")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "i"
    embedder = Embedder(EMBEDDER, pooling="mean", threads=1)
    Index.build([{"id": name, "text": text} for name, text in TEXTS.items()], embedder=embedder).save(path)
    return path


def run(*arguments: str | Path, environment: dict[str, Any] | None = None) -> Result:
    words = ["ask", *map(str, arguments), "--embedder", str(EMBEDDER), "--pooling", "mean"]
    result = CliRunner().invoke(
        cli.app, words, prog_name="surefoot", env={"SUREFOOT_DEBUG": None, **(environment or {})}
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def code_for(result: Result) -> int:
    """3 where the reranker has no model to load: the order is then said to be the first stage's."""
    return 3 if "not_reranked" in result.output or "warning: rerank" in result.stderr else 0


def test_an_answer_with_citations_and_verdicts(folder: Path) -> None:
    result = run(QUESTION, "--index", folder)
    assert result.exit_code == code_for(result)
    assert "The return label costs 4.50 euros. [Doc " in result.stdout
    assert "labels.md" in result.stdout
    assert "supported" in result.stdout
    assert "stands word for word in a source" in result.stdout


def test_documents_without_an_index_and_json(files: list[str]) -> None:
    result = run(QUESTION, "--source", files[0], "--source", files[1], "--json", "--top-k", "2", "-k", "3")
    table = json.loads(result.stdout)
    assert table["answer"].startswith("The return label costs 4.50 euros. [Doc ")
    assert table["report"]["claims"][0]["verdict"] == "supported"
    assert len(table["ranked"]["sources"]) == 2
    assert result.exit_code == code_for(result)


def test_a_request_is_documents_without_its_answer(tmp_path: Path) -> None:
    request = {"question": QUESTION, "answer": "Ninety years.", "sources": ["Bees fly.", "Cats sleep."]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    result = run(QUESTION, "--source", tmp_path / "request.json", "--json", "--min-evidence", "0")
    ranked = json.loads(result.stdout)["ranked"]["sources"]
    assert sorted(found["text"] for found in ranked) == ["Bees fly.", "Cats sleep."]
    assert "only its sources are read" in result.stderr


def test_no_answer_in_the_documents(folder: Path) -> None:
    result = run("Who won the battle of Hastings in 1066?", "--index", folder)
    assert result.stdout.startswith(REFUSAL)
    assert "is below 0.42" in result.stdout
    assert result.exit_code == code_for(result)
    answered = run("Who won the battle of Hastings in 1066?", "--index", folder, "--min-evidence", "0")
    assert not answered.stdout.startswith(REFUSAL)


def test_stages_are_told_with_their_times(folder: Path) -> None:
    result = run(QUESTION, "--index", folder, "--stream", "-q")
    told = [line.split()[1] for line in result.stderr.splitlines() if line.split()[1][-1] == ":"]
    stages = [word for word in told if word != "warning:"]
    assert stages == ["retrieve:", "rerank:", "generate:", "verify:", "done:"]
    assert result.stdout == ""


def test_events_as_json_lines(folder: Path) -> None:
    result = run(QUESTION, "--index", folder, "--stream", "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["stage"] for event in events] == ["retrieve", "rerank", "generate", "verify", "done"]
    assert events[-1]["result"]["answer"]
    assert all(event["seconds"] >= 0 for event in events)


def test_a_model_and_a_judge(folder: Path) -> None:
    answer = "The return label costs 4.50 euros. [Doc 1]"
    # A low score is tried once with an invented statement, which an honest judge rejects.
    script = (chat(answer), chat('{"score": 0.1}'), chat('{"score": 0.9}'))
    with ScriptedEndpoint(*script) as server:
        result = run(
            QUESTION,
            "--index",
            folder,
            "--model",
            "m",
            "--judge",
            "j",
            "--base-url",
            server.url,
            environment={"OPENAI_API_KEY": "k"},
        )
        assert [request.body["model"] for request in server.requests] == ["m", "j", "j"]
    assert result.stdout.startswith(answer)
    assert "judge: 0.10, risk low" in result.stdout
    assert result.exit_code == code_for(result)


def test_what_was_found_is_shown_though_the_endpoint_fails(folder: Path) -> None:
    with ScriptedEndpoint(default=error(401, "no")) as server:
        result = run(QUESTION, "--index", folder, "--model", "m", "--base-url", server.url)
    assert result.exit_code == 3
    assert result.stdout.startswith("There is no answer.")
    assert "[Doc 1]" in result.stdout
    assert "warning: generate: " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([QUESTION], "either --index DIR, or --source FILE"),
        ([QUESTION, "--index", "nowhere"], "nowhere: there is no index"),
        ([QUESTION, "--index", "nowhere", "--source", "x"], "either --index DIR, or --source FILE"),
        ([QUESTION, "--source", "nowhere.txt"], "nowhere.txt: cannot be read"),
        ([QUESTION, "--index", ".", "--top-k", "6", "-k", "5"], "--top-k must be at most -k"),
        ([QUESTION, "--index", ".", "--base-url", "http://localhost:1"], "--base-url goes with --model"),
        ([QUESTION, "--index", ".", "--judge-url", "http://localhost:1"], "--judge-url goes with --judge"),
        (["  ", "--index", "."], "the question is empty"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_a_folder_that_is_no_index(tmp_path: Path) -> None:
    result = run(QUESTION, "--index", tmp_path)
    assert result.exit_code == 2
    assert str(tmp_path) in result.stderr


def test_an_empty_index(tmp_path: Path) -> None:
    Index.build([], embedder=Embedder(EMBEDDER, pooling="mean", threads=1)).save(tmp_path / "i")
    result = run(QUESTION, "--index", tmp_path / "i")
    assert result.exit_code == 2
    assert "is empty: it holds no passage" in result.stderr
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    result = run(QUESTION, "--source", tmp_path / "blank.txt")
    assert result.exit_code == 2
    assert "is empty: it holds no passage" in result.stderr


def test_nothing_of_a_document_acts_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("The return label costs \x1b[31m4.50 euros today.", encoding="utf-8")
    result = run(QUESTION, "--source", tmp_path / "bad.txt", "--min-evidence", "0")
    assert "\x1b" not in result.stdout
    assert "<U+001B>" in result.stdout


def test_the_example_runs_offline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = Path(__file__).resolve().parents[1] / "examples" / "pipeline.py"
    if not example.exists():
        pytest.skip("the examples are not beside the tests")
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    shown = capsys.readouterr().out
    assert "The return label costs 4.50 euros. [Doc " in shown
    assert "- supported: verbatim" in shown
