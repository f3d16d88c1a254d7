"""What the manifest says of the reranker besides its files: terms, data, calibration, fusion and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["TERMS", "entry"]

TERMS = {
    "squad": "SQuAD 2.0, development articles outside the measured half (CC BY-SA 4.0)",
    "squad_sentences": "sentences of the same articles (CC BY-SA 4.0)",
    "qnli": "QNLI, from SQuAD 1.1 (CC BY-SA 4.0), without what the measured half shares",
    "hotpot": "HotpotQA questions and supporting sentences (CC BY-SA 4.0) as published in HaluEval (MIT)",
    "covidqa": "COVID-QA (Apache-2.0) over CORD-19 articles under CC BY",
    "scifact": "SciFact claims (CC BY 4.0) and abstracts (ODC-BY 1.0), training part",
    "titles": "titles and abstracts of the SciFact corpus (ODC-BY 1.0)",
    "cloze": "sentences and abstracts of the SciFact corpus (ODC-BY 1.0)",
    "keywords": "words of titles, and abstracts, of the SciFact corpus (ODC-BY 1.0)",
    "situations": "halves of abstracts of the SciFact corpus (ODC-BY 1.0)",
    "fever": "FEVER claims with supporting sentences (CC BY-SA 3.0)",
}
"""Training source to what it is and its terms."""


def entry(
    fit: Mapping[str, Any],
    system: str | None,
    run: Mapping[str, Any],
    sources: list[str],
    measured: Mapping[str, Any],
) -> dict[str, Any]:
    """The fields that a manifest entry gets on top of what the checkpoint says.

    Args:
        fit: written by the command ``fuse``.
        system: which of its systems is used; ``None`` for the logit alone.
        run: ``run.json`` of the training.
        sources: training sources used.
        measured: written by the command ``evaluate``.

    Raises:
        ValueError: ``fit`` or ``measured`` does not know the system.
    """
    for what, known in (("fitted", [fit["systems"]]), ("measured", measured["mean"].values())):
        if system is not None and any(system not in names for names in known):
            raise ValueError(f"what was {what} has no system {system!r}")
    a, b = fit["platt"]["reranked"]
    made: dict[str, Any] = {
        "license": "Apache-2.0",
        "provenance": {
            "base_model": "all-MiniLM-L6-v2 (Apache-2.0)",
            "training_data": [TERMS[source] for source in sources],
            "terms": "attribution as named; why the weights may be Apache-2.0: docs/models/rerank.md",
            "training_cost": _cost(run),
            "measured": {
                first: {
                    name: {key: figures[key] for key in ("ndcg", "gain", "gain_interval") if key in figures}
                    for name, figures in rows.items()
                    if name in ("as retrieved", "reranked", system)
                }
                for first, rows in measured["mean"].items()
            },
        },
        "calibration": {"kind": "platt", "a": a, "b": b},
    }
    if system is not None:
        slope, offset = fit["platt"][system]
        made["fusion"] = {**fit["systems"][system], "a": slope, "b": offset}
    return made


def _cost(run: Mapping[str, Any]) -> str:
    """Minutes, tokens and steps of a run and of all that came before it."""
    chain = [run]
    while "after" in chain[-1]:
        chain.append(chain[-1]["after"])
    minutes, tokens, steps = (sum(part[key] for part in chain) for key in ("cpu_minutes", "tokens", "step"))
    return f"{minutes:.1f} CPU minutes, {tokens} tokens, {steps} steps"
