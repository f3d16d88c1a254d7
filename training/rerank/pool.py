"""The training pool: groups of one relevant passage and mined negatives, from sets whose terms allow it.

Each source gives (query, passage) examples over its own passages. Negatives are what BM25 and the embedder
rank highly, and a few from further down, because a reranker also orders the middle of a list. Every candidate
keeps the embedder's cosine and a BM25 score, which are the soft targets of the distillation.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from training.rerank.first_stage import BM25, Embedder, top
from training.rerank.judged import Seen, plain, read_rows, stable_share

__all__ = ["SOURCES", "Example", "Group", "build", "read_groups"]

HELD_OUT = 0.08
_LIST = 32
_TOO_CLOSE = 0.98
_BETWEEN = re.compile(
    r"[^\w\s-]+|\b(?:a|an|and|are|as|at|between|by|during|for|from|in|into|is|its|of|on|or|the|their|to|through|"
    r"using|via|with|within|without)\b",
    re.I,
)
_WORD = re.compile(r"\w+")
_RARE = 0.02
"""Share of abstracts that may hold the rarest word of a query of key words."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9(\"'])")


@dataclass(frozen=True, slots=True)
class Example:
    """A query and a passage that answers it.

    Attributes:
        query: what is asked, claimed or titled.
        passage: relevant to it.
        key: what must not be in both parts of the split: an article, a document, a question.
        answer: a passage that holds this text is no negative; empty where unknown.
    """

    query: str
    passage: str
    key: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """One query with its candidates, the relevant one first.

    Attributes:
        source: where the example comes from.
        held: kept out of training, for choices and calibration; such a group is a whole ranked list.
        query: text.
        passages: the relevant one, then negatives.
        cosine: of the embedder, for each passage.
        lexical: BM25 within the source's passages, for each passage.
    """

    source: str
    held: bool
    query: str
    passages: tuple[str, ...]
    cosine: tuple[float, ...]
    lexical: tuple[float, ...]


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def _window(text: str, answer: str, words: int) -> str:
    """Whole sentences around the answer, about ``words`` words."""
    parts = _sentences(text)
    at = next((i for i, part in enumerate(parts) if answer and answer in part), 0)
    first = last = at
    while sum(len(part.split()) for part in parts[first : last + 1]) < words and (first, last) != (
        0,
        len(parts) - 1,
    ):
        if last < len(parts) - 1:
            last += 1
        else:
            first -= 1
    return " ".join(parts[first : last + 1])


def _squad(folder: Path) -> Iterator[Example]:
    for row in read_rows(folder / "retrieval/squad2_half.jsonl.gz"):
        if row["relevance"] >= 1:  # less is a question that its paragraph does not answer
            answer = row["answer"] if isinstance(row.get("answer"), str) else ""
            # Salted: queries are chosen by their own share, which must not decide on the passage too.
            whole = stable_share("whole:" + row["query"]) < 0.2
            text = row["passage"] if whole else _window(row["passage"], answer, 35)
            yield Example(row["query"], text, row.get("title") or row["passage"], answer)


def _squad_sentences(folder: Path) -> Iterator[Example]:
    """A question and the one sentence with its answer; the sentences around it are among the negatives."""
    for row in read_rows(folder / "retrieval/squad2_half.jsonl.gz"):
        answer = row["answer"] if isinstance(row.get("answer"), str) else ""
        if row["relevance"] >= 1 and answer:
            found = [part for part in _sentences(row["passage"]) if answer in part]
            if len(found) == 1:
                yield Example(row["query"], found[0], row.get("title") or row["passage"], answer)


def _qnli(folder: Path) -> Iterator[Example]:
    for row in read_rows(folder / "retrieval/qnli_dev.jsonl.gz"):
        if row["relevance"] > 0:
            yield Example(row["query"], row["passage"], row["query"])


def _hotpot(folder: Path) -> Iterator[Example]:
    for row in read_rows(folder / "retrieval/hotpot_halueval.jsonl.gz"):
        text = re.sub(r"(?<=[a-z)][.!?])(?=[A-Z\"])", " ", row["passage"])
        yield Example(row["query"], text, row["query"], row["answer"] if len(row["answer"]) > 3 else "")


