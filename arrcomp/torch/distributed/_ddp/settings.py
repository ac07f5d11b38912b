"""Checked settings of the communication hook."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...._api.compress import checked_codec
from ...._arguments import check_flag, checked_integer, checked_real, shown, thread_count, wrong_type
from ...._dtypes import DType
from ...._methods.error_feedback import check_error_feedback
from ...._methods.seeds import MAX_SEED
from ....codecs import QSGD, Codec, Lossless
from ....codecs._rules import Rule, codec_for

_MAX = 1 << 62


@dataclass(frozen=True)
class Planning:
    """Checked settings of the choice of each layer's bits, as in `QuantizedState`."""

    interval: int
    uniform: int
    candidates: Sequence[int]
    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", checked_integer("plan_interval", self.interval, 1, _MAX))
        object.__setattr__(self, "uniform", checked_integer("uniform_bits", self.uniform, 1, 8))
        object.__setattr__(self, "alpha", checked_real("alpha", self.alpha, "a finite number above 0"))
        if isinstance(self.candidates, (str, bytes)) or not hasattr(self.candidates, "__iter__"):
            raise wrong_type("candidate_bits", "a sequence of integers", self.candidates)
        each = sorted({checked_integer("candidate_bits", bits, 1, 8) for bits in self.candidates})
        object.__setattr__(self, "candidates", tuple(each))
        if self.uniform not in each:
            raise ValueError(f"candidate_bits: expected integers that include uniform_bits={self.uniform}, got {each}")


@dataclass(frozen=True)
class HookSettings:
    """All settings, checked and immutable: the arguments of `QuantizedState`. `planning` is None for fixed bits."""

    codec: Codec
    rules: Sequence[Rule]
    layer_min_size: int
    error_feedback: bool
    start_iter: int
    seed: int
    track_error: bool
    threads: int | None
    planning: Planning | None

    def __post_init__(self) -> None:
        if not isinstance(self.rules, (list, tuple)) or not all(isinstance(rule, Rule) for rule in self.rules):
            raise TypeError(f"rules: expected a list of Rule, got {shown(self.rules)}")
        object.__setattr__(self, "rules", tuple(self.rules))
        for name, most in (("layer_min_size", _MAX), ("start_iter", _MAX), ("seed", MAX_SEED)):
            object.__setattr__(self, name, checked_integer(name, getattr(self, name), 0, most))
        check_flag("error_feedback", self.error_feedback)
        check_flag("track_error", self.track_error)
        thread_count(self.threads)
        codecs = [self.codec, *self.planned.values(), *(rule.codec for rule in self.rules)]
        if self.error_feedback:
            check_error_feedback(codecs, "error_feedback=True")

    @cached_property
    def planned(self) -> dict[int, Codec]:
        """The codec for each candidate number of bits."""
        if self.planning is None:
            return {}
        assert isinstance(self.codec, QSGD)
        return {bits: dataclasses.replace(self.codec, bits=bits) for bits in self.planning.candidates}

    def codec_for(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Codec | None:
        """The codec of a layer; None if it is not compressed."""
        rest = Rule(self.codec, min_size=self.layer_min_size, min_ndim=2)
        codec = codec_for((*self.rules, rest), name, dtype, shape)
        return None if isinstance(codec, Lossless) else codec

    def config(self) -> dict[str, Any]:
        """The settings that all ranks must share, as a JSON object."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del plain["threads"], plain["track_error"]
        rules = [rule.config() for rule in self.rules]
        planning = None if self.planning is None else dataclasses.asdict(self.planning)
        return plain | {"codec": self.codec.config(), "rules": rules, "planning": planning}


def codec_from_arguments(bits: Any, codec: Any, uniform_bits: int, settings: dict[str, Any]) -> Codec:
    """The codec: either `codec`, or QSGD with these bits and settings."""
    if codec is not None:
        if bits is not None or settings:
            given = ", ".join(["bits"] * (bits is not None) + list(settings))
            raise ValueError(f"codec: expected either codec or {given}, got both")
        return checked_codec(codec)
    if isinstance(bits, str) and bits != "auto":
        raise ValueError(f"bits: expected an integer from 1 to 8, or 'auto', got {shown(bits)}")
    number = uniform_bits if bits == "auto" else 4 if bits is None else bits
    allowed = [field.name for field in dataclasses.fields(QSGD) if field.name != "bits"]
    for name in settings:
        if name not in allowed:
            raise TypeError(f"settings: expected QuantizedState's or QSGD's ({', '.join(allowed)}), got {name}")
    made = QSGD(bits=number, **settings)
    if bits == "auto" and not made.fixed_rate:
        raise ValueError(f"coding: expected 'packed' with bits='auto', which plans fixed rates, got {made.coding!r}")
    return made
