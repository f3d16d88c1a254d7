"""ONNX Runtime sessions over text pairs: same pair, same bits, whatever else is being scored.

Three things make a score depend on its company elsewhere: padding to the longest of a batch, a number
of threads that splits a sum differently, and arithmetic in int8. Here every pair is padded to a length
that depends on it alone, a run holds pairs of one length only, each run is computed by one thread
(parallelism is across runs), and arithmetic is float32. The results are then bit-identical, which the
tests check. Arithmetic in int8 is for those who ask for it, see :class:`PairModel`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from tokenizers import Tokenizer

from surefoot.errors import ConfigurationError, ModelError, ModelIntegrityError
from surefoot.models.int8store import SESSION_CONFIG
from surefoot.processor import INT8, processor

__all__ = [
    "Arithmetic",
    "PairModel",
    "ScoreCache",
    "TextEncoder",
    "available_threads",
    "check_arithmetic",
    "clean",
    "equal_length_runs",
    "open_session",
]

Pair = tuple[str, str]
Progress = Callable[[int, int], None]
Arithmetic = Literal["float32", "int8"]

_LENGTH_STEP: Final = 8
"""Pairs are padded to a multiple of this, so that runs of equal length exist at all."""

_RUN_TOKENS: Final = 256
"""Tokens in one run. On a CPU larger batches gain nothing beyond this, and small ones balance better."""

_PARITY: Final = (
    ("The museum opens at nine in the morning and closes at six.", "The museum opens at nine."),
    ("The museum opens at nine in the morning and closes at six.", "The museum never closes on Mondays."),
    (
        "In 2019 the firm had 1,250 employees in 14 countries, most of them in Asia.",
        "It had 1,250 employees.",
    ),
    (
        "In 2019 the firm had 1,250 employees in 14 countries, most of them in Asia.",
        "It was founded in 1990.",
    ),
    ("how long do refunds take", "Money is back on your card within five working days. " * 4),
    ("who designed the bridge", "The river is crossed by two ferries, which run all year. " * 4),
)
"""Pairs whose logits must agree before int8 arithmetic is used; short and long, alike and apart."""

_LARGEST_GAP: Final = 0.08
"""Logits may differ so much on average, as a share of their spread over these pairs: 0.03 with VNNI."""

_log = logging.getLogger(__name__)

_SURROGATES: Final = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")


def clean(text: str) -> str:
    """``text`` with lone surrogates replaced one for one, so that it encodes and offsets stay."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text


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


