"""Which codec for which state of which parameter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..._methods.keyed_codecs import KeyedCodecs, check_codec_or_none
from ...codecs import Codebook, Codec
from .._tensors import dtype_of
from ._parameters import is_compressible

# What a user says: one codec, codecs by key, or a function of a parameter and a key.
CodecChoice = Codec | Mapping[str, Codec | None] | Callable[[Tensor, str], Codec | None]

_AVERAGES = ("exp_avg", "momentum_buffer")
_MAGNITUDES = ("exp_avg_sq", "max_exp_avg_sq", "square_avg", "exp_inf")


def eight_bit() -> dict[str, Codec | None]:
    """Codecs for 8-bit state, by key: dynamic maps in buckets of 256 values (arXiv:2110.02861).

    Running averages of gradients (`exp_avg`, `momentum_buffer`) have the signed map. Those of squares and magnitudes
    (`exp_avg_sq`, `max_exp_avg_sq`, `square_avg`, `exp_inf`) have the one without signs, in which nothing
    above 0 becomes 0: steps are divided by their roots, and a zero there beside a first moment that is none would make
    a step of any size. A second moment that is under 3.25e-7 of its bucket's largest counts as so much, which makes the
    step smaller. All other state stays as it is; sums that grow for ever, as Adagrad's, would stop growing.
    """
    signed, unsigned = Codebook.dynamic8(), Codebook.dynamic8(signed=False)
    return {**dict.fromkeys(_AVERAGES, signed), **dict.fromkeys(_MAGNITUDES, unsigned)}


@dataclass(frozen=True)
class StateCodecs:
    """The codecs of an optimizer's state.

    Attributes:
        codecs: by key, or a function of a parameter and a key.
        min_size: the fewest values of a tensor that is compressed.
    """

    codecs: KeyedCodecs | Callable[[Tensor, str], Codec | None]
    min_size: int

    @classmethod
    def of(cls, codec: Any, min_size: int) -> "StateCodecs":
        """The choice that a user's `codec` means.

        Raises:
            TypeError, ValueError: it is no `CodecChoice`.
        """
        if callable(codec) and not isinstance(codec, (Codec, Mapping)):
            return cls(codec, min_size)
        try:
            return cls(KeyedCodecs.of(codec), min_size)
        except TypeError as error:
            raise TypeError(f"{error}, as is a function of a parameter and a key") from None

    def codec_for(self, parameter: Tensor, key: str, x: Tensor) -> Codec | None:
        """The codec of a tensor in the state of a parameter; None where it stays as it is.

        Raises:
            TypeError: the codec does not take the tensor's data type, or is none.
        """
        if not self._is_large(x) or not is_compressible(x, parameter):
            return None
        if isinstance(self.codecs, KeyedCodecs):
            codec = self.codecs.find((str(key),))
        else:
            codec = self.codecs(parameter, key)
            check_codec_or_none(f"codec(parameter, {key!r})", codec)
        if codec is not None:
            try:
                codec.check_dtype(dtype_of(x))
            except TypeError as error:
                raise TypeError(f"state {key!r}: {error}") from None
        return codec

    def _is_large(self, x: Tensor) -> bool:
        """Whether these are values, and enough of them: not a counter."""
        return x.is_floating_point() and x.dim() > 0 and x.numel() >= self.min_size
