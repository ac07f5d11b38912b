"""Codecs as a training run chooses them: by the names of the number formats, with defaults that suit training.

Codecs with stochastic rounding use it by default: with rounding to nearest, updates smaller than half a step would be
lost (S. Gupta et al., arXiv:1502.02551, section 3).
"""

from abc import ABC
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ...codecs import Codec, codec_from_config
from .registry import Registry


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
