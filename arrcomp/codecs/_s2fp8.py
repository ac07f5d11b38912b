"""Shifted and squeezed FP8."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .._arguments import check_choice
from ._base import FLOATS, ROUNDINGS, Codec, Parameters, checked_bucket_size


@dataclass(frozen=True, kw_only=True, repr=False)
class S2FP8(Codec):
    """Keep each value in 8 bits of a floating-point format that is fitted to the values.

    Let mu be the mean and m the maximum of log2 |x| over the values that are not 0. Magnitudes are squeezed and shifted
    so that mu becomes 0 and m becomes 15. They are stored as e5m2 (FP8 with 5 exponent and 2 mantissa bits)::

        alpha = 15 / (m - mu);  beta = -alpha mu;  y = sign(x) 2^beta |x|^alpha

    They decompress to sign(y) (2^-beta |y|)^(1/alpha). So no scale of losses or gradients has to be found, and the
    relative error is about that of e5m2 divided by alpha (3 to 5 for normal and Laplace distributions). Each bucket
    (the whole array if `bucket_size` is None) stores alpha and, in place of beta, the largest |x|, both in float32
    (float64 for float64 arrays).

    Guarantee: zeros keep their bits. The largest magnitude comes back exactly, and so do values that all have the same
    magnitude. No finite value becomes larger than that, NaN or infinite. A bucket with a NaN or an infinity becomes all
    NaN. With ``rounding="nearest"`` values below the least magnitude of the squeezed format become that or 0, whichever
    is nearer to x. (The paper's formula takes what is nearer to y; its error is up to 1.8 times as large.) With
    ``"stochastic"`` y, not x, is unbiased: its mean over the seeds is the squeezed value.

    Method: polynomials approximate logarithms and powers, so that every device computes the same bits. The relative
    error of y is below 1e-5 for alpha up to 10, far below the 1/8 of e5m2's rounding. alpha is at most 15 * 2^20. The
    rate is fixed: 8 bits a value, and two numbers for each bucket.

    Reference: L. Cambier et al., "Shifted and Squeezed 8-bit Floating Point Format for Low-Precision Training of Deep
    Neural Networks", arXiv:2001.05674, section 3.

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        bucket_size: values that share alpha and beta, at least 16, in C order; None for the whole array.
        rounding: "nearest" or "stochastic".

    >>> import numpy, arrcomp
    >>> x = numpy.array([0, 1e-30, -3e-30, 2e-28, -1e-29], numpy.float32)
    >>> [f"{v:.3g}" for v in arrcomp.decompress(arrcomp.compress(x, S2FP8()))]
    ['0', '1.01e-30', '-2.99e-30', '2e-28', '-9.94e-30']
    >>> S2FP8(bucket_size=512, rounding="stochastic")
    S2FP8(bucket_size=512, rounding='stochastic')
    """

    name: ClassVar[str] = "s2fp8"
    id: ClassVar[int] = 6
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS
    fixed_rate: ClassVar[bool] = True

    bucket_size: int | None = None
    rounding: Literal["nearest", "stochastic"] = "nearest"

    def _check(self) -> None:
        if self.bucket_size is not None:
            self._set(bucket_size=checked_bucket_size(self.bucket_size))
        check_choice("rounding", self.rounding, ROUNDINGS)

    @property
    def needs_seed(self) -> bool:
        return self.rounding == "stochastic"

    def named_parameters(self) -> Parameters:
        return {"bucket_size": self.bucket_size or 0, "stochastic": self.needs_seed}

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(), cls(bucket_size=512))
