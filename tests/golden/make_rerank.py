"""Write ``rerank.json`` beside this file: the logits that ``tests/test_rerank_golden.py`` compares with.

    PYTHONPATH=src python tests/golden/make_rerank.py

Run it when a model is exchanged on purpose, and read the diff: a relevant passage must stay above the others.
"""

from __future__ import annotations

import json
from pathlib import Path

from surefoot.inference.relevance import RelevanceModel
from surefoot.models.manifest import ResolvedModel, list_models, resolve_model

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures" / "models"
TOLERANCE = 1e-3
"""Processors add up in different orders; a wrong weight, token or segment moves a logit by far more."""

CASES = {
    "how long is the notice period": (
        "Either party may end the lease with a notice period of two months.",
        "The deposit is 600 euros and is paid back within a month of moving out.",
        "Pets need the written consent of the landlord.",
    ),
    "what does the return label cost": (
        "The return label costs 4.50 euros, which we deduct from the refund.",
        "Labels on our jackets show how to wash them.",
        "Gold membership costs 29 euros a year.",
        "Rücksendungen sind kostenlos.",
        "",
    ),
    "who wrote the origin of species": (
        "On the Origin of Species, published in 1859, is the work of Charles Darwin.",
        "The species of origin is noted on the label of each plant.",
        "Charles Dickens wrote Great Expectations.",
        "word " * 300,
    ),
    "wie hoch ist die Miete?": (
        "Die Miete beträgt 900 Euro.",
        "The rent is 900 euros.",
        "\u6f22\u5b57 \U0001f600",
    ),
}


def models() -> dict[str, ResolvedModel]:
    """The models with golden scores: two tiny ones, and that of the package where it has one."""
    found = {
        name: resolve_model(FIXTURES / name, task="relevance")
        for name in ("bert-relevance", "bert-relevance-two-labels")
    }
    if any(record.task == "relevance" for record in list_models()):
        found["package"] = resolve_model(task="relevance")
    return found


def scores(resolved: ResolvedModel) -> dict[str, list[float | None]]:
    """The logit of each passage of each query; ``None`` where the pair is longer than the model."""
    model = RelevanceModel(resolved, threads=1, self_test=False)
    table: dict[str, list[float | None]] = {}
    for query, passages in CASES.items():
        room = model.pairs.room(query)
        fitting = [size <= room for size in model.pairs.encoder.count(list(passages))]
        wanted = [(query, text) for text, fits in zip(passages, fitting, strict=True) if fits]
        logits = iter(model.score(wanted))
        table[query] = [next(logits) if fits else None for fits in fitting]
    return table


def main() -> None:
    """Write the file."""
    golden = {
        name: {"fingerprint": resolved.fingerprint, "scores": scores(resolved)}
        for name, resolved in models().items()
    }
    result = {"tolerance": TOLERANCE, "models": golden}
    (HERE / "rerank.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
