"""ONNX Runtime sessions: one thread a run, no memory kept between runs, and the threads to run them in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

import onnxruntime as ort

from surefoot.errors import ConfigurationError, ModelIntegrityError
from surefoot.models.int8store import SESSION_CONFIG

__all__ = ["Arithmetic", "available_threads", "check_arithmetic", "open_session"]

Arithmetic = Literal["float32", "int8"]


def available_threads() -> int:
    """Cores that this process may use: the affinity mask, then the cgroup's CPU quota; at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        cores = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return max(1, cores)


def check_arithmetic(arithmetic: str) -> None:
    """Raise :class:`ConfigurationError` for a name that is not of :data:`Arithmetic`."""
    if arithmetic not in get_args(Arithmetic):
        raise ConfigurationError(f"arithmetic must be 'float32' or 'int8', not {arithmetic!r}")


def open_session(path: Path) -> ort.InferenceSession:
    """A session whose runs are computed by one thread each, and which keeps no memory between runs.

    Raises:
        ModelIntegrityError: ONNX Runtime cannot load the file.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # parallelism is across runs, so that a sum has one order
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # the arena keeps gigabytes in long-lived services
    options.enable_mem_pattern = False  # a pattern is kept for every shape ever seen
    options.log_severity_level = 3
    for key, value in SESSION_CONFIG.items():
        options.add_session_config_entry(key, value)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelIntegrityError(f"ONNX Runtime cannot load {path.name}: {error}") from error
