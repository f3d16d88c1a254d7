"""How often the pipeline declines to answer, and whether what it quotes holds the answer.

Two pair files of ``DIR/retrieval`` (benchmarks/retrieval_sets.py describes them) are read: ``squad2_half``,
whose questions have the title of their article and the text of their answer, and ``clapnq_dev``, with one
passage a question.

Declined is a question whose evidence is weaker than the default ``min_evidence``: questions that the
documents answer (relevance 1), questions on the same subject that they do not answer (relevance below 1, and
no passage with 1), and questions put to the documents of another one. For SQuAD the documents are all
passages of the article.

An answer is right if it holds the text of the answer: of SQuAD's questions over the five passages that each
comes with, quoted by ``ExtractiveAnswerer`` with its sentences ordered by words, or by the bundled reranker.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import read_rows
from benchmarks.record import cell, progress, table
from surefoot import Reranker, Source, metrics
from surefoot.pipeline import ExtractiveAnswerer
from surefoot.pipeline.core import MIN_EVIDENCE
from surefoot.pipeline.extract import evidence_strength

__all__ = ["measure", "options", "show"]

DATA = "retrieval/"
SETS = ("squad2_half", "clapnq_dev")
KINDS = {
    "answerable": "answerable",
    "unanswerable": "same subject, not answered",
    "others": "other documents",
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what it comes with.

    Attributes:
        home: the documents that it is put to.
        answer: text that a right answer holds; empty if unknown.
        passages: those that the file has for this question.
    """

    text: str
    home: str
    answer: str
    answerable: bool
    passages: tuple[str, ...]


def options(parser: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    parser.add_argument("--limit", type=int, default=200, help="questions of each kind (%(default)s)")
    parser.add_argument("--answers", type=int, default=120, help="questions to answer (%(default)s)")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Decline and answer.

    Raises:
        ValueError: none of the sets is there.
    """
    result: dict[str, Any] = {"min_evidence": MIN_EVIDENCE, "sets": []}
    for name in SETS:
        places = [folder / "retrieval" / f"{name}.jsonl.gz" for folder in (options.data, *options.corpora)]
        path = next((path for path in places if path.is_file()), None)
        if path is None:
            continue
        questions, documents = _read(path)
        result["sets"].append(name)
        result |= _declined(name, questions, documents, options)
        if any(question.answer and len(question.passages) > 1 for question in questions):
            result |= _answered(name, questions, options)
    if not result["sets"]:
        raise ValueError(f"{options.data} has neither of {', '.join(SETS)} in retrieval/")
    return result


def _read(path: Path) -> tuple[list[Question], dict[str, list[Source]]]:
    """Questions, and the documents that each home has."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    documents: dict[str, dict[str, None]] = {}
    for _, row in read_rows(path):
        grouped.setdefault(row["query"], []).append(row)
        documents.setdefault(row.get("title") or row["query"], {})[row["passage"]] = None
    questions = [
        Question(
            text=query,
            home=rows[0].get("title") or query,
            answer=str(
                next((row["answer"] for row in rows if row["relevance"] == 1 and row.get("answer")), "")
            ),
            answerable=max(row["relevance"] for row in rows) == 1,
            passages=tuple(row["passage"] for row in rows),
        )
        for query, rows in grouped.items()
    ]
    return questions, {
        home: [Source(str(at), text) for at, text in enumerate(texts)] for home, texts in documents.items()
    }


def _declined(
    name: str,
    questions: Sequence[Question],
    documents: Mapping[str, list[Source]],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Share of each kind of question that is declined, and how well evidence tells the kinds apart."""
    rng = random.Random(f"{options.seed}:{name}")
    found: dict[str, Any] = {}
    strengths: dict[str, list[float]] = {}
    for kind in KINDS:
        wanted = [question for question in questions if question.answerable == (kind != "unanswerable")]
        drawn = rng.sample(wanted, min(options.limit, len(wanted)))
        strengths[kind] = []
        for question in progress(drawn, f"{name}: {kind}"):
            home = question.home
            while kind == "others" and home == question.home:
                home = rng.choice(list(documents))
            strengths[kind].append(evidence_strength(question.text, documents[home]))
        declined = sum(strength < MIN_EVIDENCE for strength in strengths[kind])
        key = f"{name}.{kind}"
        found |= {f"{key}.n": len(drawn), key: declined / len(drawn) if drawn else None}
        found[f"{key}.ci"] = list(metrics.wilson_interval(declined, len(drawn)) or ())
        labels = [1] * len(strengths["answerable"]) + [0] * len(drawn)
        if kind != "answerable":
            found[f"{key}.auroc"] = metrics.auroc(labels, [*strengths["answerable"], *strengths[kind]])
    return found


def _answered(name: str, questions: Sequence[Question], options: argparse.Namespace) -> dict[str, Any]:
    """Share of the answers that hold the right text."""
    wanted = [question for question in questions if question.answer and question.answerable]
    drawn = random.Random(f"{options.seed}:{name}:answers").sample(wanted, min(options.answers, len(wanted)))
    found: dict[str, Any] = {f"{name}.answers": len(drawn)}
    for order, reranker in (("words", None), ("reranker", Reranker(threads=options.threads))):
        answerer = ExtractiveAnswerer(reranker)
        first = whole = quotes = 0
        for question in progress(drawn, f"{name}: ordered by {order}"):
            draft = answerer(
                question.text, [Source(str(at), text) for at, text in enumerate(question.passages)]
            )
            texts = [quote.text.lower() for quote in draft.quotes]
            first += any(question.answer.lower() in text for text in texts[:1])
            whole += any(question.answer.lower() in text for text in texts)
            quotes += len(texts)
        for key, value in (("first", first), ("whole", whole)):
            found[f"{name}.{order}.{key}"] = value / len(drawn)
            found[f"{name}.{order}.{key}.ci"] = list(metrics.wilson_interval(value, len(drawn)) or ())
        found[f"{name}.{order}.sentences"] = round(quotes / len(drawn), 2)
    return found


def show(result: Mapping[str, Any]) -> str:
    """The tables of docs/pipeline.md."""
    rows = [
        [name, result[f"{name}.answerable.n"], *(cell(result, f"{name}.{kind}") for kind in KINDS)]
        + [f"{result[f'{name}.{kind}.auroc']:.2f}" for kind in ("unanswerable", "others")]
        for name in result["sets"]
    ]
    head = [f"declined at {result['min_evidence']:g}, in %", "n (each)", *KINDS.values()]
    parts = [table([*head, "AUROC: same subject", "other documents"], rows)]
    for name in result["sets"]:
        if f"{name}.answers" in result:
            rows = [
                [order, result[f"{name}.answers"]]
                + [cell(result, f"{name}.{order}.{key}") for key in ("first", "whole")]
                + [result[f"{name}.{order}.sentences"]]
                for order in ("words", "reranker")
            ]
            head = [
                f"{name}: ordered by",
                "n",
                "right in the first sentence",
                "in the whole answer",
                "sentences",
            ]
            parts.append(table(head, rows))
    return "\n\n".join(parts)
