"""Error feedback: what was lost of a gradient is added to the next one (arXiv:1905.05957, algorithm 1)."""

import warnings
from collections.abc import Iterable

from ..codecs import QSGD, Codec

# Its levels are nearer to 0 than QSGD's two.
ONE_BIT_CODEC = 'Codebook((0.0,), (-0.25, 0.25), scaling="absmax", bucket_size=512)'


def check_error_feedback(codecs: Iterable[Codec], argument: str) -> None:
    """Raise ValueError for a codec with which residuals would grow; `argument` turns error feedback on."""
    if _has_one_bit(codecs):
        raise ValueError(
            f"bits: expected at least 2 with {argument}, got 1; QSGD's two levels are so far apart that residuals "
            f"would grow without bound. A codec with levels nearer to 0 works: codec={ONE_BIT_CODEC}"
        )


def warn_of_one_bit(codecs: Iterable[Codec | None], instead: str) -> None:
    """Warn of gradients through QSGD with 1 bit. `instead` says what works besides 2 bits."""
    if _has_one_bit(codecs):
        warnings.warn(
            "bits: expected at least 2 for gradients, got 1; each value becomes the lowest or the highest level of its "
            f"bucket, and models learn badly or nothing. Use 2 bits, {instead}",
            stacklevel=3,
        )


def _has_one_bit(codecs: Iterable[Codec | None]) -> bool:
    return any(isinstance(codec, QSGD) and codec.bits == 1 for codec in codecs)
