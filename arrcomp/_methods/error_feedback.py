"""Error feedback: what was lost of a gradient is added to the next one (arXiv:1905.05957, algorithm 1)."""

from collections.abc import Iterable

from ..codecs import QSGD, Codec


def check_error_feedback(codecs: Iterable[Codec], argument: str) -> None:
    """Raise ValueError for a codec with which residuals would grow; `argument` turns error feedback on."""
    if any(isinstance(codec, QSGD) and codec.bits == 1 for codec in codecs):
        raise ValueError(
            f"bits: expected at least 2 with {argument}, got 1; QSGD's two levels are so far apart that residuals "
            "would grow without bound. A codec with levels nearer to 0 works: "
            'codec=Codebook((0.0,), (-0.25, 0.25), scaling="absmax", bucket_size=512)'
        )
