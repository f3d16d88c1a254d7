"""From the labelled sets to files: pairs to train on, held-out claims, and the sample for measuring.

``human.jsonl.gz``
    pairs as they are, short ones.
``edited.jsonl.gz``
    hard negatives from these: a detail exchanged in the claim, or in claim and premise alike.
``product.jsonl.gz``
    pairs in the shapes of the package, with hard negatives.
``mixed.jsonl.gz``
    all of these, a share of the short ones, and others of them crowded; some claims as in a conversation.
``meetings.jsonl.gz``
    summaries of meetings: other speakers, other turns.
``families.jsonl.gz``
    copies of hand-written statements.
``contrast.jsonl.gz``
    pairs made from parsed sentences; needs spaCy, lemminflect and WordNet.
``held.jsonl.gz``
    claims of held-out documents with their selected premises: thresholds and the decision are fitted on them.
``measured.jsonl.gz``
    the fixed sample of development sets (``--dev``); nothing is trained on it.
``claim_only.json``
    how much of the labels the claims alone give away.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from training.verify.augment import chatty, crowded, doubled
from training.verify.clauses import parser
from training.verify.contrast import contrast_pairs
from training.verify.families import family_pairs
from training.verify.leaks import claim_only
from training.verify.measured import Item, answer_items, discover_sets, grounding_items, write_items
from training.verify.meetings import meeting_cases
from training.verify.pairs import Pair, write_pairs
from training.verify.questions import question_claims
from training.verify.selection import Reader
from training.verify.shapes import Case, cases, neighbours, pairs_of, sentences_of
from training.verify.sources import SOURCES, Row, group_of, is_held_out, normalised, read_set

from surefoot.segment import plain_text

__all__ = [
    "HELD",
    "HUMAN",
    "PRODUCT",
    "build",
    "edited_pairs",
    "forbidden",
    "held_items",
    "human_pairs",
    "mixed_pairs",
    "product_pairs",
]

HUMAN: Final = {
    "te_new_protocols": 40_000,
    "mnli": 30_000,
    "cad_nli": 9_000,
    "fever_nli": 18_000,
    "snli_dev": 5_000,
    "fever_symmetric": 1_000,
    "nli_negation": 3_000,
    "breaking_nli": 1_800,
    "conjnli": 2_600,
    "scitail_dev": 2_200,
    "scifact_rte": 600,
    "med": 800,
}
"""Most pairs of each set of short premises."""

PRODUCT: Final = {
    "defacto": 3_500,
    "cg2c": 2_500,
    "halueval_summ": 5_000,
    "halueval_qa": 3_000,
    "scifact_abstract": 750,
    "clapnq_answers": 700,
    "wice_subclaim_partial": 300,
    "evidence_inference": 500,
}
"""Most rows of each set of long premises; each gives up to three pairs. Template-made claims are few."""

CROWDED: Final = {
    "te_new_protocols": 7_000,
    "fever_nli": 6_500,
    "mnli": 3_000,
    "scitail_dev": 1_000,
    "scifact_rte": 400,
    "fever_symmetric": 400,
}
"""Most pairs of each set of short premises that are shown among other sentences."""

EDITED: Final = ("te_new_protocols", "fever_nli", "mnli", "scitail_dev", "scifact_rte", "fever_symmetric")
"""Sets of short premises whose claims name things."""

SHORT_SHARE: Final = 0.28
CHATTY_SHARE: Final = 0.12
DOUBLED: Final = ("halueval_summ", "clapnq_answers")

HELD: Final = {
    "defacto": (400, 0.0),
    "cg2c": (300, 0.0),
    "scifact_abstract": (180, 0.0),
    "clapnq_answers": (110, 1.0),
    "halueval_summ": (130, 1.0),
    "halueval_qa": (120, 0.0),
    "te_new_protocols": (250, 0.0),
    "fever_nli": (250, 0.0),
    "mnli": (150, 0.0),
}
"""Claims of each set that decisions are made on, and the share of supported ones that are edited."""

LONG_HELD: Final = 20
"""Percent of the documents of :data:`PRODUCT` that are held out."""

_SHORT: Final = 110
_PART: Final = 100
_RULE_MADE: Final = {"conjnli": ("auto15k", 0.2)}
"""Rule-made subsets: only this share of them."""

_MOST_OF_A_LABEL: Final = {"breaking_nli": 900}


def forbidden(folders: Iterable[Path]) -> frozenset[str]:
    """Claims and beginnings of premises that are measured on, normalised: none of them is trained on."""
    found: set[str] = set()
    for folder in folders:
        grounding, answers = discover_sets(folder)
        for path in (*grounding.values(), *answers.values()):
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8") as stream:
                for line in stream:
                    record = json.loads(line)
                    found.add(normalised(record.get("claim", ""))[:300])
                    found.add(normalised(record.get("premise", record.get("context", "")))[:300])
    return frozenset(found - {""})


def _clean(row: Row, banned: Collection[str]) -> bool:
    return normalised(row.claim)[:300] not in banned and normalised(row.premise)[:300] not in banned


def _present(folder: Path, names: Iterable[str]) -> list[str]:
    return [name for name in names if (folder / f"{name}.jsonl.gz").is_file()]


def label_of(row: Row) -> str:
    """The label of a pair, of :data:`~training.verify.pairs.LABELS`."""
    if row.label == "unsupported":
        return "neutral" if SOURCES[row.source].three_way else "not_entailment"
    return {"supported": "entailment", "contradicted": "contradiction"}[row.label]


def human_pairs(folder: Path, banned: Collection[str], *, seed: int, scale: float = 1.0) -> list[Pair]:
    """Short pairs of every set of :data:`HUMAN` that the folder has, shuffled."""
    found: list[Pair] = []
    for name in _present(folder, HUMAN):
        rows = list(read_set(folder, name))
        rng = random.Random(f"{seed}:human:{name}")
        rng.shuffle(rows)
        limit, seen, labels = round(HUMAN[name] * scale), set(), Counter[str]()
        rule, share = _RULE_MADE.get(name, ("", 1.0))
        for row in rows:
            key = (normalised(row.premise), normalised(row.claim))
            if (
                len(seen) >= limit
                or key in seen
                or is_held_out(row.premise)
                or not _clean(row, banned)
                or len(row.premise.split()) + len(row.claim.split()) > _SHORT
                or labels[row.label] >= _MOST_OF_A_LABEL.get(name, limit)
                or (rule and row.subset == rule and rng.random() >= share)
            ):
                continue
            seen.add(key)
            labels[row.label] += 1
            found.append(Pair(row.premise, row.claim, label_of(row), name))
    random.Random(f"{seed}:human").shuffle(found)
    return found


def edited_pairs(human: Sequence[Pair], *, seed: int) -> list[Pair]:
    """What one edit makes of the short pairs that are true, shuffled.

    No claim is negated: among short premises people have written enough of those.
    """
    true = [
        Row(pair.source, "", pair.premise, pair.claim, "supported")
        for pair in human
        if pair.label == "entailment" and pair.source in EDITED
    ]
    found = [
        Pair(case.document, case.claim, case.label, case.source, case.kind)
        for case in cases(true, seed=seed)
        if case.kind not in ("given", "left out", "negation")
    ]
    random.Random(f"{seed}:edited").shuffle(found)
    return found


def _documents(folder: Path, name: str) -> Iterator[Row]:
    """Rows with claims of one sentence. Of machine-made sets only what people wrote: the right summaries."""
    if name == "halueval_qa":
        yield from question_claims(read_set(folder, name), seed=1)
        return
    for row in read_set(folder, name):
        if name == "halueval_summ" and row.label != "supported":
            continue
        if name in ("halueval_summ", "clapnq_answers"):
            sentences = sentences_of(row.claim)
            chosen = random.Random(row.claim).sample(sentences, min(2, len(sentences)))
            for sentence in chosen:
                yield Row(row.source, row.subset, row.premise, sentence, row.label, row.question)
        else:
            yield row


def _held_document(row: Row) -> bool:
    return group_of(row.premise) % 100 < LONG_HELD


def product_pairs(
    folder: Path, banned: Collection[str], *, seed: int, scale: float = 1.0, processes: int = 1
) -> list[Pair]:
    """Pairs in the package's shapes from every set of :data:`PRODUCT`, shuffled; for any ``processes``."""
    rows: list[Row] = []
    for name in _present(folder, PRODUCT):
        found = [row for row in _documents(folder, name) if not _held_document(row) and _clean(row, banned)]
        random.Random(f"{seed}:product:{name}").shuffle(found)
        rows += sorted(found[: round(PRODUCT[name] * scale)], key=lambda row: (row.premise, row.claim))
    parts = [rows[start : start + _PART] for start in range(0, len(rows), _PART)]
    if processes > 1:
        with ProcessPoolExecutor(processes) as pool:
            made = list(pool.map(partial(_product_part, seed=seed), parts))
    else:
        made = [_product_part(part, seed=seed) for part in parts]
    pairs = list(chain.from_iterable(made))
    pairs += _doubled_pairs(folder, banned, seed=seed, scale=scale)
    random.Random(f"{seed}:product").shuffle(pairs)
    return pairs


