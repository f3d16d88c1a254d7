"""Running systems over data sets: progress, and finished parts that survive a restart."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.baselines import AnswerClaim, Outcome, System
from benchmarks.datasets import AnswerRow, GroundingRow, file_digest
from benchmarks.systems import code_digest

__all__ = ["DataSet", "Progress", "outcomes", "write_json"]

CLAIMS_PER_CALL = 16


@dataclass(frozen=True, slots=True)
class DataSet:
    """The rows of a set that take part, of one kind, and how they were drawn."""

    name: str
    digest: str
    grounding: list[GroundingRow]
    answers: list[AnswerRow]
    total: int
    limit: int
    seed: int

    @property
    def size(self) -> int:
        return len(self.grounding) + len(self.answers)


class Progress:
    """One line on stderr, rewritten on a terminal and otherwise printed every few seconds."""

    def __init__(self, parts: int) -> None:
        self._parts, self._part = parts, 0
        self._live = sys.stderr.isatty()
        self._began = self._shown = 0.0
        self._label, self._size = "", 0

    def start(self, label: str, size: int) -> None:
        self._part += 1
        self._label, self._size = label, size
        self._began = self._shown = time.monotonic()

    def note(self, text: str) -> None:
        self._write(f"[{self._part}/{self._parts}] {self._label}: {text}", last=True)

    def update(self, done: int) -> None:
        now = time.monotonic()
        last = done >= self._size
        if not last and now - self._shown < (0.2 if self._live else 10):
            return
        self._shown = now
        seconds = max(now - self._began, 1e-6)
        rate = done / seconds
        left = "" if last else f", ETA {_clock((self._size - done) / rate) if done else '?'}"
        self._write(
            f"[{self._part}/{self._parts}] {self._label}: {done}/{self._size}, {rate:.1f} rows/s, "
            f"{_clock(seconds)}{left}",
            last=last,
        )

    def _write(self, text: str, *, last: bool) -> None:
        end = "\n" if last or not self._live else ""
        sys.stderr.write(f"\r\x1b[K{text}{end}" if self._live else f"{text}\n")
        sys.stderr.flush()


def outcomes(
    system: System, part: DataSet, *, checkpoint: Path | None, work: Path, progress: Progress
) -> tuple[list[list[AnswerClaim]], float]:
    """What a system says about each row, and the seconds it took: from the work folder, or measured now."""
    key = _digest(
        system=system.name,
        settings=system.describe(),
        checkpoint=_checkpoint_digest(checkpoint) if system.name.startswith("straight") else None,
        set=part.name,
        data=part.digest,
        limit=part.limit,
        seed=part.seed,
        code=code_digest(with_surefoot=system.uses_surefoot),
    )
    path = work / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', f'{system.name}__{part.name}')}.json"
    kept = _read_part(path, key, part.size)
    if kept is not None:
        progress.note("kept from an earlier run")
        return kept
    began = time.perf_counter()
    said = _ground(system, part, progress) if part.grounding else _answer(system, part, progress)
    seconds = time.perf_counter() - began
    rows = [[[claim.start, claim.end, asdict(claim.outcome)] for claim in row] for row in said]
    write_json(path, {"key": key, "seconds": seconds, "rows": rows})
    return said, seconds


def _ground(system: System, part: DataSet, progress: Progress) -> list[list[AnswerClaim]]:
    said: list[list[AnswerClaim]] = [[] for _ in part.grounding]
    done = 0
    for premise, indices in _by_premise(part.grounding):
        claims = [part.grounding[index].claim for index in indices]
        verdicts = system.claims(premise, claims)
        for index, claim, outcome in zip(indices, claims, verdicts, strict=True):
            said[index] = [AnswerClaim(0, len(claim), outcome)]
        done += len(indices)
        progress.update(done)
    return said


def _by_premise(rows: Sequence[GroundingRow]) -> Iterator[tuple[str, list[int]]]:
    """Rows that share a premise go in together, as the claims of one answer would; a few at a time."""
    together: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        together.setdefault(row.premise, []).append(index)
    for premise, indices in together.items():
        for start in range(0, len(indices), CLAIMS_PER_CALL):
            yield premise, indices[start : start + CLAIMS_PER_CALL]


def _answer(system: System, part: DataSet, progress: Progress) -> list[list[AnswerClaim]]:
    said = []
    for done, row in enumerate(part.answers, start=1):
        said.append(system.answer(row))
        progress.update(done)
    return said


def _read_part(path: Path, key: str, size: int) -> tuple[list[list[AnswerClaim]], float] | None:
    """A finished part; ``None`` where there is none, or it was made of something else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["key"] != key or len(record["rows"]) != size:
            return None
        said = [
            [AnswerClaim(start, end, Outcome(**outcome)) for start, end, outcome in row]
            for row in record["rows"]
        ]
        return said, float(record["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_json(path: Path, value: object) -> None:
    """Write whole or not at all, and never a NaN."""
    text = json.dumps(value, indent=1, allow_nan=False)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(path)


def _checkpoint_digest(folder: Path | None) -> str | None:
    if folder is None:
        return None
    return _digest(**{path.name: file_digest(path) for path in sorted(folder.iterdir()) if path.is_file()})


def _digest(**parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