def _covid(folder: Path) -> Iterator[Example]:
    for row in read_rows(folder / "retrieval/covidqa.jsonl.gz"):
        if row["relevance"] > 0:
            text = re.sub(r"^\d+\s*License:\S+\s*", "", row["passage"])
            text = re.sub(r"^(Abstract|Text):\s*", "", text)
            answer = row["answer"] if isinstance(row.get("answer"), str) else ""
            yield Example(row["query"], _window(text, answer[:60], 60), row["pid"], answer)


def _scifact(folder: Path) -> Iterator[Example]:
    corpus = {row["pid"]: row for row in read_rows(folder / "retrieval/scifact.corpus.jsonl.gz")}
    claims = {
        row["qid"]: row["query"] for row in read_rows(folder / "retrieval/scifact_train.queries.jsonl.gz")
    }
    for row in _qrels(folder / "retrieval/scifact_train.qrels.tsv.gz"):
        if row[0] in claims and row[1] in corpus:
            doc = corpus[row[1]]
            yield Example(claims[row[0]], f"{doc['title']} {_window(doc['text'], '', 90)}", row[1])


def _qrels(path: Path) -> list[list[str]]:
    import gzip

    with gzip.open(path, "rt") as stream:
        return [line.split() for line in stream]


def _titles(folder: Path) -> Iterator[Example]:
    """A title is a topical query for its abstract."""
    for row in read_rows(folder / "retrieval/scifact.corpus.jsonl.gz"):
        parts = _sentences(row["text"])
        if len(parts) >= 4:
            at = int(stable_share(row["pid"] + "at") * (len(parts) - 2))
            yield Example(row["title"].rstrip(". "), " ".join(parts[at : at + 3]), row["pid"])


def _cloze(folder: Path) -> Iterator[Example]:
    """A sentence is a long query for the rest of its abstract (inverse cloze, Lee et al. 2019)."""
    for row in read_rows(folder / "retrieval/scifact.corpus.jsonl.gz"):
        parts = _sentences(row["text"])
        if len(parts) >= 5 and stable_share(row["pid"]) > 0.75:
            at = int(stable_share(row["pid"] + "cloze") * len(parts))
            rest = parts[:at] + parts[at + 1 :]
            yield Example(parts[at], f"{row['title']} {' '.join(rest[:4])}", row["pid"])


def _keywords(folder: Path) -> Iterator[Example]:
    """One to four content words in a row from a title, as people type them into a search box.

    Another abstract with the same words is no negative: it may be just as relevant.
    """
    rows = list(read_rows(folder / "retrieval/scifact.corpus.jsonl.gz"))
    held_by = Counter(
        word for row in rows for word in set(_WORD.findall(f"{row['title']} {row['text']}".lower()))
    )
    for row in rows:
        parts = _sentences(row["text"])
        runs = [run.split() for run in _BETWEEN.split(row["title"].rstrip(". ")) if len(run.strip()) > 4]
        if len(parts) >= 4 and runs:
            run = runs[int(stable_share(row["pid"] + "run") * len(runs))]
            words = run[-1 - int(stable_share(row["pid"] + "words") * 4) :]
            # "Update" or "women" alone asks for nothing.
            rarest = min(
                (held_by[part] for part in _WORD.findall(" ".join(words).lower())), default=len(rows)
            )
            if rarest <= _RARE * len(rows):
                query = " ".join(words)
                yield Example(query.lower(), f"{row['title']} {' '.join(parts[:3])}", row["pid"], query)


def _situations(folder: Path) -> Iterator[Example]:
    """Half of an abstract is a query of many words, for the other half."""
    for row in read_rows(folder / "retrieval/scifact.corpus.jsonl.gz"):
        parts = _sentences(row["text"])
        if len(parts) >= 6:
            at = len(parts) // 2
            halves = (parts[:at][:3], parts[at:][:3])
            own = int(stable_share(row["pid"] + "half") < 0.5)
            yield Example(" ".join(halves[own]), " ".join(halves[1 - own]), row["pid"])


def _fever(folder: Path) -> Iterator[Example]:
    """A claim is a query for the sentences that support it."""
    for row in read_rows(folder / "grounding/fever_nli.jsonl.gz"):
        if row["label"] == "supported" and 8 <= len(row["premise"].split()) <= 80:
            yield Example(row["claim"], row["premise"], row["premise"])


