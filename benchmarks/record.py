"""What every result holds besides its figures: machine, versions, weights. And the tables made of results."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

from surefoot.models.manifest import bundled

__all__ = ["cell", "hardware", "progress", "table", "weights", "write_json"]

T = TypeVar("T")
PACKAGES = (
    "surefoot",
    "numpy",
    "onnxruntime",
    "tokenizers",
    "torch",
    "transformers",
    "sentence-transformers",
)


def weights(names: Sequence[str]) -> dict[str, str]:
    """What the figures depend on besides the code.

    Args:
        names: ``MODEL`` for the fingerprint of a bundled model; ``MODEL decision`` for a sha256 of its
            calibration and fusion, which turn scores into verdicts or an order.
    """
    found = {}
    for name in names:
        model = bundled(name.removesuffix(" decision"))
        found[name] = model.fingerprint
        if name.endswith(" decision"):
            entry = model.record.to_dict()
            parts = json.dumps([entry.get("calibration"), entry.get("fusion")], sort_keys=True)
            found[name] = hashlib.sha256(parts.encode()).hexdigest()
    return found


def progress(items: Sequence[T], about: str) -> Iterable[T]:
    """The items, with a progress bar on standard error."""
    return track(items, about, console=Console(stderr=True))


def write_json(path: Path, value: object) -> None:
    """Write the whole file or nothing, and never a NaN."""
    text = json.dumps(value, indent=1, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(path)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def cell(figures: Mapping[str, Any], key: str, *, signed: bool = False) -> str:
    """A share in percent, with the 95% interval under ``KEY.ci`` unless it is missing or a point."""
    if figures.get(key) is None:
        return "-"
    numbers = [figures[key], *(figures.get(f"{key}.ci") or ())]
    shown = [f"{round(100 * n, 1) + 0.0:+.1f}" if signed else f"{100 * n:.1f}" for n in numbers]
    return shown[0] if len(set(shown)) == 1 else f"{shown[0]} [{shown[1]}, {shown[2]}]"


def hardware() -> dict[str, Any]:
    """CPU, cores, memory, versions, date and commit, as plain values."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
    }


def _cpu() -> str:
    """Model, family and vector extensions: clouds give names like "AMD EPYC"."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    pairs = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines)]
    fields = dict(reversed(pairs))  # those of the first processor
    name = fields.get("model name") or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    flags = fields.get("flags", "").split()
    wide = [flag for flag in ("avx2", "avx512_vnni", "avx_vnni", "amx_int8") if flag in flags]
    return ", ".join([name, " ".join(wide)] if wide else [name])


def _memory() -> float | None:
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
    """Commit of the checkout, marked if files differ from it; ``None`` outside a checkout."""
    try:
        commit, changed = (
            subprocess.run(
                ["git", *arguments],
                cwd=Path(__file__).parent,
                capture_output=True,
                text=True,
                check=True,
                timeout=20,
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit} (with local changes)" if changed else commit
