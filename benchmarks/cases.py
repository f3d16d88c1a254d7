"""Short inputs with known verdicts: how many come out right, by kind, for each model and two trivial rules.

    python -m benchmarks.cases FILE [FILE ...] [--model NAME] [--json FILE] [--show]

A file has one JSON record a line: ``id``, ``kind``, ``sources`` (list of texts), ``answer``, optionally
``question``, and ``expect``: the verdict of each claim in order, joined by ``-``. S is supported, X is
contradicted and U unsupported (either way it must be rejected), N is not checkable. Headings and lead-ins
that are not checkable need not be listed.

A case is right if every verdict is. It is a false pass if a claim that must be rejected is supported, and a
false strip if a supported claim is rejected or nothing is checkable. Whatever else goes wrong counts as open:
left for review, checked though there is nothing to check, or cut into another number of claims.

The rules: everything is supported; a claim is supported if every word of it with four letters or more, or
with a digit, stands in the sources. They read no list, table or sentence: each line is one claim.
The command reports and exits with 0 whatever the figures are.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot import Verifier
from surefoot.models.manifest import list_models
from surefoot.schema import Verdict

__all__ = ["Checker", "load", "main", "measure", "outcome"]

Checker = Callable[[Mapping[str, Any]], str]
"""A case -> its verdicts as letters, one a claim; R stands for review."""

OUTCOMES = ("right", "false_pass", "false_strip", "open")
_LETTERS = {
    Verdict.SUPPORTED: "S",
    Verdict.CONTRADICTED: "X",
    Verdict.UNSUPPORTED: "U",
    Verdict.REVIEW: "R",
    Verdict.NOT_CHECKABLE: "N",
}
_WORD = re.compile(r"[a-z]{4,}|[a-z]*\d[\d.,]*\d|\d")


def load(path: Path) -> list[dict[str, Any]]:
    """The cases of a file.

    Raises:
        ValueError: a line lacks a field, or expects a verdict that does not exist; the message names it.
    """
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            case = json.loads(line)
            missing = {"id", "kind", "sources", "answer", "expect"} - case.keys()
            if missing or not re.fullmatch(r"[SXUN](-[SXUN])*", case["expect"]):
                raise ValueError(f"{path}:{number}: missing {sorted(missing)} or a wrong 'expect'")
            cases.append(case)
    return cases


def outcome(expect: str, found: str) -> str:
    """Which of :data:`OUTCOMES` the verdicts ``found`` are where ``expect`` were right."""
    wanted = expect.replace("-", "")
    if set(wanted) != {"N"}:  # headings and lead-ins are not listed
        wanted, found = wanted.replace("N", ""), found.replace("N", "")
    if not found:
        return "false_strip" if "S" in wanted else "open"
    if len(wanted) != len(found):
        return "right" if set(wanted) == set(found) == {"N"} else "open"
    pairs = set(zip(wanted.replace("U", "X"), found.replace("U", "X"), strict=True))
    if ("X", "S") in pairs:
        return "false_pass"
    if ("S", "X") in pairs:
        return "false_strip"
    return "right" if all(want == got for want, got in pairs) else "open"


def with_model(name: str | None, threads: int | None = None) -> Checker:
    """surefoot with a model."""
    verifier = Verifier(name, threads=threads)

    def check(case: Mapping[str, Any]) -> str:
        report = verifier.verify(case["answer"], case["sources"], question=case.get("question"))
        return "".join(_LETTERS[claim.verdict] for claim in report.claims)

    return check


def all_supported(case: Mapping[str, Any]) -> str:
    """The rule that everything is supported."""
    return "S" * len(case["expect"].split("-"))


def unseen_words(case: Mapping[str, Any]) -> str:
    """The rule that a claim needs no word that the sources lack."""
    seen = set(_WORD.findall(" ".join(case["sources"]).lower()))
    count = len(case["expect"].split("-"))
    lines = [case["answer"]] if count == 1 else case["answer"].splitlines()[-count:]
    return "".join("S" if seen.issuperset(_WORD.findall(line.lower())) else "U" for line in lines)


def measure(cases: Sequence[Mapping[str, Any]], check: Checker) -> list[tuple[str, str]]:
    """For each case the verdicts, and which of :data:`OUTCOMES` they are."""
    said = [check(case) for case in cases]
    return [(letters, outcome(case["expect"], letters)) for case, letters in zip(cases, said, strict=True)]


def _table(cases: Sequence[Mapping[str, Any]], found: Mapping[str, Sequence[tuple[str, str]]]) -> list[str]:
    """One line a kind; in each system's column right / false pass / false strip / open."""
    kinds = [*dict.fromkeys(case["kind"] for case in cases), "all"]
    width = max(map(len, kinds))
    lines = [f"{'':{width}}  cases  " + "  ".join(f"{name:>16}" for name in found)]
    for kind in kinds:
        places = [place for place, case in enumerate(cases) if kind in (case["kind"], "all")]
        cells = []
        for results in found.values():
            counts = Counter(results[place][1] for place in places)
            cells.append(" / ".join(f"{counts[name]:2}" for name in OUTCOMES).rjust(16))
        lines.append(f"{kind:{width}}  {len(places):5}  " + "  ".join(cells))
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for all files together; with ``--show`` also every case that is not right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--model", action="append", help="may be repeated; by default every bundled model")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there")
    parser.add_argument("--show", action="store_true", help="list the cases that are not right")
    options = parser.parse_args(arguments)
    cases = [case for path in options.files for case in load(path)]
    names = options.model or [record.name for record in list_models() if record.task == "nli"]
    systems = {"all supported": all_supported, "unseen words": unseen_words}
    systems |= {Path(name).name: with_model(name, options.threads) for name in names}
    found, seconds = {}, {}
    for name, check in systems.items():
        begun = time.perf_counter()
        found[name] = measure(cases, check)
        seconds[name] = round(time.perf_counter() - begun, 2)
    print("right / false pass / false strip / open")
    print("\n".join(_table(cases, found)))
    print("seconds: " + ", ".join(f"{name} {spent}" for name, spent in seconds.items()))
    for name in names if options.show else ():
        print(f"\nnot right with {name}:")
        for case, (letters, what) in zip(cases, found[Path(name).name], strict=True):
            if what != "right":
                answer = case["answer"].replace("\n", " / ")
                print(f"  {case['id']}: {what}, {case['expect']} expected, {letters} found: {answer}")
    if options.json:
        rows = [
            {"id": case["id"], "kind": case["kind"], "expect": case["expect"]}
            | {
                name: dict(zip(("found", "outcome"), results[place], strict=True))
                for name, results in found.items()
            }
            for place, case in enumerate(cases)
        ]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
