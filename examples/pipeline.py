"""Ask documents a question, offline. The answer quotes the documents and is checked against them.

Run it from anywhere: python examples/pipeline.py ["a question"]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from surefoot import Pipeline, Source

POLICY = Path(__file__).with_name("policy.json")


def passages(_question: str, k: int) -> list[Source]:
    """A simple retriever: it returns all four documents. surefoot.Index is a real one."""
    documents = json.loads(POLICY.read_text(encoding="utf-8"))["sources"]
    return [Source(**document) for document in documents][:k]


def main(question: str) -> None:
    pipeline = Pipeline(passages)
    for event in pipeline.stream(question):
        print(f"{event.stage}: {event.seconds:.2f} s")
        result = event.result
    print()
    print(result.answer)
    if result.report is not None:
        for claim in result.report.claims:
            print(f"- {claim.verdict}: {', '.join(claim.reasons)}")
    for note in result.notes:
        print(f"note: {note.stage}: {note.detail}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "What does the return label cost?")
