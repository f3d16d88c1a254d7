"""The shell scripts of the checkout: what they say, and what they call."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

STUB = """#!/bin/sh
# Stands for Python: makes an environment of itself, and says what pip would be asked for.
case "$1 $2" in
"-c "*) exit 0 ;;
"--version "*) echo "Python 3.12.0" ;;
"-m venv") mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
*) echo "run: $*" ;;
esac
"""


def test_bootstrap_says_what_it_does_before_it_does_it(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(STUB)
    python.chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts" / "bootstrap", tmp_path / "venv"],
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    calls = [at for at, line in enumerate(lines) if line.startswith("run: ")]
    assert lines[0].startswith("bootstrap: creating ")
    assert lines[1].startswith("bootstrap: installing pinned dependencies")
    assert calls == [2, 3, 4]
    assert "--quiet" in lines[2], "progress is for a terminal"
    assert lines[-1].startswith("bootstrap: done in ")


def stub(tmp_path: Path, *, installed: bool = True) -> Path:
    """A virtual environment whose Python says what it is asked for."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(STUB if installed else STUB.replace("exit 0", "exit 1"))
    python.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "called"),
    [
        ([], "run: -m benchmarks"),
        (["verify"], "run: -m benchmarks verify"),
        (["rerank", "--rounds", "3"], "run: -m benchmarks rerank --rounds 3"),
        (["retrieval", "--data", "a folder"], "run: -m benchmarks retrieval --data a folder"),
        (["nonsense"], "run: -m benchmarks nonsense"),
    ],
)
def test_bench_runs_what_is_named(tmp_path: Path, words: list[str], called: str) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "bench", stub(tmp_path), *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [called]


@pytest.mark.parametrize(("name", "installs"), [("verify", True), ("splitters", True), ("endpoints", False)])
def test_bench_installs_what_is_missing(tmp_path: Path, name: str, installs: bool) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "bench", stub(tmp_path, installed=False), name],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[-1] == f"run: -m benchmarks {name}"
    assert [line.endswith("--editable .[bench]") for line in lines[:-1]] == [True] * installs


def test_make_bench_hands_on_name_data_and_arguments() -> None:
    done = subprocess.run(
        ["make", "-n", "bench", "WHAT=quality", "DATA=a folder", "ARGS=--limit 20", "STAMP="],
        cwd=ROOT,
        # `make test` hands its own flags down, and a make below another one prints its folder.
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == 'scripts/bench .venv quality --data "a folder" --limit 20'
