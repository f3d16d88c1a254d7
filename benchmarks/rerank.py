"""Speed of reranking: surefoot against sentence-transformers, in one run.

The other side is a sentence-transformers ``CrossEncoder`` on the same weights (PyTorch, float32, batches of
16), given the whole passages. Both sides get the same queries, passages and threads, and are run in turn, so
that a machine that slows down slows both. Score caches are empty at every call. Every figure is the median
over the rounds.

Text comes from the documentation that ships with Python (``pydoc_data.topics``): 15 passages of 512
characters, and 100 of 60 to 1,500 characters (uniform in the logarithm), all of which fit into the model, so
that both sides read the same. The logits of both are compared before anything is timed.

Process start to the first ranking, and memory, are those of fresh processes; surefoot's loads the weights as
the package stores them, in int8 (computed in float32).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.hardware import describe
from benchmarks.verify import alternate, process_time

TARGETS = {"speedup_15": 1.4, "speedup_100": 2.0, "cold_start_ratio": 8.0, "rss_ratio": 0.5}
SHORTEST, LONGEST = 60, 1_500
QUERIES = (
    "how is the order of evaluation of expressions defined",
    "what happens when an exception is not handled",
    "which objects can be used as keys of a dictionary",
    "what does the with statement do",
    "how are default values of parameters evaluated",
    "when is a class body executed",
    "which operators bind more tightly than comparison",
)


def prose() -> str:
    """Paragraphs of prose, without markup, code and tables."""
    from pydoc_data import topics

    paragraphs = [
        re.sub(r"[*`]+", "", " ".join(part.split()))
        for key in sorted(topics.topics)
        for part in topics.topics[key].split("\n\n")
    ]
    kept = [
        part
        for part in dict.fromkeys(paragraphs)
        if len(part) > 120 and not part.startswith((">>>", "|", "+-")) and part.count("=") < 3
    ]
    return " ".join(kept)


def passages_of(lengths: list[int], seed: int) -> list[str]:
    """Passages of so many characters each, from different places, each beginning with a word."""
    text = prose()
    rng = random.Random(seed)
    passages = []
    for length in lengths:
        start = text.index(" ", rng.randrange(len(text) - length - 100)) + 1
        passages.append(text[start : start + length])
    return passages


def mixed_lengths(count: int, seed: int) -> list[int]:
    """Lengths from 60 to 1,500, uniform in the logarithm."""
    rng = random.Random(seed)
    return [round(math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST)))) for _ in range(count)]


OURS = (
    "import json,re,sys; d=json.load(open(sys.argv[1])); from surefoot import Reranker; "
    "r=Reranker({folder!r}, threads={t}, self_test={s}).rerank(d['query'], d['passages'], top_k=5); "
    "assert not r.degraded, r.detail; "
)
THEIRS = (
    "import json,re,sys; d=json.load(open(sys.argv[1])); import torch; torch.set_num_threads({t}); "
    "from sentence_transformers import CrossEncoder; "
    "m=CrossEncoder({folder!r}, device='cpu', max_length=512, model_kwargs=dict(dtype=torch.float32)); "
    "r=m.predict([(d['query'], p) for p in d['passages']], batch_size=16, show_progress_bar=False); "
    "r=r.argsort(); "
)
# VmHWM and not ru_maxrss: the latter starts at the size of the process that forked this one.
PEAK = "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024)"


def arguments_of(values: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", required=True, help="Hugging Face folder of a BERT cross-encoder")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--threads", type=int, default=None, help="for both sides; all available by default")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--untrained", action="store_true", help="the weights are random: without surefoot's self-test"
    )
    return parser.parse_args(values)


def timed(
    ours: Callable[[str, list[str]], Any], theirs: Callable[[str, list[str]], Any], rounds: int
) -> dict[str, float]:
    """Seconds of both sides and their ratio, for both lists of passages."""
    figures: dict[str, float] = {}
    lists = {15: passages_of([512] * 15, seed=15), 100: passages_of(mixed_lengths(100, seed=1), seed=100)}
    for count, passages in lists.items():
        ours(QUERIES[0], passages)
        theirs(QUERIES[0], passages)
        turns = max(2, rounds if count == 15 else rounds // 2)
        mine, other = [], []
        for turn in range(turns):
            query = QUERIES[(turn + 1) % len(QUERIES)]
            a, b = alternate(
                lambda query=query, passages=passages: ours(query, passages),
                lambda query=query, passages=passages: theirs(query, passages),
                1,
            )
            mine += a
            other += b
        figures[f"seconds_{count}"] = statistics.median(mine)
        figures[f"sentence_transformers_seconds_{count}"] = statistics.median(other)
        figures[f"speedup_{count}"] = statistics.median(other) / statistics.median(mine)
        figures[f"lowest_speedup_{count}"] = min(b / a for a, b in zip(mine, other, strict=True))
        print(f"{count} passages: {figures[f'speedup_{count}']:.2f} times as fast", flush=True)
    return figures


def fresh_processes(code: dict[str, str], folder: Path, rounds: int) -> dict[str, float]:
    """Process start to the first ranking of 15 passages, and peak memory with 100."""
    first, hundred = str(folder / "15.json"), str(folder / "100.json")
    for path, passages in (
        (first, passages_of([512] * 15, seed=15)),
        (hundred, passages_of(mixed_lengths(100, seed=1), seed=100)),
    ):
        Path(path).write_text(json.dumps({"query": QUERIES[0], "passages": passages}), encoding="utf-8")
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for side in times:
            times[side].append(process_time(code[side], first)[0])
    mine, other = (statistics.median(times[side]) for side in ("ours", "theirs"))
    peaks = {side: float(process_time(code[side] + PEAK, hundred)[1]) for side in times}
    return {
        "cold_start_seconds": mine,
        "sentence_transformers_cold_start_seconds": other,
        "cold_start_ratio": other / mine,
        "peak_rss_mb": peaks["ours"],
        "sentence_transformers_peak_rss_mb": peaks["theirs"],
        "rss_ratio": peaks["ours"] / peaks["theirs"],
    }


def reached(figures: dict[str, float]) -> dict[str, bool]:
    """Which of the targets hold; memory is to be at most its figure, the rest at least."""
    return {
        name: figures[name] <= target if name == "rss_ratio" else figures[name] >= target
        for name, target in TARGETS.items()
    }


def main() -> None:
    arguments = arguments_of()

    import numpy as np
    import torch
    from sentence_transformers import CrossEncoder

    from surefoot.inference.cache import ScoreCache
    from surefoot.inference.session import available_threads
    from surefoot.models.convert import convert_folder
    from surefoot.rerank import Reranker

    threads = arguments.threads or available_threads()
    torch.set_num_threads(threads)
    self_test = not arguments.untrained
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        exact, stored = work / "float32", work / "int8"
        convert_folder(arguments.checkpoint, exact, name="float32", task="relevance")
        convert_folder(arguments.checkpoint, stored, name="int8", task="relevance", int8=True)
        # A checkpoint may be stored in half precision, in which a CPU is many times slower than in single.
        model = CrossEncoder(
            arguments.checkpoint,
            device="cpu",
            max_length=512,
            model_kwargs={"dtype": torch.float32},
            activation_fn=torch.nn.Identity(),
        )
        reranker = Reranker(exact, threads=threads, self_test=self_test, strict=True)

        def ours(query: str, passages: list[str]) -> Any:
            reranker._loaded().pairs.cache = ScoreCache(0)  # or the next round would cost nothing
            return reranker.rerank(query, passages, top_k=5)

        def theirs(query: str, passages: list[str]) -> Any:
            scores = model.predict(
                [(query, text) for text in passages], batch_size=16, show_progress_bar=False
            )
            return np.asarray(scores).reshape(len(passages), -1)

        passages = passages_of(mixed_lengths(100, seed=1), seed=100)
        expected = theirs(QUERIES[0], passages)
        ranking = reranker.rerank(QUERIES[0], passages, top_k=None)
        if expected.shape[1] != 1 or any(source.windows != 1 for source in ranking):
            raise SystemExit("the comparison needs a model with one label that reads every passage whole")
        largest = max(abs((found.reranker_score or 0.0) - expected[found.index, 0]) for found in ranking)
        if largest > 1e-3:
            raise SystemExit(f"the two sides do not compute the same: logits differ by {largest:.4f}")
        figures = {"max_logit_difference": float(largest)}
        figures |= timed(ours, theirs, arguments.rounds)
        code = {
            "ours": OURS.format(folder=str(stored), t=threads, s=self_test),
            "theirs": THEIRS.format(folder=arguments.checkpoint, t=threads),
        }
        figures |= fresh_processes(code, work, rounds=3)

    for name, value in figures.items():
        print(f"{name:44} {value:.4g}")
    targets = reached(figures)
    for name, holds in targets.items():
        bound = "at most" if name == "rss_ratio" else "at least"
        print(f"{name} {bound} {TARGETS[name]:g}: {'yes' if holds else 'NO'}")
    if arguments.json:
        result = {
            **figures,
            "targets_reached": targets,
            "characters_100": [SHORTEST, LONGEST],
            "untrained": arguments.untrained,
            "rounds": arguments.rounds,
            "threads": threads,
            "hardware": describe(threads=threads),
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
