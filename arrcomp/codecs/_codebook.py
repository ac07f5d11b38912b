"""Codebooks: tables of intervals and levels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import check_choice, check_flag, check_mapping, checked_integer, checked_reals, wrong_value
from . import _codebook_fit
from ._base import FLOATS, Codec, Parameters, checked_bucket_size
from ._codebook_tables import TABLE_NAMES, checked_table, midpoints, name_of_table, shortest, table_named

_SCALINGS = ("absmax", "tensor")
_UNSIGNED = "dynamic8-unsigned"
_MOST_SUPPORT = 1 << 14  # distinct samples in a fit


@dataclass(frozen=True, repr=False)
class Codebook(Codec):
    """Keep each value as the index of the interval that it lies in. It decompresses to that interval's level.

    The index of x is the number of borders below x, and y = levels[index]. So a value on a border belongs to the
    interval below it. Levels need not ascend: they may be any function of the interval. If they ascend and the borders
    are their midpoints, each value gets the nearest level; of two that are equally near, the lower one.

    With a scaling, x / max|x| is looked up and y = level * max|x|. The maximum is that of the value's bucket of
    `bucket_size` values ("absmax"), or of the array ("tensor"). A bucket of zeros comes back as zeros. A bucket (with
    "tensor" the array) with a NaN or an infinity becomes all NaN, without scaling too.

    The rate is fixed: the shape determines the payload's length. It has for each bucket the largest magnitude in
    float32 (float64 for float64 arrays), or one byte without scaling, and for each value ceil(log2(len(levels))) bits,
    1 to 8. There is no stochastic rounding, as levels may be any numbers.

    Borders and levels are float32 numbers, for float64 arrays too. The arithmetic of float64 arrays is float64. The
    fields hold the shortest decimal numbers that round to these float32 numbers.

    Reference: dynamic 8-bit map: T. Dettmers et al., arXiv:2110.02861, section 2; NF4: T. Dettmers et al.,
    arXiv:2305.14314, section 3; step functions: G. Novikov et al., "Few-bit backward", arXiv:2202.00441.

    Takes float16, bfloat16, float32 and float64, of any shape.

    Args:
        borders: numbers within float32's range, strictly ascending as float32, one fewer than levels.
        levels: 2 to 256 numbers within float32's range.
        scaling: "absmax", "tensor" or None for no scaling.
        bucket_size: values in a bucket, at least 16. ("tensor" does not use it. Without scaling, larger buckets have
            fewer flags.)

    >>> Codebook([-0.5, 0.5], [-1, 0, 1])
    Codebook((-0.5, 0.5), (-1.0, 0.0, 1.0))
    >>> Codebook.nf4().levels[8]
    0.0795803
    """

    name: ClassVar[str] = "codebook"
    id: ClassVar[int] = 8
    dtypes: ClassVar[tuple[str, ...] | None] = FLOATS
    fixed_rate: ClassVar[bool] = True

    borders: Sequence[float]
    levels: Sequence[float]
    scaling: Literal["absmax", "tensor"] | None = field(default=None, kw_only=True)
    bucket_size: int = field(default=64, kw_only=True)

    def _check(self) -> None:
        borders, levels = checked_table(self.borders, self.levels)
        if self.scaling is not None:
            check_choice("scaling", self.scaling, _SCALINGS)
        self._set(borders=borders, levels=levels, bucket_size=checked_bucket_size(self.bucket_size))
        self._set(_hash=hash((borders, levels, self.scaling, self.bucket_size)))

    @property
    def bits(self) -> int:
        """Bits of each value."""
        return (len(self.levels) - 1).bit_length()

    @classmethod
    def nf4(cls, bucket_size: int = 64) -> "Codebook":
        """NF4 (arXiv:2305.14314, appendix E): 16 levels for normally distributed weights, scaled in buckets."""
        return cls(*table_named("nf4"), scaling="absmax", bucket_size=bucket_size)

    @classmethod
    def dynamic8(cls, bucket_size: int = 256, *, signed: bool = True) -> "Codebook":
        """The dynamic 8-bit map (arXiv:2110.02861, section 2): 256 levels in seven decades, scaled in buckets.

        Args:
            bucket_size: values in a bucket, at least 16.
            signed: whether there are levels below 0. False is for second moments, by whose roots optimizers divide:
                there are twice as many levels above 0, values below 0 become 0, and no value above 0 becomes 0. It
                becomes at least the lowest level, 3.25e-7 of the bucket's largest (if the dtype has such a number).
        """
        check_flag("signed", signed)
        return cls(*table_named("dynamic8" if signed else _UNSIGNED), scaling="absmax", bucket_size=bucket_size)

    @classmethod
    def fit(
        cls,
        samples: ArrayLike,
        bits: int,
        *,
        weights: ArrayLike | None = None,
        scaling: Literal["absmax", "tensor"] | None = None,
        bucket_size: int = 64,
    ) -> "Codebook":
        """The codebook with the least sum of squared errors for samples.

        Dynamic programming finds the exact minimum, apart from the rounding to float32 (X. Wu, J. Algorithms 12, 1991;
        A. Grønlund et al., arXiv:1701.07204), for at most 16384 different samples (after the scaling). More samples
        are first merged with their neighbours into this number.

        Args:
            samples: finite numbers of any shape, not all equal, split into buckets as an array is.
            bits: for each value, 1 to 8. There are fewer than 2^bits levels if there are fewer different samples.
            weights: weights of the squared errors: finite numbers of the samples' shape, none below 0; None for ones.
            scaling: the codebook's scaling. The errors are always those of the samples before the scaling.
            bucket_size: the codebook's bucket size.

        >>> Codebook.fit([0, 1, 4, 4, 5, 5], bits=1)
        Codebook((2.5,), (0.5, 4.5))
        """
        levels = 1 << checked_integer("bits", bits, 1, 8)
        x = checked_reals("samples", samples)
        w = np.ones(x.shape) if weights is None else checked_reals("weights", weights)
        if w.shape != x.shape:
            raise ValueError(f"weights: expected shape {x.shape}, that of the samples, got {w.shape}")
        if (w < 0).any():
            raise ValueError(f"weights: expected numbers of at least 0, got {w.min()}")
        # Checks scaling and bucket_size.
        cls((0.0,), (0.0, 1.0), scaling=scaling, bucket_size=bucket_size)
        unit, square = _scaled(x.reshape(-1), scaling, bucket_size)
        w = w.reshape(-1) * square
        unit, w = unit[w > 0], w[w > 0]
        if unit.size == 0 or unit.min() == unit.max():
            raise ValueError("samples: expected different numbers with weights above 0, got equal ones")
        points, w = _codebook_fit.merged_points(unit, w, _MOST_SUPPORT)
        splits = _codebook_fit.sorted_splits(points, w, min(levels, points.size))
        means = sorted({shortest(mean) for mean in _codebook_fit.segment_means(points, w, splits)})
        if len(means) < 2:
            raise ValueError("samples: expected different numbers in float32, got equal ones")
        return cls(midpoints(tuple(means)), means, scaling=scaling, bucket_size=bucket_size)

    @classmethod
    def fit_function(
        cls,
        function: Callable[[NDArray[np.float64]], ArrayLike],
        bits: int,
        domain: tuple[float, float],
        density: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
        *,
        points: int = 2048,
        bucket_size: int = 4096,
    ) -> "Codebook":
        """The step function with 2^bits steps that is nearest to a function: y is about function(x).

        Dynamic programming finds the least integral of density(x) (function(x) - y)^2 over the domain among all step
        functions with borders on a grid. The first and the last step extend beyond the domain. (For derivatives of
        activation functions: G. Novikov et al., arXiv:2202.00441, section 3.)

        Args:
            function: maps an array of numbers to finite numbers.
            bits: for each value, 1 to 8.
            domain: the least and the largest x, finite.
            density: maps x to its density, at least 0; None for the standard normal density.
            points: number of grid points, 2^bits to 8192; time and memory grow with its square. Half of them are
                evenly spaced, half follow the density.
            bucket_size: the codebook's bucket size. The codebook has no scaling.
        """
        levels = 1 << checked_integer("bits", bits, 1, 8)
        size = checked_integer("points", points, levels, 8192)
        low, high = _codebook_fit.checked_domain(domain)
        weight = _codebook_fit.sampled("density", density or _codebook_fit.normal_density)
        edges, x, w = _codebook_fit.density_grid(low, high, weight, size)
        y = _codebook_fit.sampled("function", function)(x)
        splits = _codebook_fit.ordered_splits(y, w, levels)
        means = _codebook_fit.segment_means(y, w, splits)
        return cls(edges[splits].tolist(), means.tolist(), bucket_size=bucket_size)

    def named_parameters(self) -> Parameters:
        return {
            "scaling": 0 if self.scaling is None else 1 + _SCALINGS.index(self.scaling),
            "bucket_size": self.bucket_size,
            "borders": tuple(self.borders),
            "levels": tuple(self.levels),
        }

    def config(self) -> dict[str, Any]:
        found, table = super().config(), self._table()
        if table is None:
            return found | {"borders": list(self.borders), "levels": list(self.levels)}
        del found["borders"], found["levels"]
        return found | {"table": table}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Codec":
        check_mapping("config", config)
        parameters = dict(config)
        if "table" in parameters:
            table = parameters.pop("table")
            check_choice("table", table, TABLE_NAMES)
            for name, numbers in zip(("borders", "levels"), table_named(table), strict=True):
                if name in parameters:
                    raise wrong_value(name, f"none beside table={table!r}", parameters[name])
                parameters[name] = numbers
        for name in ("borders", "levels"):
            if name not in parameters:
                tables = ", ".join(TABLE_NAMES)
                raise ValueError(f"{name}: expected borders and levels, or a table ({tables}), got none")
        return super().from_config(parameters)

    def __hash__(self) -> int:
        found: int = self.__dict__["_hash"]
        return found

    def __repr__(self) -> str:
        table = self._table()
        if table is not None and self.scaling == "absmax":
            name, unsigned = ("dynamic8", ", signed=False") if table == _UNSIGNED else (table, "")
            return f"Codebook.{name}(bucket_size={self.bucket_size}{unsigned})"
        rest = {"scaling": (self.scaling, None), "bucket_size": (self.bucket_size, 64)}
        shown = [f"{name}={value!r}" for name, (value, default) in rest.items() if value != default]
        return f"Codebook({', '.join([repr(self.borders), repr(self.levels), *shown])})"

    def _table(self) -> str | None:
        return name_of_table((tuple(self.borders), tuple(self.levels)))

    @classmethod
    def examples(cls) -> tuple[Codec, ...]:
        return (cls.dynamic8(), cls.nf4())


def _scaled(
    x: NDArray[np.float64], scaling: str | None, bucket_size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The scaled values, and the weights of their squared errors: the squares of the scales."""
    if scaling is None or x.size == 0:
        return x, np.ones(x.size)
    starts = np.arange(0, x.size, x.size if scaling == "tensor" else bucket_size)
    each = np.repeat(np.maximum.reduceat(np.abs(x), starts), np.diff([*starts, x.size]))
    return x / np.where(each > 0, each, 1), (each / max(each.max(), np.finfo(np.float64).tiny)) ** 2
