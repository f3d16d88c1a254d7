"""What a measurement ran on: without it, a figure or a rate means little."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

__all__ = ["describe"]

PACKAGES = (
    *("surefoot", "numpy", "onnxruntime", "tokenizers"),
    *("torch", "transformers", "sentence-transformers"),
)


def describe(*, threads: int | None = None) -> dict[str, object]:
    """CPU, cores, memory, versions, date and commit, as plain values for JSON.

    Args:
        threads: the number of threads that the measured systems were given, where one was given.
    """
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": _usable_cores(),
        "threads": threads,
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
    }


def _cpu_model() -> str:
    """Model name with family and stepping where the kernel tells: clouds give names like "AMD EPYC"."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())  # the first processor
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    wide = [
        flag
        for flag in ("avx2", "avx512_vnni", "avx_vnni", "amx_int8")
        if flag in fields.get("flags", "").split()
    ]
    return name + (f", {' '.join(wide)}" if wide else "")


def _usable_cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Commit of the checkout, marked where files differ from it; ``None`` outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit} (with local changes)" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.strip()
