"""What the processor says that it can do, as far as it matters for matrix products."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["INT8", "features_of", "processor"]

_FEATURES: Final = {
    "avx2": "avx2",
    "avx512f": "avx512",
    "avx512_vnni": "avx512-vnni",
    "avx_vnni": "avx-vnni",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
    "asimd": "neon",
    "asimddp": "dotprod",
    "i8mm": "i8mm",
}
"""Names in /proc/cpuinfo of what speeds up matrix products."""

INT8: Final = frozenset({"avx512-vnni", "avx-vnni", "amx-int8"})
"""Features with which products of int8 numbers are exact and fast; AVX2 alone saturates sums at 16 bits."""

_CPUINFO = Path("/proc/cpuinfo")


def processor() -> tuple[str | None, list[str]]:
    """Model name and known features of the first processor; nothing where the system does not say."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return features_of(lines)


def features_of(lines: Iterable[str]) -> tuple[str | None, list[str]]:
    """Model name and known features of the first processor in the lines of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), value.strip())
    flags = set((fields.get("flags") or fields.get("features") or "").split())
    return fields.get("model name"), [name for flag, name in _FEATURES.items() if flag in flags]
