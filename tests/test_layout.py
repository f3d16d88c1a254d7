"""The shape of the package: import direction, module size, import weight, what must not be in it."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
PACKAGE = SRC / "surefoot"
MAX_LINES = 420
HEAVY = ("numpy", "onnxruntime", "tokenizers", "huggingface_hub", "torch", "transformers")


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def import_nodes(tree: ast.AST, *, deferred: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements that run when the module is imported; with ``deferred``, all of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif deferred or not (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        ):
            yield from import_nodes(node, deferred=deferred)


def imported(name: str, source: str, modules: Mapping[str, object], *, deferred: bool) -> set[str]:
    """The modules of ``modules`` that the module ``name`` with this ``source`` imports."""
    package = name if name in PACKAGES else name.rpartition(".")[0]
    found = set()
    for node in import_nodes(ast.parse(source), deferred=deferred):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            base = node.module or ""
            if node.level:
                anchor = package.split(".")
                anchor = anchor[: len(anchor) - node.level + 1]
                base = ".".join([*anchor, *([node.module] if node.module else [])])
            # `from package import name` means the submodule of that name, where there is one.
            targets = [f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base for a in node.names]
        found.update(target for target in targets if target in modules)
    return found - {name}


PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def import_graph(*, deferred: bool) -> dict[str, set[str]]:
    """Which module imports which. What the package itself hands out lazily is no dependency of it."""
    return {
        name: imported(
            name, path.read_text(encoding="utf-8"), MODULES, deferred=deferred and name != "surefoot"
        )
        for name, path in MODULES.items()
    }


def find_cycle(graph: Mapping[str, set[str]]) -> list[str] | None:
    """A cycle as the list of its nodes, first one repeated at the end, or ``None``."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str] | None:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return None
        for target in sorted(graph.get(node, ())):
            cycle = visit(target, [*path, node])
            if cycle:
                return cycle
        done.add(node)
        return None

    return next((cycle for node in sorted(graph) if (cycle := visit(node, []))), None)


def test_the_walker_sees_what_it_must() -> None:
    modules = dict.fromkeys(("surefoot", "surefoot.a", "surefoot.b", "surefoot.c", "surefoot.d"))
    source = (
        "from typing import TYPE_CHECKING\nfrom surefoot.b import x\n"
        "if TYPE_CHECKING:\n    from surefoot import c\n"
        "def f():\n    import surefoot.d\n"
    )
    assert imported("surefoot.a", source, modules, deferred=False) == {"surefoot.b"}
    assert imported("surefoot.a", source, modules, deferred=True) == {
        "surefoot.b",
        "surefoot.c",
        "surefoot.d",
    }
    assert imported("surefoot.a", "from . import b, nothing", modules, deferred=False) == {
        "surefoot",
        "surefoot.b",
    }
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


@pytest.mark.parametrize("deferred", [False, True], ids=["at-import", "inside-functions-too"])
def test_imports_go_one_way(deferred: bool) -> None:
    cycle = find_cycle(import_graph(deferred=deferred))
    assert cycle is None, " -> ".join(cycle)


def test_the_records_depend_on_nothing_heavier() -> None:
    graph = import_graph(deferred=True)
    assert graph["surefoot.errors"] == set()
    assert graph["surefoot.schema"] <= {"surefoot.errors"}


@pytest.mark.parametrize("name", MODULES)
def test_modules_stay_small(name: str) -> None:
    lines = len(MODULES[name].read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{name} has {lines} lines: split it"


def loaded_by(statement: str) -> set[str]:
    """Top-level names of the modules in ``sys.modules`` after ``statement`` in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["surefoot", "surefoot.schema", "surefoot.errors", "surefoot.cli"])
def test_importing_is_light(module: str) -> None:
    if module not in MODULES:
        pytest.skip(f"no {module} yet")
    loaded = loaded_by(f"import {module}")
    assert "surefoot" in loaded
    assert not loaded.intersection(HEAVY)


def calls_and_imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, what) of everything in a module that the package does not do."""
    modules = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"print", "eval", "exec"}
        ):
            yield node.lineno, f"{node.func.id}()"
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if a.name.partition(".")[0] in modules)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in modules:
            yield node.lineno, str(node.module)
        elif isinstance(node, ast.keyword) and node.arg in {"trust_remote_code", "allow_pickle", "shell"}:
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield node.value.lineno, f"{node.arg}=..."
        elif isinstance(node, ast.Assert):
            yield node.lineno, "assert"


@pytest.mark.parametrize("name", MODULES)
def test_the_package_does_nothing_forbidden(name: str) -> None:
    assert list(calls_and_imports(MODULES[name])) == []


def test_the_search_for_the_forbidden_finds_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "import pickle.x\nfrom joblib import load\nprint(1)\nload(m, trust_remote_code=True)\nassert 1\n"
    )
    found = [what for _, what in sorted(calls_and_imports(path))]
    assert found == ["pickle.x", "joblib", "print()", "trust_remote_code=...", "assert"]


# A path on somebody's machine, a note to oneself, a secret.
FORBIDDEN_TEXT = re.compile(
    r"(?<![\w.:/~$}])/(?:home|root|Users|work|workspace|mnt|srv|tmp)/[\w.-]"
    r"|\b(?:TODO|FIXME|XXX)\b"
    r"|BEGIN [A-Z ]{0,20}PRIVATE KEY|\bsk-[A-Za-z0-9]{20}|\bhf_[A-Za-z0-9]{20}"
)
SHIPPED_FOLDERS = ("src", "docs", "examples", "benchmarks", "training", "scripts", ".ci", "tests")
SHIPPED_SUFFIXES = {
    "",
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".json",
    ".jsonl",
    ".html",
    ".yaml",
    ".yml",
    ".css",
    ".js",
}
MAX_TEXT_BYTES = 5_000_000


def shipped_files() -> Iterator[Path]:
    for path in ROOT.iterdir():  # .git is a file in a worktree
        if path.is_file() and path.suffix in SHIPPED_SUFFIXES and path.name != ".git":
            yield path
    for folder in SHIPPED_FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in SHIPPED_SUFFIXES and "__pycache__" not in path.parts:
                yield path


def test_no_file_names_a_machine_or_a_loose_end() -> None:
    found = []
    files = 0
    for path in sorted(shipped_files()):
        if path == Path(__file__).resolve() or path.stat().st_size > MAX_TEXT_BYTES:
            continue
        files += 1
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a fixture that is broken on purpose, or not text at all
        for match in FORBIDDEN_TEXT.finditer(text):
            found.append(
                f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
            )
    assert files > 20
    assert found == []


@pytest.mark.parametrize("text", ["see /home/me/x", "open('/tmp/a')", "# TODO later"])
def test_forbidden_text_is_found(text: str) -> None:
    assert FORBIDDEN_TEXT.search(text)


@pytest.mark.parametrize(
    "text", ["/usr/bin/env", "https://a.example/home/x", "$HOME/tmp/x", "./tmp/a", "a/tmp/b"]
)
def test_innocent_text_is_not(text: str) -> None:
    assert not FORBIDDEN_TEXT.search(text)


def test_constraints_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    for pin in pins:
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}==[A-Za-z0-9.!+]{1,40}", pin), pin


def test_the_network_is_off() -> None:
    with pytest.raises(RuntimeError, match="without network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(RuntimeError, match="without network"):
        socket.getaddrinfo("example.org", 443)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        with socket.create_connection(server.getsockname(), timeout=5):
            pass
