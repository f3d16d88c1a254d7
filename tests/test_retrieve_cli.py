"""``surefoot index`` and ``surefoot search``: files in, passages out, interruptions in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from surefoot.cli import app
from surefoot.inference.embedding import Embedder
from surefoot.retrieve import Index

FIXTURE = Path(__file__).parent / "fixtures" / "models" / "bert-embed"
MODEL = ["--model", str(FIXTURE), "--pooling", "mean", "--threads", "1"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def made(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = run("index", *arguments, *MODEL, "--json")
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def found(*arguments: object) -> list[dict[str, Any]]:
    result = run("search", *arguments, *MODEL, "--json")
    assert result.exit_code == 0, result.output
    hits: list[dict[str, Any]] = json.loads(result.stdout)["hits"]
    return hits


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "refund.md").write_text("# Refunds\n\nOur refund policy allows returns within thirty days.\n")
    (folder / "deep" / "hours.txt").write_text("The store opens at nine on Monday.")
    (folder / "page.html").write_text("<title>River</title><p>A dog ran along the river.</p>")
    (folder / "list.json").write_text('[{"id": "x", "text": "Lyon in 1984"}, "a second text"]')
    (folder / ".hidden.md").write_text("hidden")
    (folder / "image.png").write_bytes(b"\x89PNG")
    return folder


def test_a_folder_is_indexed_and_searched(docs: Path) -> None:
    done = made("docs", "--out", "ix")
    assert (done["files"], done["sources"], done["added"]) == (4, 5, 5)
    hit = found("ix", "refund returns", "-k", 2, "--mode", "bm25")[0]
    assert (hit["source_id"], hit["metadata"]) == ("docs/refund.md", {"path": "docs/refund.md"})
    text = (docs / "refund.md").read_text()
    assert hit["text"] == text[hit["start"] : hit["end"]]
    assert found("ix", "river", "--mode", "bm25")[0]["title"] == "River"
    assert {hit["source_id"] for hit in found("ix", "lyon second")} >= {
        "docs/list.json#x",
        "docs/list.json#2",
    }
    shown = run("search", "ix", "refund", *MODEL)
    assert "1. docs/refund.md" in shown.stdout
    assert "by words 1." in shown.stdout


def test_only_what_changed_is_embedded(docs: Path) -> None:
    made("docs", "--out", "ix")
    again = made("docs", "--out", "ix")
    assert (again["unchanged"], again["embedded"], again["added"]) == (5, 0, 0)
    (docs / "refund.md").write_text("No refunds any more.")
    (docs / "new.txt").write_text("Something new.")
    (docs / "page.html").unlink()
    update = made("docs", "--out", "ix")
    assert (update["replaced"], update["added"], update["removed"], update["unchanged"]) == (1, 1, 1, 3)
    assert update["embedded"] == 2
    assert found("ix", "refunds", "--mode", "bm25")[0]["text"] == "No refunds any more."
    assert run("search", "ix", "river", "--mode", "bm25", *MODEL).exit_code == 1


def test_other_paths_stay(docs: Path, tmp_path: Path) -> None:
    made("docs", "--out", "ix")
    (tmp_path / "more.txt").write_text("One more file.")
    assert made("more.txt", "--out", "ix")["sources"] == 6
    assert made("docs/deep", "--out", "ix")["removed"] == 0
    (docs / "deep" / "hours.txt").unlink()
    assert made("docs/deep", "--out", "ix")["removed"] == 1


def test_ctrl_c_and_the_same_command_again(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "long.txt").write_text("\n\n".join(f"Paragraph {n} about dogs. " * 2 for n in range(300)))
    calls = 0
    real = Embedder.embed

    def interrupted(self: Embedder, texts: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        return real(self, texts, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed", interrupted)
        result = run("index", "docs", "--out", "ix", "--size", "50", *MODEL)
    assert result.exit_code == 130
    assert "goes on" in result.stderr
    assert run("search", "ix", "dogs", *MODEL).exit_code == 2  # there is no index yet
    done = made("docs", "--out", "ix", "--size", "50")
    whole = made("docs", "--out", "other", "--size", "50")
    assert done["embedded"] == whole["embedded"] - 256
    assert done["passages"] == whole["passages"]
    assert not (Path("ix") / "embedded.journal").exists()
    assert len(found("ix", "dogs")) == 15


def test_a_file_that_cannot_be_read_does_not_stop_the_others(docs: Path) -> None:
    made("docs", "--out", "ix")
    (docs / "refund.md").write_bytes(b"x" * 3_000_000)
    result = run("index", "docs", "--out", "ix", "--max-mb", "1", "--json", *MODEL)
    assert result.exit_code == 3
    done = json.loads(result.stdout)
    assert (done["skipped"], done["removed"], done["sources"]) == (1, 0, 5)
    assert "docs/refund.md" in result.stderr
    assert found("ix", "refund", "--mode", "bm25")  # as it was when it could be read


def test_where(docs: Path) -> None:
    Path("years.json").write_text(
        json.dumps([{"id": y, "text": f"report of {y}", "metadata": {"year": y}} for y in (2020, 2021)])
    )
    made("years.json", "--out", "ix")
    hits = found("ix", "report", "--where", "year=2021")
    assert [hit["metadata"]["year"] for hit in hits] == [2021]
    assert run("search", "ix", "report", "--where", "year", *MODEL).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-here", "--out", "ix"], "no such file"),
        (["docs", "--out", "docs"], "holds no index but other files"),
        (["docs", "--out", "ix", "--size", "3"], "50 to"),
    ],
)
def test_wrong_commands(docs: Path, arguments: list[str], message: str) -> None:
    result = run("index", *arguments, *MODEL)
    assert result.exit_code == 2
    assert message in result.stderr


def test_another_size_needs_a_rebuild(docs: Path) -> None:
    made("docs", "--out", "ix", "--size", "100")
    assert "--rebuild" in run("index", "docs", "--out", "ix", "--size", "200", *MODEL).stderr
    assert made("docs", "--out", "ix", "--size", "200", "--rebuild")["chunker"]["size"] == 200


def test_the_index_itself_is_no_document(docs: Path) -> None:
    made("docs", "--out", "docs/ix")
    assert made("docs", "--out", "docs/ix")["files"] == 4


def test_what_a_terminal_would_obey_is_not_written(docs: Path) -> None:
    (docs / "evil.txt").write_text("dog \x1b[2J \u202e evil")
    made("docs", "--out", "ix")
    shown = run("search", "ix", "evil", "--mode", "bm25", *MODEL).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    index = Index.load("ix", embedder=Embedder(FIXTURE, pooling="mean"))
    assert index.source("docs/evil.txt").text == "dog \x1b[2J \u202e evil"
