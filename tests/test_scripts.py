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


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["--threads", "1"], "run: -m benchmarks.verify --threads 1"),
        (["verify"], "run: -m benchmarks.verify"),
        (["rerank", "--rounds", "3"], "run: -m benchmarks.rerank --rounds 3"),
        (["retrieval", "--data", "d"], "run: -m benchmarks.retrieval --limit 50 --data d"),
    ],
)
def test_bench_runs_what_is_named(tmp_path: Path, words: list[str], called: str) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(STUB)
    python.chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts" / "bench", tmp_path, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [called]


def test_bench_names_what_it_knows(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "bench", tmp_path, "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "known are verify, rerank and retrieval" in done.stderr
