"""The command line: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import surefoot
from surefoot import cli, doctor
from surefoot.cli import check as check_command
from surefoot.cli import doctor as doctor_command
from surefoot.inference.processor import features_of
from surefoot.models.manifest import list_models

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
START = "from surefoot.cli import app; app(prog_name='surefoot')"


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path, stdin: str = "") -> Done:
    """The command in this process, where the model is loaded once."""
    result = CliRunner().invoke(
        cli.app, list(map(str, arguments)), input=stdin, prog_name="surefoot", env={"SUREFOOT_DEBUG": None}
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def environment(**changes: str) -> dict[str, str]:
    left_out = {"SUREFOOT_DEBUG", "FORCE_COLOR", "NO_COLOR", "COLUMNS"}
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", **changes}


def run_alone(*arguments: str | Path, code: str = START, **changes: str) -> Done:
    """The command in a process of its own, with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env=environment(**changes),
        timeout=300,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def error(done: Done) -> str:
    """The one line on standard error."""
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("surefoot: error: ").rstrip("\n")


def request(tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"answer": "", "sources": [], **fields}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def policy() -> Done:
    return run_alone("check", EXAMPLES / "policy.json")


# the ordinary


def test_a_pipe_gets_readable_text(policy: Done) -> None:
    assert policy.returncode == 0
    assert policy.stderr == ""
    assert "\x1b" not in policy.stdout
    assert re.match(r"score 0\.\d{3}, risk (low|medium|high)\n\d checkable claims: ", policy.stdout)
    assert "claim: You can return the jacket within 15 days of delivery. [Doc 1]" in policy.stdout
    assert "within 10 days of delivery.”" in policy.stdout


