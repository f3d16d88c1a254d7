"""Speed of checking an answer: surefoot against the straightforward algorithm, in one run.

The straightforward algorithm is what one writes first: a sentence-transformers ``CrossEncoder`` on the same
weights, one ``predict`` per claim over all passages, passages cut at 512 characters and claims at 256. Both
sides get the same claims, passages and threads, and are run in turn, so that a machine that slows down
slows both. Every figure is the median over the rounds.

Text comes from the documentation that ships with Python (``pydoc_data.topics``), cut into passages of about
250 tokens. Claims are, in equal shares: sentences of the first ten passages as they are, such sentences with
words dropped, such sentences with a number or word swapped, and sentences of passages that are not among
the sources.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.hardware import describe

PASSAGE_TOKENS = 250
CLAIMS = 10


def texts(count: int, encoder: Any, *, outside: bool) -> list[str]:
    """``count`` passages of at most 250 tokens of prose; one paragraph in 20 is kept for outside."""
    from pydoc_data import topics

    paragraphs = [
        re.sub(r"[*`]+", "", " ".join(part.split()))
        for key in sorted(topics.topics)
        for part in topics.topics[key].split("\n\n")
    ]
    paragraphs = [
        part for part in dict.fromkeys(paragraphs) if len(part) > 60 and not part.startswith((">>>", "|"))
    ]
    paragraphs = [part for index, part in enumerate(paragraphs) if (index % 20 == 7) == outside]
    passages: list[str] = []
    current, size = [], 0
    while len(passages) < count:
        # The corpus has about 600 passages; later rounds read it in another order: no passage repeats.
        random.Random(len(passages)).shuffle(paragraphs) if passages else None
        for part, tokens in zip(paragraphs, encoder.count(paragraphs), strict=True):
            if tokens > PASSAGE_TOKENS:
                continue
            if size + tokens > PASSAGE_TOKENS:
                passages.append(" ".join(current))
                current, size = [], 0
            current.append(part)
            size += tokens
    return passages[:count]


def make_claims(passages: list[str], outside: list[str], seed: int = 0) -> list[str]:
    from surefoot.segment import sentence_spans

    rng = random.Random(seed)

    def sentences(passage: str) -> list[str]:
        found = [passage[start:end] for start, end in sentence_spans(passage)]
        return [text for text in found if 8 <= len(text.split()) <= 35 and text.endswith(".")]

    inside = [text for passage in passages for text in sentences(passage)]
    rng.shuffle(inside)
    foreign = [text for passage in outside for text in sentences(passage)]
    rng.shuffle(foreign)
    claims: list[str] = []
    for index in range(CLAIMS):
        text = inside[index]
        words = text.split()
        if index % 4 == 1:
            del words[len(words) // 2]
        elif index % 4 == 2:
            place = rng.randrange(1, len(words) - 1)
            words[place] = rng.choice(rng.choice(foreign).split()[1:-1])
        claims.append(foreign[index] if index % 4 == 3 else " ".join(words))
    return claims


def straightforward(model: Any, claims: list[str], passages: list[str]) -> list[float]:
    """Best entailment probability of each claim; sentence-transformers, one ``predict`` per claim."""
    import numpy as np

    best = []
    for claim in claims:
        logits = model.predict(
            [(passage[:512], claim[:256]) for passage in passages],
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        shares = np.exp(logits - logits.max(1, keepdims=True))
        best.append(float((shares / shares.sum(1, keepdims=True))[:, 0].max()))
    return best


def alternate(a: Callable[[], Any], b: Callable[[], Any], rounds: int) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for which, call in ((0, a), (1, b)):
            started = time.perf_counter()
            call()
            times[which].append(time.perf_counter() - started)
    return times


def fresh_verifier(threads: int, **options: Any) -> Callable[[list[str], list[str]], Any]:
    """A call that checks claims with an empty score cache, so that no round profits from the last."""
    from surefoot.inference.cache import ScoreCache
    from surefoot.verify import Verifier

    verifier = Verifier(threads=threads)
    verifier.load()

    def call(claims: list[str], passages: list[str]) -> Any:
        verifier._model.pairs.cache = ScoreCache()  # type: ignore[union-attr]
        return verifier.check_claims(claims, passages, **options)

    return call


OURS_COLD = (
    "import json,sys; d=json.load(open(sys.argv[1])); from surefoot import Verifier; "
    "v=Verifier(threads={t}); print(v.check_claims(d['claims'][:1], d['passages'])[0].verdict)"
)
THEIRS_COLD = (
    "import json,sys; d=json.load(open(sys.argv[1])); import torch; torch.set_num_threads({t}); "
    "from sentence_transformers import CrossEncoder; m=CrossEncoder({c!r}, device='cpu', "
    "model_kwargs=dict(dtype=torch.float32)); "
    "print(m.predict([(p[:512], d['claims'][0][:256]) for p in d['passages']], "
    "show_progress_bar=False).argmax())"
)
# VmHWM and not ru_maxrss: the latter starts at the size of the process that forked this one.
OURS_RSS = (
    "import json,re,sys; d=json.load(open(sys.argv[1])); from surefoot import Verifier; "
    "v=Verifier(threads={t}); v.check_claims(d['claims'], d['passages']); "
    "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024)"
)


def process_time(code: str, argument: str) -> tuple[float, str]:
    started = time.perf_counter()
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(
        [sys.executable, "-c", code, argument], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.perf_counter() - started, done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--checkpoint", required=True, help="Hugging Face folder of the bundled verifier's weights"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--threads", type=int, default=None, help="for both sides; all available by default")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    import torch
    from sentence_transformers import CrossEncoder

    from surefoot.inference.session import available_threads
    from surefoot.inference.text import TextEncoder
    from surefoot.models.manifest import bundled

    threads = arguments.threads or available_threads()
    torch.set_num_threads(threads)
    encoder = TextEncoder(bundled("verify").tokenizer_path)
    passages, outside = texts(1_000, encoder, outside=False), texts(20, encoder, outside=True)
    claims = make_claims(passages[:10], outside)
    # The checkpoint is stored in half precision, in which a CPU is many times slower than in single.
    theirs = CrossEncoder(
        arguments.checkpoint, device="cpu", max_length=512, model_kwargs={"dtype": torch.float32}
    )
    ours = fresh_verifier(threads)
    exhaustive = fresh_verifier(threads, exhaustive=True)

    figures: dict[str, Any] = {}
    straightforward(theirs, claims[:1], passages[:5])
    ours(claims[:1], passages[:5])
    for count, rounds in ((15, arguments.rounds), (100, max(2, arguments.rounds // 2))):
        mine, other = alternate(
            lambda n=count: ours(claims, passages[:n]),
            lambda n=count: straightforward(theirs, claims, passages[:n]),
            rounds,
        )
        figures[f"seconds_{count}"] = statistics.median(mine)
        figures[f"straightforward_seconds_{count}"] = statistics.median(other)
        figures[f"speedup_{count}"] = statistics.median(other) / statistics.median(mine)
        print(
            f"{count} passages: {statistics.median(mine):.2f} s against {statistics.median(other):.2f} s",
            flush=True,
        )
    slow, other = alternate(
        lambda: exhaustive(claims, passages[:15]), lambda: straightforward(theirs, claims, passages[:15]), 2
    )
    figures["speedup_15_exhaustive"] = statistics.median(other) / statistics.median(slow)
    few, many = alternate(
        lambda: ours(claims, passages[:10]), lambda: ours(claims, passages[:1_000]), arguments.rounds
    )
    figures["seconds_10"], figures["seconds_1000"] = statistics.median(few), statistics.median(many)
    figures["growth_1000"] = statistics.median(many) / statistics.median(few)
    agreement = (
        sum((claim.support or 0.0) >= 0.5 for claim in ours(claims, passages[:15])),
        sum(best >= 0.5 for best in straightforward(theirs, claims, passages[:15])),
    )
    figures["supported_of_10"], figures["straightforward_supported_of_10"] = agreement

    with tempfile.TemporaryDirectory() as folder:
        argument = str(Path(folder) / "input.json")
        Path(argument).write_text(json.dumps({"claims": claims, "passages": passages[:15]}), encoding="utf-8")
        mine, other = [], []
        for _ in range(3):
            mine.append(process_time(OURS_COLD.format(t=threads), argument)[0])
            other.append(process_time(THEIRS_COLD.format(t=threads, c=arguments.checkpoint), argument)[0])
        figures["cold_start_seconds"] = statistics.median(mine)
        figures["straightforward_cold_start_seconds"] = statistics.median(other)
        figures["cold_start_ratio"] = statistics.median(other) / statistics.median(mine)
        figures["peak_rss_mb"] = float(process_time(OURS_RSS.format(t=threads), argument)[1])

    result = {
        **figures,
        "claims": CLAIMS,
        "passage_tokens": PASSAGE_TOKENS,
        "rounds": arguments.rounds,
        "threads": threads,
        "hardware": describe(threads=threads),
    }
    for name, value in figures.items():
        print(f"{name:36} {value:.3f}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
