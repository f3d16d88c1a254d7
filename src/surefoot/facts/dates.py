"""Dates and clock times: finding them in text, and comparing partial ones.

Formats: ISO 8601 calendar dates, day-month-year and month-day-year in words, the ambiguous
slashed form (both readings are kept), months, quarters, decades, centuries, spans of years,
weekdays and clock times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from surefoot.facts.records import DateValue, Fact
from surefoot.facts.words import word_list

__all__ = ["compare_dates", "find_dates"]

_MONTHS = word_list("january february march april may june july august september october november december")
_MONTH_OF = {name: i + 1 for i, name in enumerate(_MONTHS)} | {
    name[:3]: i + 1 for i, name in enumerate(_MONTHS)
}
_MONTH_OF["sept"] = 9
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = (
    r"(?P<mon>January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?"
)
_ORDER = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "final": 4,
}
_CENTURY_WORD = {
    "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20,
    "twenty-first": 21,
}  # fmt: skip

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("iso", re.compile(r"(?<![\d-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\d-])")),
    ("slash", re.compile(r"(?<![\d/.])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d{4}|\d{2})(?![\d/])")),
    (
        "dmy",
        re.compile(
            r"(?<![\w.,/])(?:(?P<d0>\d{1,2})\s?(?:[-–]|to|and)\s?)?(?P<d>\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?\s"
            + _MONTH
            + r"(?:\s?,?\s?(?P<y>\d{4})(?!\d))?"
        ),
    ),
    (
        "mdy",
        re.compile(
            r"(?<!\w)" + _MONTH + r"\s(?P<d0>\d{1,2})(?:st|nd|rd|th)?(?:\s?[-–]\s?(?P<d>\d{1,2}))?"
            r"(?![\d%:]|,\d{3}(?!\d))(?:\s?,?\s?(?P<y>\d{4})(?!\d))?"
        ),
    ),
    ("my", re.compile(r"(?<!\w)" + _MONTH + r"(?:\s+of|\s?,)?\s?(?P<y>\d{4})(?!\d)")),
    (
        "month",
        re.compile(
            r"(?<!\w)(?:[Ii]n|[Ss]ince|[Uu]ntil|[Bb]y|[Dd]uring|[Ee]arly|[Ll]ate|[Mm]id|[Ll]ast|[Nn]ext|[Tt]his"
            r"|of|from|to|and|every|each|through|before|after|-)[\s-]{1,2}(?P<at>" + _MONTH + ")"
        ),
    ),
    (
        "quarter",
        re.compile(
            r"(?<!\w)(?:Q(?P<q>[1-4])|(?P<qw>first|second|third|fourth|final|1st|2nd|3rd|4th)[\s-]quarter)\b"
            r"(?:(?:\s+of)?(?:\s+fiscal(?:\s+year)?)?\s?(?:FY)?\s?(?P<y>\d{4})(?!\d))?"
        ),
    ),
    ("decade", re.compile(r"(?<![\w.,])(?P<y>(?:1[0-9]|20)\d0)['’]?s(?!\w)")),
    ("decade2", re.compile(r"(?<!\w)['’](?P<y>\d0)['’]?s(?!\w)")),
    (
        "century",
        re.compile(
            r"(?<!\w)(?:(?P<n>\d{1,2})(?:st|nd|rd|th)|(?P<w>fifteenth|sixteenth|seventeenth|eighteenth"
            r"|nineteenth|twentieth|twenty-first))[\s-]century\b"
        ),
    ),
    (
        "years",
        re.compile(
            r"(?<![\w.,$€£/-])(?P<y>1[1-9]\d\d|20\d\d)\s?[-–/]{1,2}\s?(?P<z>1[1-9]\d\d|20\d\d|\d\d)(?![\w%]|[.,]\d)"
        ),
    ),
    ("year", re.compile(r"(?<![\w.,$€£¥₹/-])(?P<fy>FY\s?)?(?P<y>1[1-9]\d\d|20\d\d)(?![\w%/]|[.,]\d|-\d)")),
    ("weekday", re.compile(r"(?<!\w)(?P<w>Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)s?\b")),
    (
        "ampm",
        re.compile(
            r"(?<![\w.,:])(?P<h>\d{1,2})(?:[:.](?P<m>\d{2}))?\s?(?P<p>[AaPp])(?:\.\s?[Mm]\.|[Mm](?!\w))"
        ),
    ),
    ("clock", re.compile(r"(?<![\w.,:])(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::[0-5]\d)?(?![\w:%]|[.,]\d)")),
    ("noon", re.compile(r"(?<![\w-])(?P<w>noon|midnight)(?!\w)")),
)

_YEAR_CUE = re.compile(
    r"(?:\b(?:in|since|from|until|till|by|during|after|before|through|throughout|year|years|early|late|mid|around"
    r"|circa|c\.|for|and|or|to|of|fiscal|spring|summer|autumn|fall|winter|the|election|born|b\.|season"
    r"|between|January|February|March|April|May|June|July|August|September|October|November|December)"
    r"|[(,;–—-]|^)[\s-]*$",
    re.IGNORECASE,
)
_WEAK_CUE = re.compile(
    r"\b(?:of|to|the|for|and|or|around|after|from|by|,|between)[\s-]*$|^\s*$", re.IGNORECASE
)
_COUNTED = re.compile(r"[\s-](?:[a-z]{1,20}[\s-])?(?:people|men|women|children|[a-z]{3,24}s)\b")
_UNIT_NEXT = re.compile(
    r"\s?[-]?\s?(?:%|percent|per cent|dollars|euros|pounds|km|miles|kg|mg|g|m|ft|feet|acres|MW|GW|million"
    r"|billion|metres|meters|votes|hours|days|people|calories|words|copies|points)\b"
)
_COMPARATOR = re.compile(
    r"\b(?P<c>before|prior to|after|following|since|until|till|by|no later than|not later than)"
    r"(?:\s+(?:the|early|late|mid|end of|start of))?\s*$",
    re.IGNORECASE,
)
_COMPARATOR_OF = {
    "before": "before", "prior to": "before", "after": "after", "following": "after", "since": "since",
    "until": "until", "till": "until", "by": "until", "no later than": "until", "not later than": "until",
}  # fmt: skip


def _day_month(day: int, month: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def _full_year(year: int) -> int:
    return year if year >= 100 else (2000 + year if year < 50 else 1900 + year)


def _read(name: str, m: re.Match[str]) -> tuple[DateValue, ...]:
    group = m.groupdict()
    year = group.get("y")
    years = (int(year), int(year)) if year else None
    if name == "iso":
        if not _day_month(int(group["d"]), int(group["m"])):
            return ()
        month, day = int(group["m"]), int(group["d"])
        return (DateValue(years, (month, month), (day, day)),)
    if name == "slash":
        a, b, full = int(group["a"]), int(group["b"]), _full_year(int(group["y"]))
        pairs = dict.fromkeys([(a, b), (b, a)])
        return tuple(
            DateValue((full, full), (month, month), (day, day))
            for day, month in pairs
            if _day_month(day, month)
        )
    if name in ("dmy", "mdy", "my", "month"):
        month = _MONTH_OF[group["mon"].lower()]
        days: tuple[int, int] | None = None
        if group.get("d") or group.get("d0"):
            last = int(group["d"] or group["d0"])
            first = int(group["d0"] or last)
            if not (1 <= first <= last <= 31):
                return ()
            days = (first, last)
        return (DateValue(years, (month, month), days),)
    if name == "quarter":
        q = int(group["q"]) if group["q"] else _ORDER[group["qw"]]
        return (DateValue(years, (3 * q - 2, 3 * q)),)
    if name == "decade":
        first = int(group["y"])
        return (DateValue((first, first + (99 if first % 100 == 0 and first < 2000 else 9))),)
    if name == "decade2":
        first = _full_year(int(group["y"]))
        return (DateValue((first, first + 9)),)
    if name == "century":
        n = int(group["n"]) if group["n"] else _CENTURY_WORD[group["w"]]
        return (DateValue((100 * n - 100, 100 * n)),)
    if name == "years":
        first = int(group["y"])
        last = int(group["z"]) if len(group["z"]) == 4 else first // 100 * 100 + int(group["z"])
        return (DateValue((first, last)),) if last >= first else ()
    if name == "weekday":
        return (DateValue(weekday=_WEEKDAYS.index(group["w"].lower())),)
    if name == "ampm":
        hour, minute = int(group["h"]), int(group["m"] or 0)
        if not 1 <= hour <= 12 or minute > 59:
            return ()
        return (DateValue(minutes=(hour % 12 * 60 + minute + (720 if group["p"].lower() == "p" else 0),)),)
    if name == "clock":
        minute = int(group["h"]) * 60 + int(group["m"])
        # Without a.m. or p.m. "9:00" may be the evening; "09:00" and "14:00" are 24-hour notation.
        two = int(group["h"]) in range(1, 13) and not group["h"].startswith("0")
        return (DateValue(minutes=(minute, (minute + 720) % 1440) if two else (minute,)),)
    if name == "noon":
        return (DateValue(minutes=(720,) if group["w"] == "noon" else (0,)),)
    return (DateValue(years),)


def _is_year(text: str, start: int, end: int) -> bool:
    """Whether the four digits at [start, end) are a year and not a count."""
    head = text[max(0, start - 14) : start]
    tail = text[end : end + 48]
    if _UNIT_NEXT.match(tail):
        return False
    if not _YEAR_CUE.search(head):
        return not _COUNTED.match(tail)
    return not (_WEAK_CUE.search(head) and _COUNTED.match(tail))


def find_dates(text: str) -> Iterator[Fact]:
    """Dates and times in ``text``; earlier patterns win where two overlap. In no particular order."""
    taken: set[int] = set()
    digits = any(c.isdigit() for c in text)
    for name, pattern in _PATTERNS:
        if not digits and name not in ("month", "quarter", "weekday", "noon", "century"):
            continue
        for match in pattern.finditer(text):
            group = "at" if name == "month" else 0
            start, end = match.span(group)
            if start in taken or end - 1 in taken:
                continue
            if name == "year" and not _is_year(text, start, end):
                continue
            if name == "years" and len(match["z"]) == 2 and int(match["z"]) <= int(match["y"]) % 100:
                continue
            values = _read(name, match)
            if not values:
                continue
            while text[end - 1].isspace():
                end -= 1
            taken.update(range(start, end))
            cue = _COMPARATOR.search(text[max(0, start - 28) : start])
            comparator = _COMPARATOR_OF[cue["c"].lower()] if cue else "="
            kind = "time" if values[0].minutes else "date"
            yield Fact(
                kind,
                text[start:end],
                start,
                end,
                comparator=comparator,
                dimension=kind,
                unit=name,
                dates=values,
            )


def _overlap(a: tuple[int, int] | None, b: tuple[int, int] | None) -> str:
    """``same`` (b inside a), ``loose`` (one is missing, or b is wider), or ``different``."""
    if a is None:
        return "same"
    if b is None:
        return "loose"
    if a[0] <= b[0] and b[1] <= a[1]:
        return "same"
    return "different" if b[1] < a[0] or a[1] < b[0] else "loose"


def _compare_one(claim: DateValue, evidence: DateValue) -> str:
    if claim.minutes or evidence.minutes:
        if not (claim.minutes and evidence.minutes):
            return "unrelated"
        return "same" if set(claim.minutes) & set(evidence.minutes) else "different"
    if claim.weekday is not None or evidence.weekday is not None:
        if claim.weekday is None or evidence.weekday is None:
            return "unrelated"
        return "same" if claim.weekday == evidence.weekday else "different"
    parts = [
        (claim.years, evidence.years),
        (claim.months, evidence.months),
        (claim.days, evidence.days),
    ]
    if not any(a is not None and b is not None for a, b in parts):
        return "unrelated"
    results = [_overlap(a, b) for a, b in parts]
    if "different" in results:
        # A different day only matters inside the same month, and a month inside the same year.
        if results[0] == "loose" and results[1] == "loose":
            return "unrelated"
        return "different"
    return "loose" if "loose" in results else "same"


def _order(value: DateValue, *, last: bool) -> tuple[int, int, int] | None:
    if value.years is None:
        return None
    i = 1 if last else 0
    return (
        value.years[i],
        value.months[i] if value.months else (12 if last else 1),
        value.days[i] if value.days else (31 if last else 1),
    )


def compare_dates(claim: Fact, evidence: Fact) -> str:
    """How the evidence's date stands to the claim's.

    Returns:
        ``same`` (the claim's parts all agree; the evidence may say more), ``loose`` (they do not
        conflict but the claim says more), ``different`` or ``unrelated`` (no part in common).
    """
    ranking = ("same", "loose", "unrelated", "different")
    best = min((_compare_one(a, b) for a in claim.dates for b in evidence.dates), key=ranking.index)
    if best != "different" or claim.kind != "date":
        return best
    if claim.comparator in ("before", "until", "after", "since"):
        a = _order(claim.dates[0], last=claim.comparator in ("after",))
        b = _order(evidence.dates[0], last=claim.comparator in ("before", "until"))
        if a is None or b is None:
            return "unrelated"
        if evidence.comparator == "=":
            holds = b < a if claim.comparator in ("before", "until") else b > a
            return "loose" if holds else "different"
    elif evidence.comparator in ("before", "until", "after", "since"):
        # "before 2020" does not rule out the claim's 2019.
        a = _order(claim.dates[0], last=False)
        b = _order(evidence.dates[0], last=False)
        if a is None or b is None:
            return "unrelated"
        holds = a < b if evidence.comparator in ("before", "until") else a > b
        return "loose" if holds else "different"
    return best
