"""The configuration's parameters, checked as section 5 asks."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .dtypes import Dtype
from .source import CorruptStreamError, need

REQUIRED = object()


def parse(text: bytes) -> dict[str, Any]:
    """The JSON object of a configuration; raises CorruptStreamError where it is none."""
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise CorruptStreamError("configuration") from error
    need(isinstance(found, dict), "the configuration is no object")
    return dict(found)


def refuse(name: str) -> NoReturn:
    """Refuse what JSON has no numbers for."""
    raise CorruptStreamError(name)


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**1024


def is_integer(value: object) -> bool:
    """Whether a JSON value is an integer, written without fraction and exponent."""
    return isinstance(value, int) and not isinstance(value, bool)


class Parameters:
    """Looks parameters up; each method takes a key, what is allowed and what a missing one stands for."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.known = {"codec"}

    def get(self, key: str, default: object = None) -> Any:
        """The value of a key that the codec's section names, of any type."""
        self.known.add(key)
        return self.config.get(key, default)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self.known.add(key)
        return key in self.config

    def has_value(self, key: str) -> bool:
        """Whether the key is there and not null, which stands for a missing one."""
        return self.get(key) is not None

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer from low to high."""
        value = self.get(key, default)
        need(is_integer(value) and low <= value <= high, key)
        return int(value)

    def number(self, key: str, low: float, high: float, default: float) -> float:
        """A number from low to high."""
        value = self.get(key, default)
        need(is_number(value) and low <= value <= high, key)
        return float(value)

    def choice(self, key: str, allowed: tuple[str | None, ...], default: object = REQUIRED) -> str | None:
        """One of the allowed strings."""
        value: object = self.get(key, default)
        need((value is None or isinstance(value, str)) and value in allowed, key)
        return None if value is None else str(value)

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self.get(key, default)
        need(isinstance(value, bool), key)
        return bool(value)

    def finish(self) -> None:
        """Refuse keys that were not asked for."""
        need(set(self.config) <= self.known, "a key that the codec does not have")


def check_groups(config: Parameters, codec: str) -> None:
    """Section 1.2, codecs 1 and 2."""
    config.choice("speed", ("default", "fast"), "default")
    config.choice("predictor", (None, "auto", "interpolation", "lorenzo", "columns", "reference"), None)
    if codec == "error-bounded":
        bounds = {key: config.get(key) for key in ("abs", "rel", "pointwise")}
        given = [bound for bound in bounds.values() if bound is not None]
        need(len(given) == 1 and is_number(given[0]) and given[0] > 0, "bounds")
        need(bounds["pointwise"] is None or bounds["pointwise"] < 1, "pointwise")
        need(not config.has_value("fill_value") or is_number(config.get("fill_value")), "fill_value")


def check_base_delta(config: Parameters, dtype: Dtype) -> None:
    """Section 1.2, codec 7."""
    config.integer("bases", 1, 2, 1)
    config.integer("drop_bits", 0, dtype.mantissa if dtype.bits >= 16 else 0, 0)
    config.choice("rounding", ("nearest", "stochastic", "truncate"), "nearest")
    widths = config.get("delta_bits")
    allowed = isinstance(widths, list) and len(widths) > 0 and all(is_integer(width) for width in widths)
    need(widths is None or (allowed and min(widths) >= 1 and max(widths) <= 64), "delta_bits")
