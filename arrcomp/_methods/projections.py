"""Random projections of a batch: kinds, sizes, and where rows are sampled; what PyTorch and JAX have in common.

A projection is a matrix S of k rows, with a column for each row of a batch X, and E[S^T W S] = 1 for a diagonal W of
known weights. Then (W S Y)^T (S X) has the mean Y^T X, whatever X and Y: a layer that keeps S X and the seed of S in
place of X has an unbiased weight gradient. S itself is never stored (P. Drineas, R. Kannan, M. Mahoney, "Fast Monte
Carlo algorithms for matrices I", SIAM J. Comput. 36, 2006; of weight gradients: D. Bershatsky et al., "Memory-efficient
backpropagation through large linear layers", arXiv:2201.13195).

The frameworks draw the same S from the same seed. Random numbers are `seeds.derived(seed, stream, ...)`, where
`...` are a sample's number, a row's number, or the numbers of a row and of a word of S:

- "rows": X is cut into k runs of rows, as even as can be (`strata`), and S has one row of each, drawn with the upper 32
  bits; W is the runs' lengths. That has no more variance than drawing k rows without replacement where k divides the
  rows, less where neighbours are alike, and needs neither a permutation nor sorting. Rows are not weighted by their
  norms, as Drineas et al. do: behind a normalization the norms are alike, so that there is little to gain, and the
  draw, which the norms decide then, could not be repeated from the seed.
- "dct", "dft": "rows" of T D X, where D are random signs (lowest bits) and T is an orthonormal transform: the cosine
  transform of type II, or the Hartley transform, the discrete Fourier transform's real form (N. Ailon, B. Chazelle,
  "The fast Johnson-Lindenstrauss transform", SIAM J. Comput. 39, 2009). No row of X counts more than others.
- "rademacher": entries +-s, 64 of them from a word, the lowest bit first.
- "gaussian": entries s N(0, 1), two from a word by the method of G. Box and M. Muller (1958), the cosine first. With
  s^2 a power of four near 1 / k, S is exact in every floating-point type; W is 1 / (k s^2).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .._arguments import check_choice, checked_integer, checked_number

# The kind with the least work comes first; it is the default.
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
    """A kind of projection, and its number of rows for a batch.

    Args:
        kind: one of `KINDS`.
        ratio: rows of the projection by rows of the batch, rounded up; above 0, at most 1. None for 0.5, if there is no
            `dim` either.
        dim: this number of rows, instead of a ratio.
        least: the fewest rows that a ratio gives; batches with fewer rows keep all of them.
        most: the most rows that a ratio gives.

    Raises:
        TypeError: an argument is of a wrong type.
        ValueError: a number is out of its range, or `dim` comes with one of the others.
    """

    kind: str = KINDS[0]
    ratio: float | None = None
    dim: int | None = None
    least: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        check_choice("projection", self.kind, KINDS)
        for name in ("dim", "least", "most"):
            if getattr(self, name) is not None:
                checked_integer(_ARGUMENTS[name], getattr(self, name), 1, _MOST_ROWS)
        if self.ratio is not None:
            _check_ratio(self.ratio)
        if self.dim is not None:
            self._check_alone()
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"proj_dim_min={self.least} is above proj_dim_max={self.most}; at most that is allowed")

    def rows_of(self, batch: Any) -> Any:
        """How many rows the projection of a batch has: at most those of the batch, which is exact then.

        Args:
            batch: how many rows the batch has; an integer, or a compiler's symbol of one.

        Raises:
            ValueError: `dim` is more.
        """
        if self.dim is not None:
            if self.dim > batch:
                raise ValueError(
                    f"proj_dim={self.dim} is larger than the batch, which has {batch} rows (the product of all "
                    f"dimensions of x but the last); at most {batch} is allowed, or proj_dim_ratio, which fits every "
                    "batch"
                )
            return self.dim
        share = Fraction(DEFAULT_RATIO if self.ratio is None else self.ratio).limit_denominator(_FINENESS)
        dim = -(-batch * share.numerator // share.denominator)
        if self.most is not None:
            dim = min(dim, self.most)
        return min(max(dim, 1 if self.least is None else self.least), batch)

    def arguments(self) -> dict[str, Any]:
        """The fields by the names that layers have for them; what is None is left out."""
        return {name: value for field, name in _ARGUMENTS.items() if (value := getattr(self, field)) is not None}

    def _check_alone(self) -> None:
        for name in ("ratio", "least", "most"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"proj_dim={self.dim} beside {_ARGUMENTS[name]}={getattr(self, name)}: proj_dim alone is allowed, "
                    "or proj_dim_ratio with proj_dim_min and proj_dim_max"
                )


# What the layers call the fields.
_ARGUMENTS = {
    "kind": "projection",
    "ratio": "proj_dim_ratio",
    "dim": "proj_dim",
    "least": "proj_dim_min",
    "most": "proj_dim_max",
}


def strata(batch: Any, dim: Any) -> tuple[Any, Any]:
    """Runs of rows, one for each row of a projection: the shortest length, and how many, from the first, have one more.

    Run j starts at ``j * length + min(j, longer)``.
    """
    return batch // dim, batch % dim


def dense_scale(dim: int) -> tuple[float, float]:
    """The factor of a dense projection's entries, a power of two, and the weight of all its rows."""
    exponent = (dim.bit_length() - 1) // 2
    return 2.0**-exponent, 4.0**exponent / dim


def _check_ratio(ratio: Any) -> None:
    allowed = "a number above 0, at most 1,"
    if not 0 < checked_number("proj_dim_ratio", ratio, allowed) <= 1:
        raise ValueError(f"proj_dim_ratio={ratio!r}: {allowed} is allowed")
