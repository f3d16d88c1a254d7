"""Whether this installation can be trusted: versions, processor, model files, and a self-test."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

import surefoot
from surefoot.errors import SurefootError
from surefoot.inference.processor import INT8, processor
from surefoot.schema import Reason, Verdict

__all__ = ["EXTRAS", "PACKAGES", "examine"]

PACKAGES = (
    "huggingface-hub",
    "jinja2",
    "markdown-it-py",
    "numpy",
    "onnxruntime",
    "rich",
    "sentencex",
    "tokenizers",
    "typer",
)
"""What the package depends on."""

EXTRAS = {
    "html": ("beautifulsoup4",),
    "pdf": ("pypdf",),
    "retrieve": ("faiss-cpu", "bm25s", "pystemmer", "semantic-text-splitter"),
    "judge": ("openai",),
    "convert": ("torch", "transformers", "onnx", "safetensors", "sentencepiece", "protobuf"),
}
"""Extras that a user may want, and what they install."""

_STATED = "The museum opens at nine in the morning and closes at six in the evening."
_SELF_TEST = (
    ("The museum opens at nine in the morning.", True),
    ("The bridge was painted green by volunteers in the spring.", False),
)


def examine(*, threads: int | None = None) -> dict[str, Any]:
    """Look at the installation; never raises for what it finds.

    Args:
        threads: as for ``Verifier``.

    Returns:
        Plain data. ``ok`` is false where a model file is damaged, a package is missing or the self-test
        fails; ``problems`` then says which.
    """
    packages = {name: _version(name) for name in PACKAGES}
    models = _models()
    test = _self_test(threads)
    problems = [f"the package {name} is missing" for name, version in packages.items() if version is None]
    problems += [f"model {model['name']}: {model['problem']}" for model in models if model["problem"]]
    if not test["passed"]:
        problems.append(f"self-test: {test['detail']}")
    return {
        "ok": not problems,
        "problems": problems,
        "surefoot": surefoot.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "threads": threads or _threads(),
        "packages": packages,
        "extras": {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()},
        "models": models,
        "self_test": test,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _threads() -> int | None:
    try:
        from surefoot.inference.session import available_threads
    except ImportError:  # the packages that are missing are reported as such
        return None
    return available_threads()


def _processor() -> dict[str, Any]:
    model, features = processor()
    return {
        "model": model or platform.processor() or platform.machine(),
        "features": features,
        "int8": bool(INT8 & set(features)),
    }


def _models() -> list[dict[str, Any]]:
    try:
        from surefoot.models.manifest import bundled, list_models

        records = list_models()
    except (SurefootError, ImportError, OSError) as error:
        return [{"name": "manifest", "task": None, "problem": str(error)}]
    found = []
    for record in records:
        problem = None
        try:
            bundled(record.name)
        except (SurefootError, OSError) as error:
            problem = str(error)
        found.append({"name": record.name, "task": record.task, "problem": problem})
    return found


def _self_test(threads: int | None) -> dict[str, Any]:
    """Check one stated and one invented sentence, twice: right, and the same both times."""
    try:
        from surefoot.verify import Verifier

        answer = " ".join(text for text, _ in _SELF_TEST)
        first, second = (
            Verifier(threads=threads, citations="optional").verify(answer, [_STATED]) for _ in range(2)
        )
    except Exception as error:  # noqa: BLE001  whatever breaks here is what the doctor was asked to find
        return {"passed": False, "detail": f"{type(error).__name__}: {error}"}
    if len(first.claims) != len(_SELF_TEST):
        return {"passed": False, "detail": f"{len(first.claims)} claims instead of {len(_SELF_TEST)}"}
    for claim, (text, stated) in zip(first.claims, _SELF_TEST, strict=True):
        if Reason.CHECKER_FAILED in claim.reasons or (claim.verdict is Verdict.SUPPORTED) is not stated:
            return {"passed": False, "detail": f"{text!r} came out as {claim.verdict}"}
    if [claim.support for claim in first.claims] != [claim.support for claim in second.claims]:
        return {"passed": False, "detail": "two runs gave two results"}
    return {"passed": True, "detail": f"{len(_SELF_TEST)} sentences judged as expected, twice"}
