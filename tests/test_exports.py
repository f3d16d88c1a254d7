"""The public names, pinned: adding one is a decision, and removing one breaks somebody."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import surefoot
import surefoot.errors

ROOT = Path(__file__).resolve().parents[1]
EXPORTED = [
    "BudgetExceededError",
    "Citation",
    "Claim",
    "ConfigurationError",
    "DownloadRefusedError",
    "EndpointError",
    "EndpointRejectedError",
    "EndpointReplyError",
    "EndpointTimeoutError",
    "EndpointUnavailableError",
    "Evidence",
    "Index",
    "InputError",
    "Judge",
    "MissingExtraError",
    "ModelError",
    "ModelIntegrityError",
    "ModelNotFoundError",
    "Pipeline",
    "RankedSource",
    "Reranker",
    "Source",
    "SurefootError",
    "TruthfulnessReport",
    "Verdict",
    "Verifier",
    "__version__",
]
MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in (ROOT / "src" / "surefoot").rglob("*.py")
    if path.name not in {"__init__.py", "__main__.py"}
)


def test_the_exported_names() -> None:
    assert sorted(surefoot.__all__) == EXPORTED
    assert len(set(surefoot.__all__)) == len(surefoot.__all__)


@pytest.mark.parametrize("name", EXPORTED)
def test_each_exists_and_is_listed(name: str) -> None:
    assert getattr(surefoot, name) is not None
    assert name in dir(surefoot)


def test_the_heavy_name_comes_at_first_use() -> None:
    code = (
        "import sys, surefoot\n"
        "assert 'surefoot.verify' not in sys.modules\n"
        "surefoot.Verifier\n"
        "assert 'surefoot.verify' in sys.modules\n"
        "assert surefoot.Verifier is surefoot.verify.Verifier\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Verfier"):
        surefoot.Verfier  # noqa: B018
    with pytest.raises(ImportError):
        importlib.import_module("surefoot.no_such_module")


def test_every_exception_is_exported_and_of_one_tree() -> None:
    classes = {
        name
        for name, value in vars(surefoot.errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert classes <= set(EXPORTED)
    assert all(issubclass(getattr(surefoot, name), surefoot.SurefootError) for name in classes)


@pytest.mark.parametrize("module", MODULES)
def test_modules_say_what_they_offer(module: str) -> None:
    loaded = importlib.import_module(module)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    for name in loaded.__all__:
        assert hasattr(loaded, name), f"{module}.{name}"


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == surefoot.__version__
    assert f"## [{surefoot.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