def meeting_pairs(folder: Path, banned: Collection[str], *, seed: int) -> list[Pair]:
    """Pairs in the package's shapes from summaries of meetings, shuffled."""
    rows = [row for name in _present(folder, ("qmsum",)) for row in read_set(folder, name)]
    rows = [row for row in rows if not _held_document(row) and _clean(row, banned)]
    pairs = list(pairs_of(meeting_cases(rows, seed=seed), seed=seed))
    random.Random(f"{seed}:meetings").shuffle(pairs)
    return pairs


def _doubled_pairs(folder: Path, banned: Collection[str], *, seed: int, scale: float) -> Iterator[Pair]:
    for name in _present(folder, DOUBLED):
        rows = [row for row in read_set(folder, name) if not _held_document(row) and _clean(row, banned)]
        random.Random(f"{seed}:doubled:{name}").shuffle(rows)
        yield from pairs_of(doubled(rows[: round(2_500 * scale)], seed=seed), seed=seed)


def mixed_pairs(
    human: Sequence[Pair], product: Sequence[Pair], *, seed: int, scale: float = 1.0
) -> list[Pair]:
    """The pairs of the second half of training: shaped, crowded and short ones, some of them chatty."""
    rng = random.Random(f"{seed}:mixed")
    found = list(product)
    for name, limit in CROWDED.items():
        some = [pair for pair in human if pair.source == name]
        found += list(crowded(some, seed=seed))[: round(limit * scale)]
    found += rng.sample(list(human), round(len(human) * SHORT_SHARE))
    found = [chatty(pair, seed=seed) if rng.random() < CHATTY_SHARE else pair for pair in found]
    rng.shuffle(found)
    return found


