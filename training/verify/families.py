"""Hand-written families of statements: one passage, and what follows from it, contradicts it, or is left
open.

Names, places, years and numbers are drawn anew for every copy, so that only the structure can be learnt. A
fifth of the families is held out: how a network does on those says whether it has learnt the structure or the
sentences.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from training.verify.pairs import Pair

__all__ = ["LABEL_OF", "family_pairs", "read_families"]

LABEL_OF: Final = {"supported": "entailment", "contradicted": "contradiction", "open": "neutral"}

_FIRST: Final = (
    "Mara Jonas Lea Omar Priya Tomas Grace Wei Nadia Carl Ines Samuel Aisha Victor Elena Hugo Yuki "
    "Marta Dev Rosa Felix Amina Oscar Petra Liam Zoe Karim Anton Bella Diego Freya Goran Helen Ivan "
    "Julia Kofi Lucia Miguel Nora Pavel"
).split()
_LAST: Final = (
    "Duarte Reis Adler Holt Wirth Stein Okafor Hale Lind Moreau Tanaka Novak Silva Brandt Costa Iyer "
    "Farah Keller Marsh Quinn Rossi Sato Turner Unger Vance Weber Young Zhang Abbott Bauer Cohen Dahl "
    "Eriksen Fuchs Garcia Hansen"
).split()
_CITY: Final = (
    "Lisbon Turin Oslo Bergen Leeds Porto Ghent Malmo Graz Lyon Bilbao Riga Krakow Split Cork Aarhus "
    "Bremen Nantes Toledo Verona Perth Quito Kyoto Austin Halifax Tampere Basel Izmir Lagos Pune"
).split()
_LAND: Final = (
    "Norway Chile Kenya Poland Japan Canada Ghana Greece Peru Latvia Ireland Nepal Malta Finland".split()
)
_FIRM: Final = (
    "Alder Works|Borealis|Corvane|Delmont Brothers|Eastgate|Ferrum|Glenfield Group|Harrow and Pike|"
    "Ilex|Juniper Labs|Kestrel|Larkspur|Meridian Foods|Northway|Ostara|Pinecrest|Quarrystone|Ravel|"
    "Stellmar|Tideline|Umbra|Vantor"
).split("|")
_MONTH: Final = (
    "January February March April May June July August September October November December".split()
)
_DAY: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_SMALL: Final = "two three four five six seven eight nine ten".split()


def read_families(*, held_out: bool) -> list[dict[str, Any]]:
    """The families to train on, or the fifth that is held out, by their passages."""
    lines = Path(__file__).with_name("families.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if (zlib.crc32(row["passage"].encode()) % 5 == 0) == held_out]


def family_pairs(*, held_out: bool, copies: int, seed: int) -> Iterator[list[Pair]]:
    """Copies of every family; pairs of one copy are twins."""
    for number, family in enumerate(read_families(held_out=held_out)):
        for copy in range(copies):
            rng = random.Random(f"{seed}:{number}:{copy}:{family['passage']}")
            values = _drawn(rng)
            passage = _filled(family["passage"], values)
            found = [
                Pair(passage, _filled(claim, values), LABEL_OF[kind], "families", family["kind"])
                for kind in LABEL_OF
                for claim in family[kind]
            ]
            yield [replace(pair, twin=f"{number}.{copy}.{seed}") for pair in found]


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], text)


def _drawn(rng: random.Random) -> dict[str, str]:
    first, last = rng.sample(_FIRST, 6), rng.sample(_LAST, 6)
    years = sorted(rng.sample(range(1952, 2025), 3))
    numbers = rng.sample(range(3, 90), 4)
    months = sorted(rng.sample(range(12), 2))
    values = {f"P{k + 1}": f"{first[k]} {last[k]}" for k in range(3)}
    values |= {f"F{k + 1}": first[3 + k] for k in range(3)} | {f"L{k + 1}": last[3 + k] for k in range(3)}
    values |= {f"O{k + 1}": name for k, name in enumerate(rng.sample(_FIRM, 3))}
    values |= {f"C{k + 1}": name for k, name in enumerate(rng.sample(_CITY, 3))}
    values |= {f"G{k + 1}": name for k, name in enumerate(rng.sample(_LAND, 3))}
    values |= {f"Y{k + 1}": str(year) for k, year in enumerate(years)}
    values |= {f"N{k + 1}": str(number) for k, number in enumerate(numbers)} | {
        "N5": str(max(numbers) + rng.randint(5, 40))
    }
    values |= {f"M{k + 1}": _MONTH[month] for k, month in enumerate(months)}
    values |= {"D1": rng.choice(_DAY), "S1": rng.choice(_SMALL)}
    return values