class ScoreCache:
    """A bounded map from (model, premise, claim) to logits; the least recently used entry goes first.

    Keys are digests, so that a cache of ``size`` entries holds a few hundred bytes each, however
    long the texts. Safe under threads.
    """

    def __init__(self, size: int = 16_384) -> None:
        if size < 0:
            raise ConfigurationError(f"cache size must not be negative: {size}")
        self._size = size
        self._entries: OrderedDict[bytes, npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @staticmethod
    def key(fingerprint: str, pair: Pair) -> bytes:
        """A 16-byte digest; lengths go in first, so that no two different pairs share a preimage."""
        premise, claim = (clean(text).encode("utf-8") for text in pair)
        head = f"{fingerprint}\0{len(premise)}\0{len(claim)}\0".encode()
        return hashlib.blake2b(head + premise + claim, digest_size=16).digest()

    def get(self, key: bytes) -> npt.NDArray[np.float32] | None:
        """The logits stored under ``key``, or ``None``."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: bytes, logits: npt.NDArray[np.float32]) -> None:
        """Store ``logits``, dropping the oldest entry when full."""
        if not self._size:
            return
        with self._lock:
            self._entries[key] = logits
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


class TextEncoder:
    """A tokenizer that is configured once and never changed, hence safe under threads.

    Truncation and padding are off: a tokenizer that truncates does so silently, and switching either
    on while another thread encodes fails with "Already borrowed".
    """

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise ModelIntegrityError(f"cannot read the tokenizer {path.name}: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.pair_overhead: int = self._tokenizer.num_special_tokens_to_add(True)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Encodings without special tokens; each has ``ids`` and ``offsets`` in code points."""
        cleaned = [clean(text) for text in texts]
        return list(self._tokenizer.encode_batch(cleaned, add_special_tokens=False))

    def encode_pairs(self, pairs: Sequence[Pair]) -> list[Any]:
        """Encodings with special tokens and segment ids."""
        return list(self._tokenizer.encode_batch([(clean(a), clean(b)) for a, b in pairs]))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text, special tokens not counted."""
        return [len(encoding.ids) for encoding in self.encode(texts)]


class PairModel:
    """A cross-encoder: (first text, second text) -> logits.

    Args:
        model: path of an ONNX file with inputs ``input_ids``, ``attention_mask`` and, where the
            architecture has segments, ``token_type_ids``, and the output ``logits``.
        tokenizer: path of the ``tokenizer.json`` that goes with it.
        fingerprint: digest of both, for the cache.
        max_length: positions of the model, special tokens included.
        threads: runs computed at a time; all available cores by default.
        cache: shared or private score cache; a private one by default.
        arithmetic: ``"int8"`` multiplies in int8, which is faster on some processors; scores then differ a
            little from those of other machines. It is taken only where the processor has instructions for
            it (VNNI or AMX), there is a graph for it, and six pairs come out as in float32; else
            arithmetic stays float32, and a line in the log says why. The attribute of the same name says
            which one is used.
        int8: the graph for that, which lies beside the model (:mod:`surefoot.models.int8graph`).

    Raises:
        ModelIntegrityError: a file is damaged.
        ModelError: the graph does not have the inputs and outputs above.
        ConfigurationError: ``threads`` is below 1, or ``arithmetic`` is unknown.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        fingerprint: str,
        max_length: int = 512,
        threads: int | None = None,
        cache: ScoreCache | None = None,
        arithmetic: Arithmetic = "float32",
        int8: Path | None = None,
    ) -> None:
        self.threads = available_threads() if threads is None else threads
        if self.threads < 1:
            raise ConfigurationError(f"threads must be at least 1: {threads}")
        check_arithmetic(arithmetic)
        self.encoder = TextEncoder(tokenizer)
        self.max_length = max_length
        self.fingerprint = fingerprint
        self.cache = ScoreCache() if cache is None else cache
        self._session = open_session(model)
        self._inputs = {node.name for node in self._session.get_inputs()}
        outputs = [node.name for node in self._session.get_outputs()]
        if not {"input_ids", "attention_mask"} <= self._inputs or "logits" not in outputs:
            raise ModelError(
                f"{model.name} is no cross-encoder: inputs {sorted(self._inputs)}, outputs {outputs}"
            )
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown:
            raise ModelError(f"{model.name} needs inputs that surefoot does not know: {sorted(unknown)}")
        self._pool: ThreadPoolExecutor | None = None
        self._pool_pid = 0
        self._pool_lock = threading.Lock()
        self.arithmetic: Arithmetic = "float32"
        if arithmetic == "int8":
            refused = self._try_int8(int8)
            if refused:
                _log.warning("%s: arithmetic stays float32: %s", model.name, refused)

    def _try_int8(self, graph: Path | None) -> str | None:
        """Take the session that computes in int8, or say why not."""
        if not INT8 & set(processor()[1]):
            return "this processor has neither VNNI nor AMX"
        if graph is None:
            return "its weights are not stored in int8, or it has no graph for it"
        exact, faster = self._session, open_session(graph)
        encodings = self.encoder.encode_pairs(_PARITY)
        short = [i for i, encoding in enumerate(encodings) if len(encoding.ids) <= self.max_length]
        lengths = [len(encodings[i].ids) for i in short]
        runs = equal_length_runs(lengths, self.max_length, tokens=0)
        jobs = [([short[i] for i in run], length, encodings) for run, length in runs]
        if not jobs:
            return "it reads too few tokens to be tried"
        expected = np.concatenate([self._run(job)[1] for job in jobs])
        self._session = faster
        apart = np.abs(np.concatenate([self._run(job)[1] for job in jobs]) - expected)
        gap = float(apart.mean() / max(float(np.ptp(expected)), 1e-6))
        if gap <= _LARGEST_GAP:  # also false where a logit is not a number
            self.arithmetic = "int8"
            self.fingerprint += "+int8"  # scores of the two must not be mixed in a cache
            return None
        self._session = exact
        return f"logits differ by {gap:.0%} of their spread"

    def titled(self, name: str) -> str:
        """The name of this model as reports show it: it says so where scores are those of int8 arithmetic."""
        return f"{name} (int8)" if self.arithmetic == "int8" else name

    def room(self, claim: str) -> int:
        """Tokens that a premise may have beside ``claim``; negative where the claim alone is too long."""
        return self.max_length - self.encoder.pair_overhead - self.encoder.count([claim])[0]

    def logits(self, pairs: Sequence[Pair], *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """Score pairs.

        Args:
            pairs: texts; duplicates are computed once, and pairs in the cache not at all.
            progress: called with (pairs done, pairs to do) from one thread at a time.

        Returns:
            Array of shape (len(pairs), labels), in the order of ``pairs``.

        Raises:
            ModelError: a pair is longer than the model; nothing is ever cut here.
        """
        keys = [self.cache.key(self.fingerprint, pair) for pair in pairs]
        known: dict[bytes, npt.NDArray[np.float32]] = {}
        missing: dict[bytes, Pair] = {}
        for key, pair in zip(keys, pairs, strict=True):
            if key in known or key in missing:
                continue
            cached = self.cache.get(key)
            if cached is None:
                missing[key] = pair
            else:
                known[key] = cached
        if missing:
            names = list(missing)
            encodings = self.encoder.encode_pairs(list(missing.values()))
            longest = max(len(encoding.ids) for encoding in encodings)
            if longest > self.max_length:
                raise ModelError(f"a pair has {longest} tokens, and the model reads {self.max_length}")
            done = 0
            runs = equal_length_runs(
                [len(encoding.ids) for encoding in encodings],
                self.max_length,
                # In int8 one scale serves a whole run: a pair that shared it would depend on the other pairs.
                tokens=_RUN_TOKENS if self.arithmetic == "float32" else 0,
            )
            for members, output in self._map([(run, length, encodings) for run, length in runs]):
                for member, row in zip(members, output, strict=True):
                    known[names[member]] = row
                    self.cache.put(names[member], row)
                done += len(members)
                if progress is not None:
                    progress(done, len(names))
        if not pairs:
            return np.zeros((0, self._width()), dtype=np.float32)
        return np.stack([known[key] for key in keys])

    def _width(self) -> int:
        shape = self._session.get_outputs()[0].shape
        return shape[-1] if isinstance(shape[-1], int) else 0

    def _map(
        self, jobs: list[tuple[list[int], int, list[Any]]]
    ) -> Iterable[tuple[list[int], npt.NDArray[np.float32]]]:
        if self.threads == 1 or len(jobs) == 1:
            return map(self._run, jobs)
        return self._executor().map(self._run, jobs)

    def _executor(self) -> ThreadPoolExecutor:
        with self._pool_lock:
            # Threads do not survive a fork; the child makes its own instead of waiting for ever.
            if self._pool is None or self._pool_pid != os.getpid():
                self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="surefoot")
                self._pool_pid = os.getpid()
            return self._pool

    def _run(self, job: tuple[list[int], int, list[Any]]) -> tuple[list[int], npt.NDArray[np.float32]]:
        members, length, encodings = job
        shape = (len(members), length)
        feeds = {name: np.zeros(shape, dtype=np.int64) for name in self._inputs}
        for row, member in enumerate(members):
            encoding = encodings[member]
            size = len(encoding.ids)
            feeds["input_ids"][row, :size] = encoding.ids
            feeds["attention_mask"][row, :size] = 1
            if "token_type_ids" in feeds:
                feeds["token_type_ids"][row, :size] = encoding.type_ids
        try:
            output = self._session.run(["logits"], feeds)[0]
        except Exception as error:
            raise ModelError(f"inference failed: {error}") from error
        return members, np.asarray(output, dtype=np.float32)


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


def equal_length_runs(
    lengths: Sequence[int], max_length: int, *, tokens: int = _RUN_TOKENS
) -> list[tuple[list[int], int]]:
    """Group pairs of equal padded length, longest first, at most ``tokens`` tokens a run, or one pair."""
    buckets: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        padded = min(-(-length // _LENGTH_STEP) * _LENGTH_STEP, max_length)
        buckets.setdefault(padded, []).append(index)
    runs: list[tuple[list[int], int]] = []
    for length in sorted(buckets, reverse=True):  # longest first: the last run to end is then a short one
        size = max(1, tokens // max(length, 1))
        members = buckets[length]
        runs.extend((members[at : at + size], length) for at in range(0, len(members), size))
    return runs
