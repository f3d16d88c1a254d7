"""Units, currencies and scale words, and conversion inside a dimension."""

from __future__ import annotations

__all__ = ["CURRENCY", "CURRENCY_SIGN", "SCALE", "UNIT", "UNIT_CASED", "base_factor", "to_base"]

SCALE: dict[str, float] = {
    "hundred": 1e2, "thousand": 1e3, "thousands": 1e3, "k": 1e3, "million": 1e6, "millions": 1e6, "mn": 1e6,
    "mln": 1e6, "mm": 1e6, "billion": 1e9, "billions": 1e9, "bn": 1e9, "bln": 1e9, "trillion": 1e12,
    "tn": 1e12, "trn": 1e12, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7, "dozen": 12.0,
}  # fmt: skip
"""Scale words; ``mm`` only counts after a currency, and ``m`` and ``b`` are handled there too."""

CURRENCY_SIGN = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₩": "KRW", "₽": "RUB"}
CURRENCY = {
    "usd": "USD", "dollar": "USD", "dollars": "USD", "buck": "USD", "bucks": "USD", "eur": "EUR",
    "euro": "EUR", "euros": "EUR", "gbp": "GBP", "sterling": "GBP", "yen": "JPY", "jpy": "JPY",
    "rupee": "INR", "rupees": "INR", "inr": "INR", "rs": "INR", "yuan": "CNY", "renminbi": "CNY",
    "rmb": "CNY", "cny": "CNY", "franc": "CHF", "francs": "CHF", "chf": "CHF", "krona": "SEK",
    "kronor": "SEK", "rouble": "RUB", "roubles": "RUB", "rubles": "RUB", "peso": "MXN", "pesos": "MXN",
    "won": "KRW", "cad": "CAD", "aud": "AUD",
}  # fmt: skip

_TIME = {
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0,
    "fortnight": 1209600.0, "month": 2629800.0, "quarter": 7889400.0, "year": 31557600.0,
    "decade": 315576000.0, "century": 3155760000.0,
}  # fmt: skip
_FACTOR: dict[str, tuple[str, float]] = {
    **{name: ("time", factor) for name, factor in _TIME.items()}, "millisecond": ("time", 1e-3),
    "m": ("length", 1.0), "km": ("length", 1e3), "cm": ("length", 1e-2), "mm": ("length", 1e-3),
    "mile": ("length", 1609.344), "ft": ("length", 0.3048), "inch": ("length", 0.0254),
    "yard": ("length", 0.9144), "nm": ("length", 1e-9), "um": ("length", 1e-6), "g": ("mass", 1.0),
    "kg": ("mass", 1e3), "mg": ("mass", 1e-3), "ug": ("mass", 1e-6), "lb": ("mass", 453.59237),
    "oz": ("mass", 28.349523), "ton": ("ton", 1.0), "l": ("volume", 1.0), "ml": ("volume", 1e-3),
    "gallon": ("gallon", 1.0), "barrel": ("barrel", 1.0), "°C": ("temperature", 1.0),
    "°F": ("temperature", 5 / 9), "KB": ("data", 1e3), "MB": ("data", 1e6), "GB": ("data", 1e9),
    "TB": ("data", 1e12), "PB": ("data", 1e15), "Mbps": ("bandwidth", 1.0), "Gbps": ("bandwidth", 1e3),
    "W": ("power", 1.0), "kW": ("power", 1e3), "MW": ("power", 1e6), "GW": ("power", 1e9),
    "TW": ("power", 1e12), "kWh": ("energy", 1.0), "MWh": ("energy", 1e3), "GWh": ("energy", 1e6),
    "TWh": ("energy", 1e9), "Hz": ("frequency", 1.0), "kHz": ("frequency", 1e3),
    "MHz": ("frequency", 1e6), "GHz": ("frequency", 1e9), "acre": ("area", 4046.8564),
    "hectare": ("area", 1e4), "m2": ("area", 1.0), "km2": ("area", 1e6), "ft2": ("area", 0.09290304),
    "mile2": ("area", 2589988.11), "%": ("percent", 1.0), "pp": ("points", 1.0), "bp": ("points", 0.01),
    "pound": ("pound", 1.0), "degree": ("degree", 1.0), "knot": ("knot", 1.0), "cent": ("money", 0.01),
}  # fmt: skip

_SPELLINGS = {
    "second": "second seconds sec secs", "millisecond": "millisecond milliseconds ms",
    "minute": "minute minutes min mins", "hour": "hour hours hr hrs", "day": "day days",
    "week": "week weeks wk wks", "fortnight": "fortnight fortnights", "month": "month months",
    "year": "year years yr yrs", "decade": "decade decades", "century": "century centuries",
    "quarter": "quarters", "m": "m meter meters metre metres",
    "km": "km kms kilometer kilometers kilometre kilometres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "mm": "mm millimeter millimeters millimetre millimetres", "mile": "mile miles mi",
    "ft": "ft foot feet", "inch": "inch inches", "yard": "yard yards yd yds",
    "nm": "nm nanometers nanometres", "um": "µm μm micrometers", "g": "g gram grams gramme grammes",
    "kg": "kg kgs kilo kilos kilogram kilograms", "mg": "mg milligram milligrams",
    "ug": "mcg µg μg microgram micrograms", "lb": "lb lbs", "oz": "oz ounce ounces",
    "ton": "ton tons tonne tonnes", "l": "l liter liters litre litres",
    "ml": "ml milliliters millilitres", "gallon": "gallon gallons", "barrel": "barrel barrels",
    "°C": "celsius centigrade", "°F": "fahrenheit", "KB": "kb kilobyte kilobytes",
    "MB": "mb megabyte megabytes", "GB": "gb gigabyte gigabytes", "TB": "tb terabyte terabytes",
    "PB": "petabyte petabytes", "Mbps": "mbps", "Gbps": "gbps", "W": "watt watts",
    "kW": "kw kilowatt kilowatts", "MW": "megawatt megawatts", "GW": "gw gigawatt gigawatts",
    "TW": "terawatts", "kWh": "kwh", "MWh": "mwh", "GWh": "gwh", "TWh": "twh", "Hz": "hz hertz",
    "kHz": "khz", "MHz": "mhz megahertz", "GHz": "ghz gigahertz", "acre": "acre acres",
    "hectare": "hectare hectares ha", "pound": "pound pounds", "knot": "knot knots",
    "cent": "cent cents", "degree": "degree degrees °", "bp": "bps", "pp": "pp", "%": "percent pct %",
}  # fmt: skip
UNIT: dict[str, str] = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
"""Lower-case spelling to canonical unit."""
UNIT_CASED: dict[str, str] = {
    "MW": "MW",
    "W": "W",
    "kW": "kW",
    "GW": "GW",
    "TW": "TW",
    "K": "",
    "M": "",
    "B": "",
}
"""Spellings in which the case matters; the empty unit means that the letter is a scale, not a unit."""


def base_factor(unit: str) -> tuple[str, float]:
    """The dimension of a canonical unit and the factor to the base unit of that dimension."""
    return _FACTOR.get(unit, (unit or "count", 1.0))


def to_base(unit: str, value: float) -> float:
    """``value`` in the base unit of its dimension (seconds, metres, grams, °C ...)."""
    if unit == "°F":
        return (value - 32) * 5 / 9
    return value * base_factor(unit)[1]
