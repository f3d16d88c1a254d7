"""Runs what README.md and docs/*.md show, and compares what they say it prints.

The convention is in CONTRIBUTING.md, under "Tests".
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

import surefoot
from surefoot.schema import CitationStatus, ClaimKind, Reason, RiskLevel, Verdict

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*DOCUMENTS, *sorted((ROOT / "docs").glob("*/*.md"))]
PAGES += [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "training/README.md")]
TOLERANCE = 0.02  # of numbers with a decimal point: processors differ in the last bits
TIMEOUT = 300
DISPLAY = {"COLUMNS": "100", "LINES": "60", "NO_COLOR": "1", "TERM": "dumb"}

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_DURATION = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?\s?(?:ms|s|sec|seconds?)\b")
_DECIMAL = re.compile(r"(?<![\w.])-?\d{1,9}\.\d{1,17}(?![\d.])")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line where the text starts, and the comment above it."""

    language: str
    text: str
    line: int
    comment: str = ""

    @property
    def left_out(self) -> bool:
        return self.comment.startswith("not run:")

    @property
    def is_output(self) -> bool:
        return self.language == "text" and self.comment == "output"


def read_blocks(markdown: str) -> list[Block]:
    blocks = []
    comment = ""
    for token in _MARKDOWN.parse(markdown):
        if token.type == "html_block":
            match = re.fullmatch(r"<!--\s*(.{1,200}?)\s*-->", token.content.strip())
            comment = match.group(1) if match else ""
        elif token.type == "fence":
            assert token.map is not None
            blocks.append(Block(token.info.strip(), token.content, token.map[0] + 2, comment))
            comment = ""
        elif token.type.endswith("_open") or token.type == "inline":
            comment = ""
    return blocks


def same_line(expected: str, actual: str) -> bool:
    expected, actual = (_DURATION.sub("<time>", line).rstrip() for line in (expected, actual))
    if _DECIMAL.sub("#", expected) != _DECIMAL.sub("#", actual):
        return False
    pairs = zip(_DECIMAL.findall(expected), _DECIMAL.findall(actual), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)


def same(expected: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether the lines agree; an expected line ``...`` stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(same(expected[1:], actual[skip:]) for skip in range(len(actual) + 1))
    return bool(actual) and same_line(expected[0], actual[0]) and same(expected[1:], actual[1:])


def lines_of(text: str) -> list[str]:
    return text.strip("\n").splitlines()


def check_output(expected: str, actual: str, place: str) -> None:
    if not same(lines_of(expected), lines_of(actual)):
        pytest.fail(f"{place} shows\n{expected}\nbut this was printed:\n{actual}", pytrace=False)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds the examples, as the working directory of what the documents run."""
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    for name, value in DISPLAY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


def run_python(blocks: Sequence[Block], name: str) -> int:
    """Run the Python blocks of one document and compare; the number of outputs that were compared."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    compared = 0
    for block in blocks:
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.text, name, "exec", dont_inherit=True)
            if not block.left_out:
                with contextlib.redirect_stdout(printed):
                    exec(code, namespace)
        elif block.is_output:
            check_output(block.text, printed.getvalue(), f"{name}:{block.line}")
            printed = io.StringIO()
            compared += 1
    return compared


def run_command(command: str, folder: Path) -> tuple[str, int]:
    """What ``surefoot ...`` prints, on both streams in order, and its exit code."""
    words = shlex.split(command)
    script = Path(sys.executable).with_name("surefoot")
    if script.exists():
        program = [str(script)]
    else:
        start = "import sys; from surefoot.cli import app; sys.argv[0] = 'surefoot'; app()"
        program = [sys.executable, "-c", start]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*program, *words[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )
    return done.stdout, done.returncode


