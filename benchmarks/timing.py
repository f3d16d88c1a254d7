"""What the two speed benchmarks share: text, turns, fresh processes, and the weights as a checkpoint."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["PEAK", "alternate", "checkpoint_of", "compared", "fresh", "paragraphs"]

# VmHWM and not ru_maxrss: the latter starts at the size of the process that forked this one.
PEAK = "; print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024)"


def paragraphs() -> list[str]:
    """Prose from the documentation that ships with Python, without markup, code and tables."""
    from pydoc_data import topics

    found = [
        re.sub(r"[*`]+", "", " ".join(part.split()))
        for key in sorted(topics.topics)
        for part in topics.topics[key].split("\n\n")
    ]
    return [part for part in dict.fromkeys(found) if len(part) > 60 and not part.startswith((">>>", "|"))]


def alternate(
    ours: Callable[[int], Any], theirs: Callable[[int], Any], rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of both calls, run in turn so that a machine that slows down slows both.

    The calls get the number of the round. One round before is not counted.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for which, call in enumerate((ours, theirs)):
            started = time.perf_counter()
            call(turn)
            if turn:
                times[which].append(time.perf_counter() - started)
    return times


def compared(name: str, times: tuple[list[float], list[float]], baseline: str) -> dict[str, float]:
    """Medians of both sides, and how many times as long the other one takes."""
    ours, theirs = map(statistics.median, times)
    return {f"seconds_{name}": ours, f"{baseline}_seconds_{name}": theirs, f"speedup_{name}": theirs / ours}


def fresh(code: Mapping[str, str], argument: Path, rounds: int) -> dict[str, list[tuple[float, str]]]:
    """Run code for each side in fresh processes, in turn: (seconds from start to end, output) of each."""
    found: dict[str, list[tuple[float, str]]] = {side: [] for side in code}
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    for _ in range(rounds):
        for side, text in code.items():
            command = [sys.executable, "-c", f"import json, re, sys; {text}", str(argument)]
            started = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                raise ValueError(done.stderr)
            found[side].append((time.perf_counter() - started, done.stdout.strip()))
    return found


@contextlib.contextmanager
def checkpoint_of(name: str, given: Path | None) -> Iterator[Path]:
    """A Hugging Face folder with the weights of a bundled model, for PyTorch; ``given`` if there is one."""
    if given is not None:
        yield given
        return
    from training.restore import restore

    from surefoot.models.manifest import bundled

    with tempfile.TemporaryDirectory() as folder:
        restore(bundled(name).model_path.parent, Path(folder, "checkpoint"))
        yield Path(folder, "checkpoint")
