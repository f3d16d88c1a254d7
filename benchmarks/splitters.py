"""Sentence splitting: surefoot next to sentencex, nupunkt and pysbd, on the golden set of the tests.

The set (``tests/golden/segment.jsonl``) was written by surefoot's authors. So it measures how far each
splitter follows surefoot's own conventions, not how good it is in general. Each library is asked for offsets
by its own interface; nothing is found again by searching.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.record import table
from surefoot.segment import segment_answer, sentence_spans

__all__ = ["measure", "options", "show"]

Spans = list[tuple[int, int]]
Splitter = Callable[[str], Spans]

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "segment.jsonl"
# Categories whose text is Markdown or depends on lines: general splitters do not claim to read these.
LAYOUT = frozenset("bullets nested numbered tables headings code no_full_stop line_breaks mixed".split())
PROSE = (
    "The cooperative was founded by eleven farmers who could no longer sell their milk at the price "
    "that the large dairies were offering. In the first years it processed about four thousand litres a "
    "day in a rented hall behind the railway station, and most of the cheese was sold at the weekly "
    "markets of the region. When the hall burned down in 1962, the members voted to build a plant of "
    "their own, although the bank had refused the loan twice. Today the plant employs 240 people. Two "
    "thirds of its output is exported, mainly to Italy and Japan, and the profit is shared according to "
    "the quantity that each member delivers."
)
DENSE = (
    "The refund period is 15 days from the day of delivery, e.g. by Acme Inc. in the U.S., as Dr. Ng says. "
    "It costs 3.5 euros (see Fig. 3) and is paid by the customer. Returned parcels are checked in a week. "
    '"Is it free?" he asked. Nobody knew, since the contract of Jan. 5 was silent on the matter.'
)
TEXTS = {
    "prose, 220k": "\n\n".join([PROSE] * 350),  # 110 code points a sentence
    "dense, 200k": "\n\n".join([DENSE] * 700),  # an abbreviation or decimal in each line
    "prose, 9k": "\n\n".join([PROSE] * 15),
}


def options(parser: argparse.ArgumentParser) -> None:
    """There are no options."""
    del parser


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Score and time every splitter."""
    del options
    cases = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in cases:
        groups[case["category"]].append(case)
    sentences = [case for case in cases if case["category"] not in LAYOUT]
    result: dict[str, Any] = {"cases": len(cases), "splitters": {}}
    for name, split in splitters().items():
        result["splitters"][name] = {
            "all": score(cases, split),
            "sentences": score(sentences, split),
            "written_before": score([case for case in sentences if case["written"] == "before"], split),
            "written_after": score([case for case in sentences if case["written"] == "after"], split),
            "by_category": {category: score(group, split) for category, group in groups.items()},
            "mchars_per_second": {text: rate(split, TEXTS[text]) for text in TEXTS},
        }
    return result | {"versions": {name: version(name) for name in result["splitters"] if " " not in name}}


def splitters() -> dict[str, Splitter]:
    """Every splitter by name; those that are not installed are left out."""
    found: dict[str, Splitter] = {
        "surefoot answer": lambda text: [(s.start, s.end) for s in segment_answer(text)],
        "surefoot source": sentence_spans,
    }
    with contextlib.suppress(ImportError):
        import sentencex

        # sentencex.segment() is faster, but drops line breaks from long texts: its pieces give no offsets
        found["sentencex"] = lambda text: [
            (span["start_index"], span["end_index"]) for span in sentencex.get_sentence_boundaries("en", text)
        ]
    with contextlib.suppress(ImportError):
        import nupunkt

        found["nupunkt"] = lambda text: list(nupunkt.sent_spans(text))
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pysbd

        segmenter = pysbd.Segmenter(language="en", clean=False, char_span=True)
        found["pysbd"] = lambda text: [(span.start, span.end) for span in segmenter.segment(text)]
    return found


def trimmed(text: str, spans: Sequence[tuple[int, int]]) -> Spans:
    """``spans`` without white space at the ends, and without empty ones."""
    found = []
    for start, end in spans:
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        right = end - (len(piece) - len(piece.rstrip()))
        if left < right:
            found.append((left, right))
    return found


def gold(case: Mapping[str, Any]) -> Spans:
    """The spans of a case; its sentences stand in the text in order."""
    spans, at = [], 0
    for sentence in case["sentences"]:
        start = case["text"].index(sentence, at)
        at = start + len(sentence)
        spans.append((start, at))
    return spans


def score(cases: Sequence[Mapping[str, Any]], split: Splitter) -> dict[str, Any]:
    """Exact cases, and micro F1 of the inner boundaries; a case that raises counts as one sentence."""
    hits = found = wanted = failed = 0
    missed = []
    for case in cases:
        want = gold(case)
        try:
            got = trimmed(case["text"], split(case["text"]))
        except (ValueError, IndexError, KeyError, AttributeError):
            failed += 1
            got = trimmed(case["text"], [(0, len(case["text"]))])
        if got != want:
            missed.append(case["id"])
        ours, theirs = ({end for _, end in spans[:-1]} for spans in (got, want))
        hits += len(ours & theirs)
        found += len(ours)
        wanted += len(theirs)
    return {
        "cases": len(cases),
        "exact": len(cases) - len(missed),
        "boundary_f1": round(2 * hits / (found + wanted), 4) if found + wanted else None,
        "raised": failed,
        "missed": missed,
    }


def rate(split: Splitter, text: str, *, seconds: float = 1.0) -> float:
    """Million code points a second of CPU time, best of three rounds of at least ``seconds`` / 3."""
    best = 0.0
    for _ in range(3):
        runs, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < seconds / 3:
            split(text)
            runs += 1
        best = max(best, runs * len(text) / spent / 1e6)
    return round(best, 3)


def show(result: Mapping[str, Any]) -> str:
    """The table of docs/splitters.md."""
    splitters = result["splitters"]
    rows: list[list[object]] = []
    for title, key in (
        ("all cases", "all"),
        ("running text only", "sentences"),
        ("running text, written before", "written_before"),
        ("running text, written after", "written_after"),
    ):
        rows.append([f"exact, {title}", *(_exact(each[key]) for each in splitters.values())])
        if not key.startswith("written"):
            rows.append(
                [f"boundary F1, {title}", *(f"{s[key]['boundary_f1']:.3f}" for s in splitters.values())]
            )
    first = next(iter(splitters.values()))
    for category in first["by_category"]:
        rows.append([category, *(_exact(each["by_category"][category]) for each in splitters.values())])
    for text in first["mchars_per_second"]:
        rows.append([f"M characters/s: {text}", *(s["mchars_per_second"][text] for s in splitters.values())])
    return table(["", *splitters], rows)


def _exact(figures: Mapping[str, Any]) -> str:
    return f"{figures['exact']}/{figures['cases']}"
