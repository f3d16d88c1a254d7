"""Speed of checking an answer: surefoot against the straightforward algorithm, in one run.

The straightforward algorithm is what one writes first: a sentence-transformers ``CrossEncoder`` with the same
weights, one ``predict`` per claim over all passages, passages cut at 512 characters and claims at 256. Both
sides get the same ten claims, passages of about 250 tokens and threads. They are run in turn, with empty
score caches. Every figure is the median over the rounds.

Text comes from the documentation that ships with Python. Claims are, in equal shares: sentences of the first
ten passages as they are, such sentences with a word dropped, such sentences with a word swapped, and
sentences of passages that are not among the sources.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.record import table
from benchmarks.timing import PEAK, alternate, checkpoint_of, compared, fresh, paragraphs

__all__ = ["measure", "options", "show"]

PASSAGE_TOKENS = 250
CLAIMS = 10
LARGEST_DIFFERENCE = 1e-3
"""Of a probability, between the two sides on the same pairs."""
OURS = (
    "d=json.load(open(sys.argv[1])); from surefoot import Verifier; "
    "v=Verifier(threads={t}); print(v.check_claims(d['claims']{cut}, d['passages'])[0].verdict)"
)
THEIRS = (
    "d=json.load(open(sys.argv[1])); import torch; torch.set_num_threads({t}); "
    "from sentence_transformers import CrossEncoder; m=CrossEncoder({c!r}, device='cpu', "
    "model_kwargs=dict(dtype=torch.float32)); "
    "print(m.predict([(p[:512], d['claims'][0][:256]) for p in d['passages']], "
    "show_progress_bar=False).argmax())"
)


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--checkpoint", type=Path, help="Hugging Face folder of the bundled verifier's weights"
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Time both sides.

    Raises:
        ValueError: the two sides do not compute the same probabilities.
    """
    import torch
    from sentence_transformers import CrossEncoder

    from surefoot.inference.session import available_threads
    from surefoot.inference.text import TextEncoder
    from surefoot.models.manifest import bundled

    threads = options.threads or available_threads()
    torch.set_num_threads(threads)
    encoder = TextEncoder(bundled("verify").tokenizer_path)
    passages, outside = texts(1_000, encoder, outside=False), texts(20, encoder, outside=True)
    claims = make_claims(passages[:10], outside, seed=options.seed)
    figures: dict[str, Any] = {"claims": CLAIMS, "passage_tokens": PASSAGE_TOKENS, "threads": threads}
    with checkpoint_of("verify", options.checkpoint) as checkpoint, tempfile.TemporaryDirectory() as folder:
        # A checkpoint may be stored in half precision, in which a CPU is many times slower.
        model = CrossEncoder(
            str(checkpoint), device="cpu", max_length=512, model_kwargs={"dtype": torch.float32}
        )

        def theirs(count: int) -> list[float]:
            return straightforward(model, claims, passages[:count])

        figures["largest_difference"] = difference(model, claims, passages[:3], threads)
        ours, exhaustive = fresh_verifier(threads), fresh_verifier(threads, exhaustive=True)
        for count, rounds in ((15, options.rounds), (100, max(1, options.rounds // 2))):
            times = alternate(
                lambda _, n=count: ours(claims, passages[:n]), lambda _, n=count: theirs(n), rounds
            )
            figures |= compared(str(count), times, "straightforward")
            print(f"{count} passages: {figures[f'speedup_{count}']:.1f} times as fast", flush=True)
        times = alternate(lambda _: exhaustive(claims, passages[:15]), lambda _: theirs(15), 1)
        figures["speedup_15_exhaustive"] = compared("", times, "")["speedup_"]
        times = alternate(
            lambda _: ours(claims, passages[:10]), lambda _: ours(claims, passages), options.rounds
        )
        figures["seconds_10"], figures["seconds_1000"] = map(statistics.median, times)
        figures["growth_1000"] = figures["seconds_1000"] / figures["seconds_10"]
        figures["supported_of_10"] = sum((c.support or 0) >= 0.5 for c in ours(claims, passages[:15]))
        figures["straightforward_supported_of_10"] = sum(best >= 0.5 for best in theirs(15))

        argument = Path(folder, "input.json")
        argument.write_text(json.dumps({"claims": claims, "passages": passages[:15]}), encoding="utf-8")
        code = {
            "ours": OURS.format(t=threads, cut="[:1]"),
            "theirs": THEIRS.format(t=threads, c=str(checkpoint)),
        }
        starts = fresh(code, argument, min(3, options.rounds))
        times = tuple([seconds for seconds, _ in starts[side]] for side in code)  # type: ignore[assignment]
        cold = compared("", times, "their")
        figures["cold_start_seconds"], figures["straightforward_cold_start_seconds"] = list(cold.values())[:2]
        figures["cold_start_ratio"] = cold["speedup_"]
        peak = {"ours": OURS.format(t=threads, cut="") + PEAK}
        figures["peak_rss_mb"] = float(fresh(peak, argument, 1)["ours"][0][1].split()[-1])
    return figures


def texts(count: int, encoder: Any, *, outside: bool) -> list[str]:
    """``count`` passages of at most 250 tokens of prose; one paragraph in 20 is kept for outside."""
    parts = [part for index, part in enumerate(paragraphs()) if (index % 20 == 7) == outside]
    passages: list[str] = []
    current, size = [], 0
    while len(passages) < count:
        # There are about 600 passages of text; later rounds read it in another order, so that none repeats.
        if passages:
            random.Random(len(passages)).shuffle(parts)
        for part, tokens in zip(parts, encoder.count(parts), strict=True):
            if tokens > PASSAGE_TOKENS:
                continue
            if size + tokens > PASSAGE_TOKENS:
                passages.append(" ".join(current))
                current, size = [], 0
            current.append(part)
            size += tokens
    return passages[:count]


def make_claims(passages: list[str], outside: list[str], *, seed: int) -> list[str]:
    """Ten claims of the four kinds."""
    from surefoot.segment import sentence_spans

    rng = random.Random(seed)

    def sentences(sources: list[str]) -> list[str]:
        found = [source[start:end] for source in sources for start, end in sentence_spans(source)]
        kept = [text for text in found if 8 <= len(text.split()) <= 35 and text.endswith(".")]
        rng.shuffle(kept)
        return kept

    inside, foreign = sentences(passages), sentences(outside)
    claims: list[str] = []
    for index in range(CLAIMS):
        words = inside[index].split()
        if index % 4 == 1:
            del words[len(words) // 2]
        elif index % 4 == 2:
            place = rng.randrange(1, len(words) - 1)
            words[place] = rng.choice(rng.choice(foreign).split()[1:-1])
        claims.append(foreign[index] if index % 4 == 3 else " ".join(words))
    return claims


def straightforward(model: Any, claims: list[str], passages: list[str]) -> list[float]:
    """Best entailment probability of each claim: one ``predict`` per claim."""
    return [
        float(
            model.predict(
                [(passage[:512], claim[:256]) for passage in passages],
                apply_softmax=True,
                show_progress_bar=False,
            )[:, 0].max()
        )
        for claim in claims
    ]


def difference(model: Any, claims: list[str], passages: list[str], threads: int) -> float:
    """Largest difference of a best probability between both sides on the same pairs."""
    from benchmarks.systems import nli_scorer

    ours = nli_scorer(None, threads)
    theirs = straightforward(model, claims, passages)
    apart = max(
        abs(max(ours([(passage[:512], claim[:256]) for passage in passages])) - best)
        for claim, best in zip(claims, theirs, strict=True)
    )
    if apart > LARGEST_DIFFERENCE:
        raise ValueError(f"the two sides do not hold the same weights: probabilities differ by {apart:.4f}")
    return apart


def fresh_verifier(threads: int, **how: Any) -> Callable[[list[str], list[str]], Any]:
    """A call that checks claims with an empty score cache, so that no round profits from the last."""
    from surefoot import Verifier
    from surefoot.inference.cache import ScoreCache

    verifier = Verifier(threads=threads)
    verifier.load()

    def call(claims: list[str], passages: list[str]) -> Any:
        verifier._model.pairs.cache = ScoreCache()  # type: ignore[union-attr]
        return verifier.check_claims(claims, passages, **how)

    return call


def show(result: Mapping[str, Any]) -> str:
    """The table of docs/benchmarks.md."""
    rows = []
    for n in (15, 100):
        seconds = [f"{result[f'{side}seconds_{n}']:.2g} s" for side in ("", "straightforward_")]
        rows.append([f"{n} passages", *seconds, f"{result[f'speedup_{n}']:.0f}"])
    rows.append(["15 passages, every window scored", "", "", f"{result['speedup_15_exhaustive']:.2f}"])
    cold = [f"{result[f'{side}cold_start_seconds']:.1f} s" for side in ("", "straightforward_")]
    rows.append(["process start to the first verdict", *cold, f"{result['cold_start_ratio']:.0f}"])
    shown = table(["", "surefoot", "straightforward", "ratio"], rows)
    return (
        f"{shown}\n\n1,000 passages take {result['growth_1000']:.1f} times as long as 10; "
        f"the process peaks at {result['peak_rss_mb']:.0f} MB."
    )
