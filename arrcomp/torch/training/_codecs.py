"""Codecs as a training run chooses them: by the names of the number formats, with defaults that suit training.

Codecs with stochastic rounding use it by default: with rounding to nearest, updates smaller than half a step would be
lost (S. Gupta et al., arXiv:1502.02551, section 3).
"""

from abc import ABC
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from ..._arguments import shown
from ...codecs import Codec, codec_from_config
from ...errors import UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes of one kind, by the `name` that each has.

    >>> from arrcomp.torch.training import CODECS
    >>> "smaq" in CODECS.names()
    True
    """

    def __init__(self, kind: str) -> None:
        """`kind` is what messages call them: "model", "data set", "codec"."""
        self.kind = kind
        self._classes: dict[str, type[T]] = {}

    def add(self, cls: type[T]) -> type[T]:
        """Decorate a class to add it; raises TypeError if `chosen_codecs` cannot read its name, ValueError if taken."""
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name or set(name) & set(" ,:=."):
            raise TypeError(f"{cls.__name__}.name: expected a text without spaces and ',:=.', got {shown(name)}")
        if name in self._classes:
            raise ValueError(f"{cls.__name__}.name: there is a {self.kind} {shown(name)} already")
        self._classes[name] = cls
        return cls

    def find(self, name: str) -> type[T]:
        """The class of a name; UnknownNameError if there is none."""
        if name not in self._classes:
            raise UnknownNameError(
                f"{self.kind} {shown(name)} is unknown; there are {', '.join(self._classes) or 'none'}"
            )
        return self._classes[name]

    def names(self) -> list[str]:
        """All names, in the order in which they were added."""
        return list(self._classes)

    def __iter__(self) -> Iterator[type[T]]:
        return iter(self._classes.values())


class TrainingCodec(ABC):
    """Base of codecs as `chosen_codecs` names them: one class each.

    Attributes:
        name: in `chosen_codecs`.
        config: the codec's configuration, same as in `arrcomp.codec_from_config`; None to keep values as they are.
    """

    name: ClassVar[str]
    config: ClassVar[Mapping[str, Any] | None]

    @classmethod
    def make(cls, settings: Mapping[str, Any], positive: bool = False) -> Codec | None:
        """The codec with these parameters, which come before the defaults; TypeError or ValueError for a wrong one.

        `positive` is for values that are never below 0, as second moments.
        """
        if cls.config is None:
            if settings:
                raise ValueError(f"{next(iter(settings))}: codec {cls.name} has no parameters")
            return None
        return codec_from_config({**cls.config, **settings})


CODECS: Registry[TrainingCodec] = Registry("codec")


class _Smart(TrainingCodec):
    @classmethod
    def make(cls, settings: Mapping[str, Any], positive: bool = False) -> Codec | None:
        return super().make({"all_positive": True, **settings} if positive else settings)


class _Bounded(TrainingCodec):
    @classmethod
    def make(cls, settings: Mapping[str, Any], positive: bool = False) -> Codec | None:
        return super().make(settings if {"abs", "rel", "pointwise"} & set(settings) else {"rel": 1e-3, **settings})


_RANDOM = {"rounding": "stochastic"}
_CONFIGS: dict[str, dict[str, Any] | None] = {
    "fp32": None,  # nothing is compressed
    "fp16": {"codec": "float-format", "format": "fp16", **_RANDOM},  # IEEE 754: exponents of 5 bits, mantissas of 10
    "bf16": {"codec": "float-format", "format": "bf16", **_RANDOM},  # exponents of 8 bits, mantissas of 7
    # e5m2, as SmaQ's authors had it; or e4m3 with format=fp8_e4m3.
    "fp8": {"codec": "float-format", "format": "fp8_e5m2", **_RANDOM},
    "s2fp8": {"codec": "s2fp8", **_RANDOM},  # FP8 fitted to the logarithms of each array
    "smaq": {"codec": "smaq"},  # 6 bits near the mean and 8 for outliers
    "qsgd": {"codec": "qsgd", **_RANDOM},  # equal steps between the least and the largest value of each bucket
    # An error of at most 1e-3 of each array's range, or another bound: abs, rel or pointwise.
    "error-bounded": {"codec": "error-bounded"},
    # NNW-BDI: small differences from base words, after the lowest 16 mantissa bits are rounded off.
    "bdi": {"codec": "base-delta", "drop_bits": 16, **_RANDOM},
}
for _name, _config in _CONFIGS.items():
    _base = {"smaq": _Smart, "error-bounded": _Bounded}.get(_name, TrainingCodec)
    _made: Any = type(_name, (_base,), {"name": _name, "config": _config and MappingProxyType(_config)})
    CODECS.add(_made)
