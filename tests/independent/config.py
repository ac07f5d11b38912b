"""The configuration's parameters, checked as section 5 asks."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

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
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


class Parameters:
    """Looks parameters up; each method takes a key, what is allowed and what a missing one stands for."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """An integer from low to high."""
        value = self.config.get(key, default)
        need(isinstance(value, int) and not isinstance(value, bool) and low <= value <= high, key)
        return int(value)  # type: ignore[arg-type]

    def number(self, key: str, low: float, high: float, default: float) -> float:
        """A number from low to high."""
        value = self.config.get(key, default)
        need(is_number(value) and low <= value <= high, key)
        return float(value)

    def choice(self, key: str, allowed: tuple[str | None, ...], default: object = REQUIRED) -> str | None:
        """One of the allowed strings."""
        value: object = self.config.get(key, default)
        need((value is None or isinstance(value, str)) and value in allowed, key)
        return None if value is None else str(value)

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self.config.get(key, default)
        need(isinstance(value, bool), key)
        return bool(value)

    def absent(self, *keys: str) -> None:
        """Refuse these keys."""
        for key in keys:
            need(key not in self.config, key)