def test_json_is_the_report_and_nothing_else() -> None:
    done = run("check", EXAMPLES / "policy.json", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    report = json.loads(done.stdout)
    given = json.loads((EXAMPLES / "policy.json").read_text(encoding="utf-8"))
    assert report["answer"] == given["answer"]
    assert report["question"] == given["question"]
    assert [source["id"] for source in report["sources"]] == [source["id"] for source in given["sources"]]
    for claim in report["claims"]:
        assert report["answer"][claim["start"] : claim["end"]] == claim["text"]


def test_standard_input_and_a_question() -> None:
    text = "The notice period is two months."
    done = run(
        "check",
        "-",
        "--json",
        "--question",
        "How long?",
        stdin=json.dumps({"answer": text, "sources": [text]}),
    )
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["question"] == "How long?"
    assert report["claims"][0]["verdict"] == "supported"


def test_files(tmp_path: Path) -> None:
    (tmp_path / "lease.txt").write_text("The notice period is two months. Pets are not allowed.")
    (tmp_path / "answer.txt").write_text("The notice period is two months [lease.txt].")
    done = run("check", "--answer", tmp_path / "answer.txt", "--source", tmp_path / "lease.txt", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["claims"][0]["verdict"] == "supported"
    assert report["citations"][0]["source_id"] == "lease.txt"


def test_html_is_written_beside_the_text(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = run("check", EXAMPLES / "news.json", "--html", path)
    assert done.returncode == 0
    assert done.stdout.startswith("score ")
    assert done.stderr == f"surefoot: report written to {path}\n"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    done = run("check", EXAMPLES / "news.json", "--quiet", "--html", tmp_path / "report.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "report.html").is_file()


def test_the_options_reach_the_verifier(tmp_path: Path) -> None:
    text = "The notice period is two months {lease}."
    path = request(tmp_path, answer=text, sources=[{"id": "lease", "text": "The period is two months."}])
    base = json.loads(run("check", path, "--json").stdout)
    assert base["citations"] == []
    assert base["citation_groundedness"] == 0.0
    optional = json.loads(run("check", path, "--json", "--citations", "optional", "--threads", "1").stdout)
    assert optional["citation_groundedness"] is None
    arguments = ("--citation-pattern", r"\{(\w+)\}", "--exhaustive")
    pattern = json.loads(run("check", path, "--json", *arguments).stdout)
    assert pattern["citations"][0]["source_id"] == "lease"


# exit codes


@pytest.mark.parametrize(("threshold", "code"), [("0", 0), ("1", 1)])
def test_the_threshold(threshold: str, code: int) -> None:
    done = run("check", EXAMPLES / "policy.json", "--fail-under", threshold)
    assert done.returncode == code
    assert done.stdout.startswith("score ")


def test_an_undefined_score_is_under_every_threshold(tmp_path: Path) -> None:
    path = request(tmp_path)
    assert run("check", path).returncode == 0
    done = run("check", path, "--fail-under", "0")
    assert done.returncode == 1
    assert "undefined (empty answer)" in done.stdout


def test_null_and_empty_sources_are_no_error(tmp_path: Path) -> None:
    done = run("check", request(tmp_path, answer="The moon is made of cheese.", sources=[None, ""]), "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["score"] is None
    assert len(report["sources"]) == 2


@pytest.mark.parametrize("degraded", [True, False])
def test_a_degraded_report_outranks_the_threshold(degraded: bool) -> None:
    import report_builders

    report = report_builders.report(degraded=degraded)
    assert check_command._exit_code(report, 0.9) == (3 if degraded else 1)
    assert check_command._exit_code(report, None) == (3 if degraded else 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"answer": "x",\n  "sources": [}', "line 2, column 15"),
        ('{"answer": "x", "sources": [{"text": 1}]}', "sources[0].text: expected a string, got a number"),
        ('{"answer": "x", "sources": [], "citations": [{"wrong": 1}]}', "citations[0]"),
    ],
)
def test_a_wrong_request_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    done = run("check", path)
    assert done.returncode == 2
    assert message in error(done)


def test_what_is_wrong_with_the_command_is_said() -> None:
    for arguments in (
        [],
        ["r.json", "--answer", "a.txt"],
        ["r.json", "--source", "s.txt"],
        ["r.json", "--fail-under", "1.5"],
        ["r.json", "--threads", "0"],
        ["r.json", "--citations", "sometimes"],
        ["r.json", "--nonsense"],
    ):
        done = run("check", *arguments)
        assert done.returncode == 2, arguments
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert "Error" in done.stderr


def test_a_missing_file_a_wrong_pattern_and_an_unknown_model(tmp_path: Path) -> None:
    done = run("check", tmp_path / "none.json")
    assert done.returncode == 2
    assert "none.json: cannot be read: No such file" in error(done)
    path = request(tmp_path, answer="Some words make a claim.", sources=["text"])
    done = run("check", path, "--citation-pattern", "(")
    assert done.returncode == 2
    assert "pattern" in error(done)
    done = run("check", path, "--model", "no such model")
    assert done.returncode == 2
    assert "no such model" in error(done)
    done = run("check", path, "--model", "nobody/nothing")
    assert done.returncode == 2
    assert "surefoot models pull" in error(done) or "download" in error(done)


def test_a_damaged_model_fails_the_check(tmp_path: Path) -> None:
    from surefoot.models.manifest import bundled

    real = bundled("verify").model_path.parent
    model = tmp_path / "model"
    model.mkdir()
    for file in real.iterdir():
        (model / file.name).write_bytes(file.read_bytes() if file.suffix == ".json" else b"not a model")
    path = request(tmp_path, answer="Some words make a claim.", sources=["Some words make a text."])
    done = run("check", path, "--model", model)
    assert done.returncode == 3
    error(done)


def test_html_that_cannot_be_written(tmp_path: Path) -> None:
    done = run("check", request(tmp_path), "--html", tmp_path / "none" / "r.html")
    assert done.returncode == 2
    assert "cannot be written: No such file" in error(done)


def test_debugging_shows_the_traceback(tmp_path: Path) -> None:
    done = run_alone("check", tmp_path / "none.json", SUREFOOT_DEBUG="1")
    assert done.returncode not in (0, 2)
    assert "Traceback" in done.stderr
    assert "InputError" in done.stderr


# strangers' text, odd terminals, closed pipes


def test_escape_sequences_never_reach_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07 The door \x1b[2J is \u202eopen\ud800 today. [red]"
    path = request(tmp_path, answer=evil, sources=[{"id": evil, "text": evil, "title": evil}])
    done = run("check", path)
    assert done.returncode == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", done.stdout)
    assert "<U+001B>" in done.stdout
    assert "[red]" in done.stdout
    name = tmp_path / "a\x1b[31m.json"
    done = run("check", name)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


def test_files_that_are_not_utf_8_warn(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(b"Coffee costs 2 euros in the caf\xe9.")
    (tmp_path / "answer.txt").write_text("Coffee costs 2 euros.")
    arguments = ("check", "--answer", tmp_path / "answer.txt", "--source", tmp_path / "old.txt")
    done = run(*arguments)
    assert done.returncode == 0
    assert "warning: " in done.stderr
    assert "old.txt: byte 31 is not UTF-8" in done.stderr
    assert run(*arguments, "--quiet").stderr == ""


def test_an_ascii_locale_is_no_obstacle() -> None:
    done = run_alone("check", EXAMPLES / "news.json", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0
    assert done.stdout.isascii()


@pytest.mark.skipif(os.name == "nt", reason="needs a shell pipe")
def test_a_reader_that_goes_away_changes_nothing(tmp_path: Path) -> None:
    path = request(tmp_path, answer="The door is open today. " * 3_000)
    command = f"'{sys.executable}' -W error -c \"$CODE\" check '{path}'; echo code $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -c 10"],
        capture_output=True,
        text=True,
        env=environment(CODE=START),
        timeout=300,
        check=False,
    )
    assert done.stderr == "code 0\n"
    assert len(done.stdout) == 10


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_a_table_and_no_color_is_honoured(colour: bool) -> None:
    import pty

    parent, child = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="100", **({} if colour else {"NO_COLOR": "1"}))
    process = subprocess.Popen(
        [sys.executable, "-c", START, "check", str(EXAMPLES / "news.json")],
        stdin=child,
        stdout=child,
        stderr=child,
        env=env,
    )
    os.close(child)
    data = b""
    while True:
        try:
            chunk = os.read(parent, 65_536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not chunk:
            break
        data += chunk
    os.close(parent)
    assert process.wait(timeout=60) == 0
    text = data.decode()
    assert "│" in text
    colours = re.findall(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|9[0-7]|38)[;0-9]*m", text)
    assert bool(colours) is colour


# the other commands


def test_help_and_version() -> None:
    done = run("--version")
    assert done.stdout == f"surefoot {surefoot.__version__}\n"
    done = run("--help")
    assert done.returncode == 0
    for command in ("check", "models", "doctor"):
        assert command in done.stdout
    assert "--fail-under" in run("check", "--help").stdout


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys\nfrom surefoot.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'huggingface_hub', 'jinja2', 'bs4', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    assert run_alone(code=code).stderr == "[]\n"


def test_models_are_listed() -> None:
    records = list_models()
    assert records
    for arguments in (("models",), ("models", "list")):
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        for record in records:
            assert re.search(rf"^{record.name} +{record.task} ", done.stdout, re.MULTILINE)
    found = json.loads(run("models", "list", "--json").stdout)
    assert [item["name"] for item in found] == [record.name for record in records]
    assert found[0]["size"] == sum(file.bytes for file in records[0].files)


def test_a_model_is_shown() -> None:
    record = list_models()[0]
    shown = json.loads(run("models", "show", record.name).stdout)
    assert shown["task"] == record.task
    assert shown["files"][0]["sha256"] == record.files[0].sha256
    done = run("models", "show", "nothing")
    assert done.returncode == 2
    assert record.name in error(done)


def test_pulling_what_is_no_hub_name_is_refused() -> None:
    done = run("models", "pull", "../etc")
    assert done.returncode == 2
    error(done)


def test_the_doctor() -> None:
    done = run("doctor")
    assert done.returncode == 0, done.stdout
    assert "self-test   passed" in done.stdout
    assert done.stdout.endswith("everything is in order\n")
    found = json.loads(run("doctor", "--json", "--threads", "1").stdout)
    assert found["ok"] is True
    assert found["threads"] == 1
    assert found["packages"]["onnxruntime"]
    assert [model["name"] for model in found["models"]] == [record.name for record in list_models()]


def test_the_doctor_reports_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_SELF_TEST", (("The museum opens at nine in the morning.", False),))
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    found = doctor.examine(threads=1)
    assert found["ok"] is False
    assert found["problems"][0] == "the package no-such-package is missing"
    assert found["problems"][1].startswith("self-test: ")
    text = doctor_command._doctor_text(found)
    assert "self-test   FAILED" in text
    assert "no-such-package missing" in text


def test_the_doctor_knows_the_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=~!\[; ]", item, maxsplit=1)[0].lower() for item in requirements}

    assert set(doctor.PACKAGES) == names(project["dependencies"])
    for extra, packages in doctor.EXTRAS.items():
        assert set(packages) == names(project["optional-dependencies"][extra])


def test_processors_are_read() -> None:
    intel = [
        "processor\t: 0",
        "model name\t: Intel X",
        "flags\t\t: fpu avx2 avx512f avx512_vnni amx_int8",
        "flags: x",
    ]
    assert features_of(intel) == ("Intel X", ["avx2", "avx512", "avx512-vnni", "amx-int8"])
    arm = ["processor\t: 0", "Features\t: fp asimd asimddp i8mm"]
    assert features_of(arm) == (None, ["neon", "dotprod", "i8mm"])
    assert features_of([]) == (None, [])


def test_a_deadline_leaves_the_rest_for_review_and_says_so() -> None:
    done = run("check", EXAMPLES / "policy.json", "--deadline", "0.001", "--json")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["degraded"] is True
    assert "deadline" in report["reasons"]


def test_another_language_is_for_review_unless_the_model_reads_it(tmp_path: Path) -> None:
    request = {
        "answer": "Die Gebühr wird innerhalb von fünf Tagen auf das Konto zurückgezahlt.",
        "sources": ["Die Gebühr wird innerhalb von fünf Tagen auf das Konto zurückgezahlt."],
    }
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request), encoding="utf-8")
    done = run("check", file, "--json", "--fail-under", "0")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert "language" in report["reasons"]
    assert report["score"] is report["nli_faithfulness"] is None
    assert "language" not in json.loads(run("check", file, "--json", "--multilingual").stdout)["reasons"]


def test_a_download_has_to_be_asked_for() -> None:
    done = run("check", EXAMPLES / "policy.json", "--model", "nobody/no-such-model")
    assert done.returncode == 2
    assert "download" in done.stderr or "pull" in done.stderr
