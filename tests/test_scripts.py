"""The shell scripts of the checkout: what they say, and what they call."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
