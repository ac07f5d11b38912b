"""What is set of the communication hook, checked."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...._api.compress import checked_codec
from ...._arguments import check_flag, checked_integer, checked_real, thread_count
from ...._dtypes import DType
from ...._methods.seeds import MAX_SEED
from ....codecs import QSGD, Codec, Lossless
from ....codecs._rules import Rule, codec_for

_MAX = 1 << 62


@dataclass(frozen=True)
class Planning:
    """How the bits of each layer are chosen.

    Attributes:
        interval: steps from one choice to the next.
        uniform: bits of all layers before the first choice, whose error the budget follows from.
        candidates: bits to choose from.
        alpha: the budget by that error.

    Raises:
        TypeError, ValueError: one of them is not allowed.
    """

    interval: int
    uniform: int
    candidates: tuple[int, ...]
    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", checked_integer("plan_interval", self.interval, 1, _MAX))
        object.__setattr__(self, "uniform", checked_integer("uniform_bits", self.uniform, 1, 8))
        object.__setattr__(self, "alpha", checked_real("alpha", self.alpha, "a finite number above 0"))
        if isinstance(self.candidates, (str, bytes)) or not hasattr(self.candidates, "__iter__"):
            raise TypeError(f"candidate_bits={self.candidates!r}: a sequence of integers is allowed")
        each = sorted({checked_integer("candidate_bits", bits, 1, 8) for bits in self.candidates})
        object.__setattr__(self, "candidates", tuple(each))
        if self.uniform not in each:
            raise ValueError(f"candidate_bits={each}: integers, {self.uniform} (uniform_bits) among them, are allowed")


@dataclass(frozen=True)
class HookSettings:
    """All that is set, and stays so.

    Attributes:
        codec: of the layers that no rule is for.
        rules: codecs of others.
        layer_min_size: the fewest values of a layer that is compressed though no rule is for it.
        error_feedback: whether what is lost of a gradient is added to the next one.
        start_iter: the first step that is compressed.
        seed: of codecs that round at random.
        track_error: whether the error of each layer is calculated.
        threads: for the codecs, on the CPU; None for PyTorch's number.
        planning: how bits are chosen; None where they are not.

    Raises:
        TypeError, ValueError: one of them is not allowed.
    """

    codec: Codec
    rules: tuple[Rule, ...]
    layer_min_size: int
    error_feedback: bool
    start_iter: int
    seed: int
    track_error: bool
    threads: int | None
    planning: Planning | None

    def __post_init__(self) -> None:
        if not isinstance(self.rules, (list, tuple)) or not all(isinstance(rule, Rule) for rule in self.rules):
            raise TypeError(f"rules={self.rules!r}: a list of Rule is allowed")
        object.__setattr__(self, "rules", tuple(self.rules))
        for name, most in (("layer_min_size", _MAX), ("start_iter", _MAX), ("seed", MAX_SEED)):
            object.__setattr__(self, name, checked_integer(name, getattr(self, name), 0, most))
        check_flag("error_feedback", self.error_feedback)
        check_flag("track_error", self.track_error)
        if self.threads is not None:
            thread_count(self.threads)
        self._check_feedback()

    def _check_feedback(self) -> None:
        codecs = [self.codec, *self.planned.values(), *(rule.codec for rule in self.rules)]
        if self.error_feedback and any(isinstance(codec, QSGD) and codec.bits == 1 for codec in codecs):
            raise ValueError(
                "bits=1 with error_feedback=True: QSGD's two levels lie so far apart that more is lost than there was, "
                "and residuals grow without end; bits from 2 on are allowed, or two levels nearer to 0, as "
                'codec=Codebook((0.0,), (-0.25, 0.25), scaling="absmax", bucket_size=512)'
            )

    @cached_property
    def patterns(self) -> list[str]:
        """Patterns of the rules that look at names."""
        return [name for rule in self.rules for name in rule.names if name != "*"]

    @cached_property
    def planned(self) -> dict[int, Codec]:
        """The codec with each number of bits that can be chosen."""
        if self.planning is None:
            return {}
        assert isinstance(self.codec, QSGD)
        return {bits: dataclasses.replace(self.codec, bits=bits) for bits in self.planning.candidates}

    def codec_for(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Codec | None:
        """The codec of a layer; None where it is not compressed."""
        rest = Rule(self.codec, min_size=self.layer_min_size, min_ndim=2)
        codec = codec_for((*self.rules, rest), name, dtype, shape)
        return None if isinstance(codec, Lossless) else codec

    def config(self) -> dict[str, Any]:
        """What all processes must have the same of, as a plain JSON object."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del plain["threads"], plain["track_error"]
        rules = [rule.config() for rule in self.rules]
        planning = None if self.planning is None else dataclasses.asdict(self.planning)
        return plain | {"codec": self.codec.config(), "rules": rules, "planning": planning}


def codec_from_arguments(bits: Any, codec: Any, uniform_bits: int, settings: dict[str, Any]) -> Codec:
    """The codec that is meant by bits and other settings of QSGD, or by itself.

    Raises:
        TypeError: one of them is of a wrong type, or QSGD has no such setting.
        ValueError: one is not allowed, or both ways are used.
    """
    if codec is not None:
        if bits is not None or settings:
            given = ", ".join(["bits"] * (bits is not None) + list(settings))
            raise ValueError(f"codec={codec!r} and {given} are both given; one of them is allowed")
        return checked_codec(codec)
    if isinstance(bits, str) and bits != "auto":
        raise ValueError(f'bits={bits!r}: 1 to 8, or "auto", is allowed')
    number = uniform_bits if bits == "auto" else 4 if bits is None else bits
    allowed = [field.name for field in dataclasses.fields(QSGD) if field.name != "bits"]
    for name in settings:
        if name not in allowed:
            raise TypeError(f"{name} is no setting of a QuantizedState or of QSGD, which has {', '.join(allowed)}")
    made = QSGD(bits=number, **settings)
    if bits == "auto" and not made.fixed_rate:
        raise ValueError(f'coding={made.coding!r}: with bits="auto", which plans fixed rates, "packed" is allowed')
    return made
