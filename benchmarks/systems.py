"""surefoot itself as a system under measurement, and the list of systems to choose from."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.baselines import (
    DECISION,
    AlwaysSupported,
    AnswerClaim,
    Outcome,
    PairScorer,
    Straightforward,
    System,
    UnseenShare,
    cross_encoder_scorer,
)
from benchmarks.datasets import AnswerRow, passages_of
from surefoot.schema import Claim, ClaimKind, Reason, Source, Verdict

__all__ = ["DEFAULT_SYSTEMS", "SYSTEMS", "Surefoot", "ablations", "build", "code_digest", "outcome_of"]

SYSTEMS = (
    *("always_supported", "unseen_share", "straightforward", "straightforward_nocut"),
    *("exhaustive", "surefoot"),
)
DEFAULT_SYSTEMS = tuple(name for name in SYSTEMS if name != "straightforward_nocut")
PACKAGE = Path(importlib.import_module("surefoot").__file__ or "").parent
FAULTS = frozenset(
    {
        *(Reason.CLAIM_TOO_LONG, Reason.LANGUAGE, Reason.TOO_MANY_CLAIMS),
        *(Reason.DEADLINE, Reason.CHECKER_FAILED),
    }
)


def outcome_of(claim: Claim) -> Outcome:
    """How a claim's verdict counts.

    Supported are the verdict ``supported``, and ``review`` with support of at least 0.5: a claim that is
    left to a person is read as the model leans. A ``review`` because a step failed, and a text held not to
    be a claim, are abstentions: not supported, with score 0. A claim that is rejected although its support
    is above the threshold (contradicted, or at odds with a number) stays rejected.
    """
    support = claim.support
    if claim.verdict is Verdict.NOT_CHECKABLE:
        return Outcome(score=0.0, supported=False, strict=False, abstained=True)
    if claim.verdict is Verdict.REVIEW:
        if support is None or not FAULTS.isdisjoint(claim.reasons):
            return Outcome(score=0.0, supported=False, strict=False, abstained=True, review=True)
        return Outcome(score=support, supported=support >= DECISION, strict=False, review=True)
    supported = claim.verdict is Verdict.SUPPORTED
    if support is None:  # decided without a probability
        return Outcome(score=float(supported), supported=supported, strict=supported)
    veto = claim.verdict is Verdict.CONTRADICTED or (not supported and support >= DECISION)
    return Outcome(score=support, supported=supported, strict=supported, veto=veto)


class Surefoot:
    """A ``Verifier``, at its defaults or with some steps switched off."""

    uses_surefoot = True

    def __init__(self, name: str, options: Mapping[str, Any], *, exhaustive: bool = False):
        self.name = name
        self._options = dict(options)
        self._exhaustive = exhaustive
        self._verifier = _verifier_class()(**self._options)

    def describe(self) -> dict[str, object]:
        return {"options": {k: _plain(v) for k, v in self._options.items()}, "exhaustive": self._exhaustive}

    def claims(self, premise: str, claims: Sequence[str]) -> list[Outcome]:
        sources = [Source(id="1", text=premise)]
        checked = self._verifier.check_claims(list(claims), sources, exhaustive=self._exhaustive)
        if len(checked) != len(claims):
            raise RuntimeError(f"{len(claims)} claims went in, {len(checked)} came out")
        return [outcome_of(claim) for claim in checked]

    def answer(self, row: AnswerRow) -> list[AnswerClaim]:
        sources = [Source(id=str(i), text=text) for i, text in enumerate(passages_of(row.context), start=1)]
        report = self._verifier.verify(
            row.answer, sources, question=row.question, exhaustive=self._exhaustive
        )
        return [
            AnswerClaim(claim.start, claim.end, outcome_of(claim))
            for claim in report.claims
            if claim.kind is ClaimKind.CLAIM and claim.verdict is not Verdict.NOT_CHECKABLE
        ]


def ablations() -> dict[str, dict[str, Any]]:
    """Named option sets that ``surefoot.verify.ABLATIONS`` offers; empty where it offers none.

    Names become words joined by underscores, to be used in keys and on the command line.
    """
    found = getattr(importlib.import_module("surefoot.verify"), "ABLATIONS", {})
    return {re.sub(r"\W+", "_", str(name)): dict(options) for name, options in found.items()}


def build(
    name: str,
    *,
    model: str | None,
    checkpoint: Path | None,
    threads: int | None,
) -> System:
    """Make a system by name; ``ablation_NAME`` switches steps off.

    Raises:
        ValueError: there is no system of that name.
    """
    simple: dict[str, Callable[[], System]] = {
        "always_supported": AlwaysSupported,
        "unseen_share": UnseenShare,
    }
    if name in simple:
        return simple[name]()
    if name in ("straightforward", "straightforward_nocut"):
        return _straightforward(
            name == "straightforward", model=model, checkpoint=checkpoint, threads=threads
        )
    options: dict[str, Any] = {"threads": threads}
    if model is not None:
        options["model"] = model
    if name in ("surefoot", "exhaustive"):
        return Surefoot(name, options, exhaustive=name == "exhaustive")
    steps = ablations()
    wanted = name.removeprefix("ablation_")
    if wanted == name or wanted not in steps:
        known = ", ".join([*SYSTEMS, *(f"ablation_{step}" for step in steps)])
        raise ValueError(f"no system is called {name!r}; there are {known}")
    return Surefoot(name, {**options, **steps[wanted]})


def _straightforward(
    cut: bool, *, model: str | None, checkpoint: Path | None, threads: int | None
) -> Straightforward:
    """The CrossEncoder on a checkpoint, or the same algorithm on surefoot's own weights and runtime."""
    if checkpoint is not None:
        try:
            scorer = cross_encoder_scorer(checkpoint, threads=threads)
        except ImportError as error:
            reason = f"{error.name or 'sentence-transformers'} is not installed"
        else:
            apart = _difference(scorer, _own_scorer(model, threads=threads)[0])
            name = f"sentence-transformers CrossEncoder, float32, checkpoint {checkpoint.name}"
            return Straightforward(scorer, scorer_name=name, cut=cut, difference_from_surefoot=apart)
    else:
        reason = "no checkpoint was given"
    scorer, model_name = _own_scorer(model, threads=threads)
    return Straightforward(
        scorer,
        scorer_name=f"surefoot's ONNX runtime on {model_name}, not sentence-transformers: {reason}",
        cut=cut,
        uses_surefoot=True,
    )