SOURCES = {
    "squad": (_squad, 4000),
    "squad_sentences": (_squad_sentences, 4000),
    "qnli": (_qnli, 2000),
    "hotpot": (_hotpot, 5000),
    "covidqa": (_covid, 1500),
    "scifact": (_scifact, 800),
    "titles": (_titles, 4000),
    "cloze": (_cloze, 1000),
    "keywords": (_keywords, 3000),
    "situations": (_situations, 1500),
    "fever": (_fever, 4000),
}
"""Source to its reader and how many queries are taken from it."""


def _chosen(name: str, folder: Path, seen: Seen, most: int) -> list[Example]:
    """Examples of a source that share nothing with the texts kept out, one per query, in a fixed order."""
    unique: dict[str, Example] = {}
    for example in SOURCES[name][0](folder):
        if example.query not in seen and example.passage not in seen and len(plain(example.passage)) >= 30:
            unique.setdefault(plain(example.query), example)
    return sorted(unique.values(), key=lambda example: stable_share(example.query))[:most]


def build(
    folder: Path, out: Path, *, seen: Seen, embedder: Embedder, scale: float, seed: int, say: object
) -> int:
    """Write ``groups.jsonl`` and return how many groups it has.

    Args:
        folder: holds ``retrieval/`` and ``grounding/`` with the training sets.
        out: file to write.
        seen: texts that must not be trained on.
        embedder: gives cosines.
        scale: factor on the number of queries of every source.
        seed: of the choice among negatives.
        say: called with a line for every source.
    """
    count = 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as stream:
        for name, (_, most) in SOURCES.items():
            examples = _chosen(name, folder, seen, max(8, round(most * scale)))
            for group in mine(name, examples, embedder, random.Random(f"{seed}:{name}")):
                stream.write(json.dumps(asdict(group), ensure_ascii=False) + "\n")
                count += 1
            say(f"{name}: {len(examples)} queries")  # type: ignore[operator]
            stream.flush()
    return count


def mine(name: str, examples: list[Example], embedder: Embedder, rng: random.Random) -> Iterator[Group]:
    """Groups of the examples of one source, negatives from each other's passages."""
    if not examples:
        return
    texts = list(dict.fromkeys(example.passage for example in examples))
    number = {text: index for index, text in enumerate(texts)}
    lexical = BM25(texts)
    vectors = embedder.encode(texts)
    queries = embedder.encode([example.query for example in examples])
    lowered = [text.lower() for text in texts]
    for example, vector in zip(examples, queries, strict=True):
        cosine, words = vectors @ vector, lexical.scores(example.query)
        own = number[example.passage]
        bad = {own}
        held = stable_share("held:" + example.key) < HELD_OUT
        if example.answer:
            bad.update(i for i, text in enumerate(lowered) if example.answer.lower() in text)
        elif not held:  # a held-out list keeps them: without them the embedder's order would look perfect
            bad.update(np.flatnonzero(cosine > _TOO_CLOSE * max(float(cosine[own]), 0.3)).tolist())
        by_meaning = [int(i) for i in top(cosine, 80) if i not in bad]
        by_words = [int(i) for i in top(words, 80) if i not in bad]
        if held:
            picked = _interleaved(by_meaning, by_words, _LIST - 1)
        else:
            middle = [int(i) for i in top(cosine, 200)[30:] if i not in bad]
            picked = _interleaved(by_meaning[:6], by_words[:6], 5)
            rest = [i for i in rng.sample(middle, min(len(middle), 6)) if i not in picked]
            picked += rest[: 7 - len(picked)]
        if len(picked) < 3:
            continue
        rows = [own, *picked]
        yield Group(
            name,
            held,
            example.query,
            tuple(texts[i] for i in rows),
            tuple(round(float(cosine[i]), 4) for i in rows),
            tuple(round(float(words[i]), 3) for i in rows),
        )


def _interleaved(first: Iterable[int], second: Iterable[int], most: int) -> list[int]:
    both = [i for pair in zip(first, second, strict=False) for i in pair]
    return list(dict.fromkeys(both))[:most]


def read_groups(path: Path) -> list[Group]:
    """The groups of a file written by :func:`build`."""
    made = []
    for row in read_rows(path):
        row.update({name: tuple(row[name]) for name in ("passages", "cosine", "lexical")})
        made.append(Group(**row))
    return made
