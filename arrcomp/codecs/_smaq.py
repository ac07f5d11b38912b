"""Quantization of standard scores."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from .._arguments import check_choice, check_flag, checked_integer, checked_number, checked_real, wrong_value
from ._base import FLOATS, TRUNCATING_ROUNDINGS, Codec, Parameters

_OVERFLOWS = ("clamp", "extend")
_STATISTICS = ("exact", "sampled", "range", "given")
_LEAST_THRESHOLD, _MOST_THRESHOLD = 2.0**-10, 2.0**10
_LEAST_BLOCK, _MOST_SIZE = 32, 1 << 40


@dataclass(frozen=True, repr=False)
class SmaQ(Codec):
    """Keep each value by its distance from the mean: short codes near it, longer ones for outliers.

    The array, in C order, is split into blocks of `block_size` values. The last one may be shorter. Let z be
    (x - mean) / std, with the block's mean and standard deviation. Values with |z| <= `main_threshold` take
    `main_bits`: one bit marks them, one is the sign, and the others are |z| in 2^(main_bits - 2) - 1 equal steps from 0
    to the threshold. Outliers take `outlier_bits`: 2^(outlier_bits - 2) - 1 steps from there to the outlier threshold.
    With ``overflow="extend"`` the outlier threshold is the block's largest |z|, which is stored. With ``"clamp"`` it is
    `outlier_threshold`, to which larger values are clamped.

    Guarantee: |x - y| is at most half a step with ``rounding="nearest"``, and a whole step with ``"stochastic"`` and
    ``"truncate"`` (towards the mean), apart from the rounding of the arithmetic and of y. With "clamp" this holds for
    values within the outlier threshold. With "stochastic" y is unbiased within the thresholds: its mean over the seeds
    is x. Blocks of equal values come back exactly. So do zeros with ``preserve_zeros=True`` (as 0.0; they use a spare
    code, which costs nothing). A block with a NaN or an infinity becomes all NaN. A standard deviation that is too
    small for the arithmetic, or more than 2^100 times smaller than the block, is replaced by the least usable one.

    Relative L2 errors of the defaults (and bits a value, all included), with blocks of 1024 and rounding to nearest::

                                weights       gradients     Adam m        Adam v        pre-activations  ReLU
        extend, blocks of 1024  .017 (6.74)   .017 (6.60)   .018 (6.63)   .019 (6.39)   .016 (6.80)      .011 (6.47)
        clamp,  blocks of 1024  .051 (6.71)   .152 (6.57)   .237 (6.60)   .345 (6.36)   .020 (6.76)      .071 (6.44)
        extend, of the array    .019 (6.65)   .094 (6.22)   .088 (6.21)   .046 (6.02)   .017 (6.68)      .012 (6.36)
        clamp,  of the array    .055 (6.65)   .648 (6.22)   .648 (6.21)   .909 (6.02)   .034 (6.68)      .094 (6.36)

    The rate varies. Each value takes `main_bits`, and each outlier `outlier_bits` - `main_bits` more. Each block has
    mean, standard deviation and, with "extend", threshold in float32 (float64 for float64 arrays). Arrays of fewer than
    `min_size` elements are stored as they are.

    Statistics are float32 or float64. ``"exact"`` uses all N values, and their squared distances divided by N.
    ``"sampled"`` uses `num_samples` values of the block drawn at random, with repetition, and divides by one less; all
    values where the samples are equal or are the whole block. (It saves no time: the whole block is read for its
    range.) ``"range"`` divides the range by the expected range of as many normal
    values, and uses the exact mean. ``"given"`` uses `mean` and `std`, for instance of a batch normalization.

    Reference: the published SmaQ ("Smart Quantization") for thresholds and code lengths; expected ranges: L. H. C.
    Tippett, "On the extreme individuals and the range of samples taken from a normal population", Biometrika 17 (1925).

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        main_bits: of codes near the mean, 3 to 8.
        outlier_bits: of outliers' codes, `main_bits` to 12.
        main_threshold: where outliers begin, in standard deviations, 2^-10 to 2^10.
        outlier_threshold: with "clamp", where they end, above `main_threshold`.
        overflow: "extend" or "clamp".
        statistics: "exact", "sampled", "range" or "given".
        mean: with "given" only: the mean of all blocks, finite.
        std: with "given" only: the standard deviation of all blocks, finite, above 0.
        num_samples: with "sampled": samples of each block, 2 to 4096.
        block_size: values in a block, at least 32; None for one block of the whole array.
        rounding: "stochastic", "nearest" or "truncate". "stochastic" and "sampled" need the `seed` of `compress`.
        preserve_zeros: zeros come back as zeros.
        all_positive: values that would come back below 0 come back as 0.
        min_size: arrays with fewer elements are stored as they are.

    >>> SmaQ(4, 6)
    SmaQ(main_bits=4, outlier_bits=6)
    >>> SmaQ(statistics="given", mean=0, std=1)
    SmaQ(main_bits=6, outlier_bits=8, statistics='given', mean=0.0, std=1.0)
    """

    name: ClassVar[str] = "smaq"
    id: ClassVar[int] = 4
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS
    _always_shown: ClassVar[tuple[str, ...]] = ("main_bits", "outlier_bits")

    main_bits: int = 6
    outlier_bits: int = 8
    _: KW_ONLY
    main_threshold: float = 1.0
    outlier_threshold: float = 2.5
    overflow: Literal["clamp", "extend"] = "extend"
    statistics: Literal["exact", "sampled", "range", "given"] = "exact"
    mean: float | None = None
    std: float | None = None
    num_samples: int = 16
    block_size: int | None = 1024
    rounding: Literal["stochastic", "nearest", "truncate"] = "stochastic"
    preserve_zeros: bool = True
    all_positive: bool = False
    min_size: int = 8

    def _check(self) -> None:
        self._set(main_bits=checked_integer("main_bits", self.main_bits, 3, 8))
        self._set(outlier_bits=checked_integer("outlier_bits", self.outlier_bits, self.main_bits, 12))
        self._check_thresholds()
        check_choice("overflow", self.overflow, _OVERFLOWS)
        check_choice("statistics", self.statistics, _STATISTICS)
        self._check_given()
        self._set(num_samples=checked_integer("num_samples", self.num_samples, 2, 4096))
        if self.block_size is not None:
            self._set(block_size=checked_integer("block_size", self.block_size, _LEAST_BLOCK, _MOST_SIZE))
        check_choice("rounding", self.rounding, TRUNCATING_ROUNDINGS)
        check_flag("preserve_zeros", self.preserve_zeros)
        check_flag("all_positive", self.all_positive)
        self._set(min_size=checked_integer("min_size", self.min_size, 0, _MOST_SIZE))

    @property
    def needs_seed(self) -> bool:
        return self.rounding == "stochastic" or self.statistics == "sampled"

    def config(self) -> dict[str, Any]:
        # A block size of None is kept: it means the whole array.
        return super().config() | {"block_size": self.block_size}

    @property
    def granularity(self) -> int:
        return self.block_size or super().granularity

    def named_parameters(self) -> Parameters:
        return {
            "main_bits": self.main_bits,
            "outlier_bits": self.outlier_bits,
            "main_threshold": self.main_threshold,
            "outlier_threshold": self.outlier_threshold,
            "extends": self.overflow == "extend",
            "statistics": _STATISTICS.index(self.statistics),
            "mean": 0.0 if self.mean is None else self.mean,
            "std": 1.0 if self.std is None else self.std,
            "num_samples": self.num_samples,
            "block_size": self.block_size or 0,
            "rounding": TRUNCATING_ROUNDINGS.index(self.rounding),
            "preserve_zeros": self.preserve_zeros,
            "all_positive": self.all_positive,
            "min_size": self.min_size,
        }

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls(rounding="nearest"), cls(4, 6, rounding="nearest"))

    def _check_thresholds(self) -> None:
        expected = f"a number from {_LEAST_THRESHOLD} to {_MOST_THRESHOLD}"
        for name in ("main_threshold", "outlier_threshold"):
            value = checked_real(name, getattr(self, name), expected)
            if not _LEAST_THRESHOLD <= value <= _MOST_THRESHOLD:
                raise wrong_value(name, expected, value)
            self._set(**{name: value})
        if self.outlier_threshold <= self.main_threshold:
            above = f"a number above main_threshold={self.main_threshold!r}"
            raise wrong_value("outlier_threshold", above, self.outlier_threshold)

    def _check_given(self) -> None:
        if self.statistics != "given":
            for name in ("mean", "std"):
                if (value := getattr(self, name)) is not None:
                    raise wrong_value(name, f"None with statistics={self.statistics!r}", value)
            return
        self._set(mean=checked_number("mean", self.mean, "a finite number with statistics='given'"))
        self._set(std=checked_real("std", self.std, "a finite number above 0 with statistics='given'"))