def _difference(one: PairScorer, two: PairScorer) -> float:
    """Largest difference on a few pairs, to 2 digits: near 0 where both hold the same weights.

    Not 0: surefoot stores its weights in int8.
    """
    premise = "The library opens at nine on weekdays and closes at noon on Saturdays."
    claims = (
        *("The library opens at nine on weekdays.", "The library is closed on Sundays."),
        *("The library closes at ten on Saturdays.", "The baker sells rye bread."),
    )
    pairs = [(premise, claim) for claim in claims]
    return round(max(abs(a - b) for a, b in zip(one(pairs), two(pairs), strict=True)), 2)


def _own_scorer(model: str | None, *, threads: int | None) -> tuple[PairScorer, str]:
    from surefoot.inference.entailment import NliModel
    from surefoot.models.manifest import resolve_model

    resolved = resolve_model(model, task="nli")
    nli = NliModel(resolved, threads=threads)
    encoder, longest = nli.pairs.encoder, nli.pairs.max_length

    def cut_to(text: str, tokens: int) -> str:
        """The longest prefix of at most ``tokens`` word pieces: what a truncating tokenizer would keep."""
        while tokens > 0:
            (encoding,) = encoder.encode([text])
            if len(encoding.ids) <= tokens:
                return text
            text = text[: min(encoding.offsets[tokens - 1][1], len(text) - 1)]
        return ""

    def score(pairs: Sequence[tuple[str, str]]) -> list[float]:
        fitting = []
        for premise, claim in pairs:
            short = cut_to(claim, longest // 2)
            fitting.append((cut_to(premise, nli.pairs.room(short)), short))
        return [float(found.entailment) for found in nli.score(fitting)]

    return score, resolved.record.name


@cache
def code_digest(*, with_surefoot: bool) -> str:
    """sha256 over these scripts and, if asked, surefoot's code and models: with it, outcomes stay valid."""
    here = Path(__file__).resolve().parent
    # Changing how figures are computed or printed does not change what the systems said.
    files = [here / name for name in ("baselines.py", "datasets.py", "runs.py", "systems.py")]
    if with_surefoot:
        files += sorted(path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _verifier_class() -> Any:
    return importlib.import_module("surefoot").Verifier


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
