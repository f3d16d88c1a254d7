"""The installed wheel, used as a user would: run by scripts/test-wheel, outside the checkout."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(os.environ["SUREFOOT_EXAMPLES"])
CHECKOUT = Path(os.environ["SUREFOOT_CHECKOUT"])
SUREFOOT = Path(sysconfig.get_path("scripts")) / "surefoot"


def surefoot(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SUREFOOT), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def check_policy() -> dict[str, Any]:
    done = surefoot("check", str(EXAMPLES / "policy.json"), "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_it_is_the_wheel_and_not_the_checkout() -> None:
    import surefoot as package

    location = Path(str(package.__file__)).resolve()
    assert not location.is_relative_to(CHECKOUT)
    assert location.is_relative_to(Path(sys.prefix).resolve())


@pytest.mark.parametrize(
    "name", ["torch", "transformers", "sentence_transformers", "onnx", "pandas", "scipy"]
)
def test_nothing_heavy_came_along(name: str) -> None:
    assert importlib.util.find_spec(name) is None


def test_the_version_is_the_same_everywhere() -> None:
    import surefoot as package

    done = surefoot("--version")
    assert done.returncode == 0
    assert package.__version__ == importlib.metadata.version("surefoot")
    assert package.__version__ in done.stdout


def test_licence_notice_and_types_are_inside() -> None:
    files = {str(file) for file in importlib.metadata.files("surefoot") or ()}
    assert "surefoot/py.typed" in files
    assert any(file.endswith("/LICENSE") for file in files)
    assert any(file.endswith("/NOTICE") for file in files)
    strangers = [file for file in files if re.match(r"(tests|benchmarks|training|examples|scripts)/", file)]
    assert strangers == []


def test_doctor_finds_nothing_wrong() -> None:
    done = surefoot("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def test_an_answer_is_checked() -> None:
    report = check_policy()
    answer = report["answer"]
    assert report["claims"]
    for claim in report["claims"]:
        assert answer[claim["start"] : claim["end"]] == claim["text"]
    assert any(claim["verdict"] == "supported" for claim in report["claims"])
    assert not report["degraded"]


def test_two_runs_give_the_same_report() -> None:
    first, second = check_policy(), check_policy()
    first.pop("seconds")
    second.pop("seconds")
    assert first == second


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_every_example_request_is_read(path: Path) -> None:
    done = surefoot("check", str(path), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"] == json.loads(path.read_text(encoding="utf-8"))["answer"]


def test_a_missing_file_is_an_error_of_the_caller() -> None:
    done = surefoot("check", "no-such-file.json")
    assert done.returncode == 2
    assert "no-such-file.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_threshold_sets_the_exit_code() -> None:
    request = json.dumps(
        {"answer": "Whales are made of green cheese and glass.", "sources": ["Whales are mammals."]}
    )
    done = surefoot("check", "-", "--quiet", "--fail-under", "0.9", stdin=request)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""


def test_the_library_works_from_the_wheel() -> None:
    code = (
        "import sys\n"
        "from surefoot import Verdict, Verifier\n"
        "text = 'The notice period is two months.'\n"
        "report = Verifier().verify(text, [text])\n"
        "assert report.claims[0].verdict is Verdict.SUPPORTED, report\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
