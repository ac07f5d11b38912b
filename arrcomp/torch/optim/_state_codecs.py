"""The codec of each state tensor of an optimizer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..._arguments import shown, wrong_type
from ..._methods.keyed_codecs import KeyedCodecs, check_codec_or_none
from ...codecs import Codebook, Codec
from .._tensors import dtype_of
from ._parameters import is_compressible

# One codec, codecs by key, or a function of a parameter and a key.
CodecChoice = Codec | Mapping[str, Codec | None] | Callable[[Tensor, str], Codec | None]

_AVERAGES = ("exp_avg", "momentum_buffer")
_MAGNITUDES = ("exp_avg_sq", "max_exp_avg_sq", "square_avg", "exp_inf")


def eight_bit() -> dict[str, Codec | None]:
    """Codecs for 8-bit state, by key: dynamic maps in buckets of 256 values (arXiv:2110.02861).

    Running averages of gradients (`exp_avg`, `momentum_buffer`) have the signed map. Averages of squares and magnitudes
    (`exp_avg_sq`, `max_exp_avg_sq`, `square_avg`, `exp_inf`) have the unsigned map, which never rounds a positive value
    to 0: updates are divided by their roots, so a 0 with a nonzero first moment would make a huge step. Second moments
    below 3.25e-7 of their bucket's largest are rounded up to that, which makes the step smaller. All other state is not
    compressed; quantized sums that grow without bound (Adagrad) would stop growing.
    """
    signed, unsigned = Codebook.dynamic8(), Codebook.dynamic8(signed=False)
    return {**dict.fromkeys(_AVERAGES, signed), **dict.fromkeys(_MAGNITUDES, unsigned)}


@dataclass(frozen=True)
class StateCodecs:
    """The codecs of an optimizer's state: by key, or a function of a parameter and a key."""

    codecs: KeyedCodecs | Callable[[Tensor, str], Codec | None]
    min_size: int

    @classmethod
    def of(cls, codec: Any, min_size: int) -> "StateCodecs":
        """The codecs of a user's argument `codec`; TypeError or ValueError unless it is a `CodecChoice`."""
        if isinstance(codec, (Codec, Mapping)):
            return cls(KeyedCodecs.of(codec), min_size)
        if not callable(codec):
            raise wrong_type("codec", "a codec, a mapping of codecs, or a function of a parameter and a key", codec)
        return cls(codec, min_size)

    def codec_for(self, parameter: Tensor, key: str, x: Tensor) -> Codec | None:
        """The codec of a tensor in the state of a parameter, which must support it; None if it is not compressed."""
        if not x.is_floating_point() or x.dim() == 0 or x.numel() < self.min_size or not is_compressible(x, parameter):
            return None
        if isinstance(self.codecs, KeyedCodecs):
            codec = self.codecs.find((str(key),))
        else:
            codec = self.codecs(parameter, key)
            check_codec_or_none(f"codec(parameter, {shown(key)})", codec)
        if codec is not None:
            try:
                codec.check_dtype(dtype_of(x))
            except TypeError as error:
                raise TypeError(f"state {shown(key)}: {error}") from None
        return codec