CONTRAST: Final = {
    "te_new_protocols": 20_000,
    "fever_nli": 12_000,
    "mnli": 9_000,
    "scitail_dev": 1_500,
    "cg2c": 700,
    "defacto": 900,
    "halueval_summ": 1_500,
    "clapnq_answers": 1_500,
    "halueval_qa": 3_000,
    "scifact_abstract": 250,
}
"""Most texts of each set that are parsed for contrast pairs."""


def contrast(
    folder: Path, out: Path, banned: Collection[str], *, seed: int, scale: float = 1.0, processes: int = 1
) -> int:
    """Write ``contrast.jsonl.gz``: pairs made of parsed sentences; texts held out elsewhere are not used."""
    texts: dict[str, str] = {}
    for name in _present(folder, CONTRAST):
        rows = list({row.premise: None for row in read_set(folder, name)})
        rows = [
            text
            for text in rows
            if not is_held_out(text)
            and group_of(text) % 100 >= LONG_HELD
            and normalised(text)[:300] not in banned
        ]
        random.Random(f"{seed}:contrast:{name}").shuffle(rows)
        texts.update(dict.fromkeys((text[:5_000] for text in rows[: round(CONTRAST[name] * scale)]), name))
    order = list(texts)
    random.Random(f"{seed}:contrast").shuffle(order)
    parsed = parser().pipe(order, batch_size=64, n_process=processes)
    twins = list(contrast_pairs(((texts[doc.text], doc) for doc in parsed), seed=seed))
    random.Random(f"{seed}:contrast").shuffle(twins)
    pairs = list(chain.from_iterable(twins))
    leak = claim_only(pairs)["all"]
    (out / "contrast-claim-only.json").write_text(json.dumps({"all": leak}) + "\n", "utf-8")
    return write_pairs(out / "contrast.jsonl.gz", pairs)


