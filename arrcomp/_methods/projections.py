"""Random projections of a batch: kinds, sizes, and sampled rows. PyTorch and JAX share them.

A projection is a matrix S of k rows, with a column for each row of a batch X, and E[S^T W S] = 1 for a diagonal W of
known weights. Then (W S Y)^T (S X) has the mean Y^T X for all X and Y. So a layer that keeps S X and the seed of S in
place of X has an unbiased weight gradient. S itself is never stored (P. Drineas, R. Kannan, M. Mahoney, "Fast Monte
Carlo algorithms for matrices I", SIAM J. Comput. 36, 2006; for weight gradients: D. Bershatsky et al.,
"Memory-efficient backpropagation through large linear layers", arXiv:2201.13195).

The frameworks draw the same S from the same seed. Random numbers are `seeds.derived(seed, stream, ...)`, where
`...` are a sample's number, a row's number, or the numbers of a row and of a word of S:

- "rows": X is split into k strata of consecutive rows with lengths as equal as possible (`strata`). S samples one row
  of each stratum, by the upper 32 bits. W holds the strata's lengths. If k divides the rows, the variance is at most
  that of k rows without replacement; it is less if neighbours are similar. Neither a permutation nor sorting is needed.
  Rows are not weighted by their norms, as in Drineas et al.: after a normalization all norms are similar, so that
  weights gain little, and a draw that depends on norms could not be repeated from the seed.
- "dct", "dft": "rows" of T D X, where D are random signs (lowest bits) and T is an orthonormal transform: the cosine
  transform of type II, or the Hartley transform, the real form of the discrete Fourier transform (N. Ailon,
  B. Chazelle, "The fast Johnson-Lindenstrauss transform", SIAM J. Comput. 39, 2009). All rows of X count equally.
- "rademacher": entries +-s, 64 of them from a word, the lowest bit first.
- "gaussian": entries s N(0, 1), two from a word by the method of G. Box and M. Muller (1958), the cosine first. With
  s^2 a power of four near 1 / k, S is exact in every floating-point type. W is 1 / (k s^2).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .._arguments import check_choice, checked_integer, checked_number, wrong_value

# The first kind, with the least work, is the default.
KINDS = ("rows", "dct", "dft", "rademacher", "gaussian")
TRANSFORMS = ("dct", "dft")
DEFAULT_RATIO = 0.5

# Streams of random numbers of one seed.
SAMPLES, SIGNS, ENTRIES = range(3)

ENTRIES_OF_WORD = {"rademacher": 64, "gaussian": 2}

_MOST_ROWS = (1 << 31) - 1
_FINENESS = 1 << 20  # of ratios: products with numbers of rows stay below 2^63


@dataclass(frozen=True)
class Projection:
    """A kind of projection, and its number of rows for a batch: `dim`, or a ratio with bounds, and not both."""

    kind: str = KINDS[0]
    ratio: float | None = None  # of the batch's rows, above 0 and at most 1; None for 0.5; the product is rounded up
    dim: int | None = None
    least: int | None = None  # batches with fewer rows keep all of them
    most: int | None = None

    def __post_init__(self) -> None:
        check_choice("projection", self.kind, KINDS)
        for name in ("dim", "least", "most"):
            if getattr(self, name) is not None:
                checked_integer(_ARGUMENTS[name], getattr(self, name), 1, _MOST_ROWS)
        above_0 = "a number above 0 and at most 1"
        if self.ratio is not None and not 0 < checked_number("proj_dim_ratio", self.ratio, above_0) <= 1:
            raise wrong_value("proj_dim_ratio", above_0, self.ratio)
        if self.dim is not None:
            self._check_alone()
        if self.least is not None and self.most is not None and self.least > self.most:
            raise wrong_value("proj_dim_min", f"at most proj_dim_max={self.most}", self.least)

    def rows_of(self, batch: Any) -> Any:
        """Number of rows of a batch's projection, at most the batch's own number; if equal, the projection is exact.

        `batch` is an integer, or a compiler's symbol of one. Raises ValueError if `dim` is larger.
        """
        if self.dim is not None:
            if self.dim > batch:
                raise ValueError(
                    f"proj_dim: expected at most {batch}, the rows of the batch (the product of all dimensions of x "
                    f"but the last), got {self.dim}; proj_dim_ratio fits every batch"
                )
            return self.dim
        share = Fraction(DEFAULT_RATIO if self.ratio is None else self.ratio).limit_denominator(_FINENESS)
        dim = -(-batch * share.numerator // share.denominator)
        if self.most is not None:
            dim = min(dim, self.most)
        return min(max(dim, self.least or 1), batch)

    def arguments(self) -> dict[str, Any]:
        """The fields that are not None, by the layers' names for them."""
        return {name: value for field, name in _ARGUMENTS.items() if (value := getattr(self, field)) is not None}

    def _check_alone(self) -> None:
        for name in ("ratio", "least", "most"):
            if getattr(self, name) is not None:
                expected = "proj_dim alone, or proj_dim_ratio with proj_dim_min and proj_dim_max"
                got = f"proj_dim={self.dim} and {_ARGUMENTS[name]}={getattr(self, name)}"
                raise ValueError(f"proj_dim: expected {expected}, got {got}")


# The layers' names for the fields.
_ARGUMENTS = {
    "kind": "projection",
    "ratio": "proj_dim_ratio",
    "dim": "proj_dim",
    "least": "proj_dim_min",
    "most": "proj_dim_max",
}


def strata(batch: Any, dim: Any) -> tuple[Any, Any]:
    """Strata of rows, one for each row of a projection: their length, and how many of the first have one row more.

    Stratum j starts at ``j * length + min(j, longer)``.
    """
    return batch // dim, batch % dim


def dense_scale(dim: int) -> tuple[float, float]:
    """The scale of a dense projection's entries, a power of two, and the weight of its rows."""
    exponent = (dim.bit_length() - 1) // 2
    return 2.0**-exponent, 4.0**exponent / dim
