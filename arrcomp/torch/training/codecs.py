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
        """The codec with these settings.

        Args:
            settings: parameters of the codec, which come before the defaults.
            positive: whether it is for values that are never below 0, as second moments.

        Raises:
            TypeError, ValueError: a parameter is unknown or not allowed.
        """
        if cls.config is None:
            if settings:
                raise ValueError(f"{next(iter(settings))}: codec {cls.name} has no parameters")
            return None
        return codec_from_config({**cls.config, **settings})


CODECS: Registry[TrainingCodec] = Registry("codec")


@CODECS.add
class FP32(TrainingCodec):
    """Nothing is compressed."""

    name = "fp32"
    config = None


@CODECS.add
class FP16(TrainingCodec):
    """IEEE 754 with 5 bits of exponent and 10 of mantissa."""

    name = "fp16"
    config = MappingProxyType({"codec": "float-format", "format": "fp16", "rounding": "stochastic"})


@CODECS.add
class BF16(TrainingCodec):
    """8 bits of exponent, 7 of mantissa."""

    name = "bf16"
    config = MappingProxyType({"codec": "float-format", "format": "bf16", "rounding": "stochastic"})


@CODECS.add
class FP8(TrainingCodec):
    """e5m2, as SmaQ's authors had it; or e4m3 with ``format=fp8_e4m3``."""

    name = "fp8"
    config = MappingProxyType({"codec": "float-format", "format": "fp8_e5m2", "rounding": "stochastic"})


@CODECS.add
class ShiftedSqueezed(TrainingCodec):
    """FP8 fitted to the logarithms of each array."""

    name = "s2fp8"
    config = MappingProxyType({"codec": "s2fp8", "rounding": "stochastic"})


@CODECS.add
class Smart(TrainingCodec):
    """SmaQ: 6 bits near the mean and 8 for outliers."""

    name = "smaq"
    config = MappingProxyType({"codec": "smaq"})

    @classmethod
    def make(cls, settings: Mapping[str, Any], positive: bool = False) -> Codec | None:
        return super().make({"all_positive": True, **settings} if positive else settings)


@CODECS.add
class Quantized(TrainingCodec):
    """QSGD: equal steps between the least and the largest value of each bucket."""

    name = "qsgd"
    config = MappingProxyType({"codec": "qsgd", "rounding": "stochastic"})


@CODECS.add
class Bounded(TrainingCodec):
    """An error of at most 1e-3 of each array's range, or another bound: ``abs``, ``rel`` or ``pointwise``."""

    name = "error-bounded"
    config = MappingProxyType({"codec": "error-bounded"})

    @classmethod
    def make(cls, settings: Mapping[str, Any], positive: bool = False) -> Codec | None:
        given = {"abs", "rel", "pointwise"} & set(settings)
        return super().make(settings if given else {"rel": 1e-3, **settings})


@CODECS.add
class BaseDeltaImmediate(TrainingCodec):
    """NNW-BDI: small differences from base words, after the lowest 16 mantissa bits are rounded off."""

    name = "bdi"
    config = MappingProxyType({"codec": "base-delta", "drop_bits": 16, "rounding": "stochastic"})