def _product_part(rows: Sequence[Row], *, seed: int) -> list[Pair]:
    """The pairs of some rows, what two more draws make of the supported ones, and sentences of the documents
    themselves; none of them twice.
    """
    found = list(pairs_of(cases(rows, seed=seed), seed=seed))
    for draw in (1, 2):
        again = [case for case in cases(rows, seed=seed + draw) if case.kind != "given"]
        found += pairs_of(again, seed=seed)
    found += pairs_of(neighbours(rows, seed=seed), seed=seed)
    return list({(pair.premise, pair.claim): pair for pair in found}.values())


def held_items(folder: Path, banned: Collection[str], *, seed: int, scale: float = 1.0) -> Iterator[Item]:
    """Claims of held-out documents with their premises and features."""
    for name in _present(folder, HELD):
        long = name in PRODUCT
        limit, edited = HELD[name]
        rows = [
            row
            for row in _documents(folder, name)
            if (_held_document(row) if long else is_held_out(row.premise)) and _clean(row, banned)
        ]
        random.Random(f"{seed}:held:{name}").shuffle(rows)
        chosen = sorted(rows[: round(limit * scale)], key=lambda row: (row.premise, row.claim))
        yield from _items(name, cases(chosen, seed=seed + 1, edited=edited))


def _items(name: str, found: Iterable[Case]) -> Iterator[Item]:
    document, reader = None, None
    for case in found:
        if reader is None or case.document != document:
            document, reader = case.document, Reader([case.document])
        label = {"entailment": "supported", "contradiction": "contradicted"}.get(case.label, "unsupported")
        wrong = label != "supported"
        yield Item(
            name, str(group_of(case.document)), wrong, label, wrong, reader.select(plain_text(case.claim))
        )


def build(
    train: Path,
    out: Path,
    *,
    dev: Path | None,
    exclude: Iterable[Path] = (),
    seed: int = 1,
    scale: float = 1.0,
    rows: int = 120,
    answers: int = 150,
    processes: int = 1,
) -> dict[str, int]:
    """Write all files.

    Args:
        train: folder with ``NAME.jsonl.gz`` of labelled training sets.
        out: where to.
        dev: folder with ``grounding/`` and ``answer/``: the measured sample is drawn there.
        exclude: more such folders: what they hold is not trained on.
        seed: of every draw.
        scale: of the shares; below 1 for a try.
        rows, answers: sample of each development set.
        processes: that make pairs; the pairs are the same.

    Returns:
        How many rows each file has.
    """
    out.mkdir(parents=True, exist_ok=True)
    banned = forbidden([*([dev] if dev else []), *exclude])
    human = human_pairs(train, banned, seed=seed, scale=scale)
    product = product_pairs(train, banned, seed=seed, scale=scale, processes=processes)
    leaks = {"human": claim_only(human), "product": claim_only(product)}
    (out / "claim_only.json").write_text(json.dumps(leaks, indent=2) + "\n", "utf-8")
    counts = {
        "human": write_pairs(out / "human.jsonl.gz", human),
        "edited": write_pairs(out / "edited.jsonl.gz", edited_pairs(human, seed=seed)),
        "product": write_pairs(out / "product.jsonl.gz", product),
        "mixed": write_pairs(out / "mixed.jsonl.gz", mixed_pairs(human, product, seed=seed, scale=scale)),
        "meetings": write_pairs(out / "meetings.jsonl.gz", meeting_pairs(train, banned, seed=seed)),
        "families": write_pairs(
            out / "families.jsonl.gz",
            chain.from_iterable(family_pairs(held_out=False, copies=round(40 * scale), seed=seed)),
        ),
        "contrast": contrast(train, out, banned, seed=seed, scale=scale),
        "held": write_items(out / "held.jsonl.gz", held_items(train, banned, seed=seed, scale=scale)),
    }
    if dev is not None:
        grounding, answer_sets = discover_sets(dev)
        measured = [item for path in grounding.values() for item in grounding_items(path, rows)]
        measured += [item for path in answer_sets.values() for item in answer_items(path, answers)]
        counts["measured"] = write_items(out / "measured.jsonl.gz", measured)
    return counts
