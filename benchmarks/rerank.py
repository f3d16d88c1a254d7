"""Speed of reranking: surefoot against sentence-transformers, in one run.

The other side is a sentence-transformers ``CrossEncoder`` with the same weights (PyTorch, float32, batches of
16). Both sides get the same queries, whole passages and threads, and are run in turn, with empty score
caches. Every figure is the median over the rounds. Text comes from the documentation that ships with Python:
15 passages of 512 characters, and 100 of 60 to 1,500 characters (uniform in the logarithm), all of which fit
into 512 tokens.

``default`` is the bundled reranker as it is used: it reads passages in windows of 192 tokens, and joins the
logit with the embedder's cosine and the lexical share.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.record import table
from benchmarks.timing import PEAK, alternate, checkpoint_of, compared, fresh, paragraphs

__all__ = ["measure", "mixed_lengths", "options", "passages_of", "show", "timed"]

SHORTEST, LONGEST = 60, 1_500
LARGEST_DIFFERENCE = 1e-3
QUERIES = (
    "how is the order of evaluation of expressions defined",
    "what happens when an exception is not handled",
    "which objects can be used as keys of a dictionary",
    "what does the with statement do",
    "how are default values of parameters evaluated",
    "when is a class body executed",
    "which operators bind more tightly than comparison",
)
OURS = (
    "d=json.load(open(sys.argv[1])); from surefoot import Reranker; "
    "r=Reranker({c!r}, threads={t}).rerank(d['query'], d['passages'], top_k=5); "
    "assert not r.degraded, r.detail"
)
THEIRS = (
    "d=json.load(open(sys.argv[1])); import torch; torch.set_num_threads({t}); "
    "from sentence_transformers import CrossEncoder; "
    "m=CrossEncoder({c!r}, device='cpu', max_length=512, model_kwargs=dict(dtype=torch.float32)); "
    "r=m.predict([(d['query'], p) for p in d['passages']], batch_size=16, show_progress_bar=False).argsort()"
)
Call = Callable[[str, list[str]], Any]


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--checkpoint", type=Path, help="Hugging Face folder of another BERT cross-encoder")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Time both sides.

    Raises:
        ValueError: the two sides do not compute the same logits.
    """
    import torch
    from sentence_transformers import CrossEncoder

    from surefoot import Reranker
    from surefoot.inference.cache import ScoreCache
    from surefoot.inference.session import available_threads
    from surefoot.models.convert import convert_folder

    threads = options.threads or available_threads()
    torch.set_num_threads(threads)
    with checkpoint_of("rerank", options.checkpoint) as checkpoint, tempfile.TemporaryDirectory() as made:
        stored = Path(made, "int8")
        convert_folder(checkpoint, stored, name="int8", task="relevance", int8=True)
        model = CrossEncoder(
            str(checkpoint),
            device="cpu",
            max_length=512,
            model_kwargs={"dtype": torch.float32},
            activation_fn=torch.nn.Identity(),
        )

        def ours(reranker: Reranker) -> Call:
            def call(query: str, passages: list[str]) -> Any:
                reranker._loaded().pairs.cache = ScoreCache(0)  # or the next round would cost nothing
                return reranker.rerank(query, passages, top_k=None)

            return call

        def theirs(query: str, passages: list[str]) -> Any:
            pairs = [(query, text) for text in passages]
            return model.predict(pairs, batch_size=16, show_progress_bar=False).reshape(len(passages), -1)

        whole = ours(Reranker(stored, threads=threads, strict=True))
        passages = passages_of(mixed_lengths(100, seed=1), seed=100)
        expected = theirs(QUERIES[0], passages)
        ranking = whole(QUERIES[0], passages)
        apart = max(abs((found.reranker_score or 0.0) - float(expected[found.index, 0])) for found in ranking)
        if apart > LARGEST_DIFFERENCE or any(found.windows != 1 for found in ranking):
            raise ValueError(f"the two sides do not compute the same: logits differ by {apart:.4f}")
        figures: dict[str, Any] = {"threads": threads, "max_logit_difference": apart}
        figures |= timed(whole, theirs, options.rounds)
        default = timed(ours(Reranker(threads=threads, strict=True)), theirs, options.rounds)
        figures |= {f"default_{key}": value for key, value in default.items() if key.startswith("s")}
        code = {
            "ours": OURS.format(c=str(stored), t=threads),
            "theirs": THEIRS.format(c=str(checkpoint), t=threads),
        }
        return figures | fresh_processes(code, Path(made), rounds=min(3, options.rounds))


def passages_of(lengths: list[int], seed: int) -> list[str]:
    """Passages of so many characters each, from different places, each beginning with a word."""
    text = " ".join(part for part in paragraphs() if len(part) > 120 and part.count("=") < 3)
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


def lists() -> dict[int, list[str]]:
    """Both lists of passages, by their size."""
    return {15: passages_of([512] * 15, seed=15), 100: passages_of(mixed_lengths(100, seed=1), seed=100)}


def timed(ours: Call, theirs: Call, rounds: int) -> dict[str, float]:
    """Seconds of both sides and their ratio, for both lists of passages; each round asks another query."""
    figures: dict[str, float] = {}
    for count, passages in lists().items():
        ask = [
            lambda turn, call=call, passages=passages: call(QUERIES[turn % len(QUERIES)], passages)
            for call in (ours, theirs)
        ]
        times = alternate(ask[0], ask[1], max(2, rounds if count == 15 else rounds // 2))
        figures |= compared(str(count), times, "sentence_transformers")
        figures[f"lowest_speedup_{count}"] = min(b / a for a, b in zip(*times, strict=True))
        print(f"{count} passages: {figures[f'speedup_{count}']:.2f} times as fast", flush=True)
    return figures


def fresh_processes(code: Mapping[str, str], folder: Path, rounds: int) -> dict[str, float]:
    """Process start to the first ranking of 15 passages, and peak memory with 100."""
    for count, passages in lists().items():
        text = json.dumps({"query": QUERIES[0], "passages": passages})
        Path(folder, f"{count}.json").write_text(text, encoding="utf-8")
    runs = fresh(code, folder / "15.json", rounds)
    mine, other = (statistics.median(seconds for seconds, _ in runs[side]) for side in ("ours", "theirs"))
    peaks = fresh({side: text + PEAK for side, text in code.items()}, folder / "100.json", 1)
    ours, theirs = (float(peaks[side][0][1]) for side in ("ours", "theirs"))
    return {
        "cold_start_seconds": mine,
        "sentence_transformers_cold_start_seconds": other,
        "cold_start_ratio": other / mine,
        "peak_rss_mb": ours,
        "sentence_transformers_peak_rss_mb": theirs,
        "rss_ratio": ours / theirs,
    }


def show(result: Mapping[str, Any]) -> str:
    """The table of docs/benchmarks.md."""
    rows = [[f"{n} passages", f"{result[f'speedup_{n}']:.2f} times as fast"] for n in (15, 100)]
    rows += [
        [f"{n} passages, default", f"{result[f'default_speedup_{n}']:.2f} times as fast"]
        for n in (15, 100)
        if f"default_speedup_{n}" in result
    ]
    cold = [result[f"{side}cold_start_seconds"] for side in ("", "sentence_transformers_")]
    rows.append(["process start to the first result", f"{cold[0]:.1f} s instead of {cold[1]:.1f} s"])
    rows.append(["memory at its peak", f"{result['rss_ratio']:.0%}"])
    return table(["", "surefoot against `CrossEncoder`"], rows)