def sessions(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what is shown below it."""
    commands: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            if commands[-1][0].endswith("\\"):
                commands[-1] = (commands[-1][0][:-1] + line.strip(), [])
            else:
                commands[-1][1].append(line)
    return [(command, "\n".join(shown)) for command, shown in commands]


def run_console(blocks: Sequence[Block], name: str, folder: Path) -> int:
    """Run the ``surefoot`` commands of one document and compare; the number of commands run."""
    run = 0
    status = 0
    for block in blocks:
        if block.language != "console" or block.left_out:
            continue
        for command, shown in sessions(block.text):
            place = f"{name}:{block.line}: $ {command}"
            if command == "echo $?":
                check_output(shown, str(status), place)
            elif command.partition(" ")[0] == "surefoot":
                printed, status = run_command(command, folder)
                check_output(shown, printed, place)
                run += 1
    return run


def of(path: Path) -> tuple[list[Block], str]:
    return read_blocks(path.read_text(encoding="utf-8")), str(path.relative_to(ROOT))


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def runs_python(path: Path) -> bool:
    return any(block.language == "python" and not block.left_out for block in of(path)[0])


def runs_commands(path: Path) -> bool:
    return any(
        block.language == "console" and not block.left_out and "$ surefoot" in block.text
        for block in of(path)[0]
    )


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if runs_python(path)], ids=ids)
def test_python_prints_what_is_shown(path: Path, workspace: Path) -> None:
    blocks, name = of(path)
    assert run_python(blocks, name) == sum(block.is_output for block in blocks)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if runs_commands(path)], ids=ids)
def test_commands_print_what_is_shown(path: Path, workspace: Path) -> None:
    blocks, name = of(path)
    assert run_console(blocks, name, workspace) > 0


def test_the_readme_shows_both_ways_of_use() -> None:
    blocks, _ = of(ROOT / "README.md")
    assert any(block.is_output for block in blocks)
    assert runs_commands(ROOT / "README.md")


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_blocks_are_of_known_kinds(path: Path) -> None:
    blocks, name = of(path)
    for block in blocks:
        place = f"{name}:{block.line}"
        assert block.language in {"python", "console", "text", "bash", "sh", "json", "toml", "html"}, place
        if block.language == "json" and not block.left_out:
            json.loads(block.text)
        if block.comment == "output":
            assert block.language == "text", place


def anchors(markdown: str) -> set[str]:
    """The anchors that the usual hosts give to the headings."""
    tokens = _MARKDOWN.parse(markdown)
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_links_lead_somewhere(path: Path) -> None:
    missing = []
    for token in _MARKDOWN.parse(path.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = str(child.attrGet("href") or child.attrGet("src") or "")
            if not target or re.match(r"[a-z][a-z0-9+.-]{0,20}:", target):
                continue
            file, _, anchor = target.partition("#")
            linked = path.parent / file if file else path
            if not linked.exists() or (anchor and anchor not in anchors(linked.read_text(encoding="utf-8"))):
                missing.append(target)
    assert missing == []


@pytest.mark.parametrize(
    "codes", [Verdict, Reason, CitationStatus, RiskLevel, ClaimKind], ids=lambda c: c.__name__
)
def test_every_code_is_explained(codes: type[Verdict]) -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert [code.value for code in codes if f"`{code.value}`" not in text] == []


def test_every_page_is_in_the_menu_of_the_site() -> None:
    def files(entry: Any) -> list[str]:
        parts = entry.values() if isinstance(entry, dict) else entry
        return [entry] if isinstance(entry, str) else [file for part in parts for file in files(part)]

    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(files(menu)) == sorted(str(path.relative_to(ROOT)) for path in PAGES)


def test_every_public_name_is_in_the_api_reference() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    assert "surefoot.errors" in shown
    names = set(surefoot.__all__) - set(surefoot.errors.__all__) - {"__version__"}
    assert {f"surefoot.{name}" for name in names} <= shown


# --- the checker itself ---------------------------------------------------------------------------


DOCUMENT = """
```python
x = 1.5
print("score", x)
```

<!-- output -->
```text
score 1.51
```

<!-- not run: needs a network -->
```python
raise RuntimeError
```
"""


def test_blocks_are_read_with_their_comments() -> None:
    first, output, left_out = read_blocks(DOCUMENT)
    assert first == Block("python", 'x = 1.5\nprint("score", x)\n', 3)
    assert output.is_output
    assert left_out.left_out
    assert run_python([first, output, left_out], "x.md") == 1


def test_wrong_output_and_broken_code_are_found() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"x\.md:9 shows"):
        run_python(read_blocks(DOCUMENT.replace("1.51", "1.53")), "x.md")
    with pytest.raises(SyntaxError):
        run_python(read_blocks(DOCUMENT.replace("raise RuntimeError", "raise (")), "x.md")
    with pytest.raises(NameError):
        run_python(read_blocks(DOCUMENT.replace("x = 1.5", "")), "x.md")


@pytest.mark.parametrize(
    ("expected", "actual", "agree"),
    [
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...", "a", True),
        ("...\nc", "a\nb\nc", True),
        ("a\n...\nd", "a\nb\nc", False),
        ("took 12 ms", "took 1.5 s", True),
        ("12 claims", "13 claims", False),
        ("p 0.98 q 0.10", "p 0.97 q 0.11", True),
        ("p 0.98", "p 0.90", False),
        ("v 0.1.0", "v 0.1.1", False),
        ("a  \n", "a", True),
        ("a", "a\nb", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_what_counts_as_the_same_output(expected: str, actual: str, agree: bool) -> None:
    assert same(lines_of(expected), lines_of(actual)) is agree


def test_console_sessions_are_split() -> None:
    text = "$ surefoot check \\\n    a.json\none\n\ntwo\n$ echo $?\n1\n"
    assert sessions(text) == [("surefoot check a.json", "one\n\ntwo"), ("echo $?", "1")]
