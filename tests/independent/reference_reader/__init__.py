"""A reader of arrcomp streams written from `native/FORMAT.md` alone, in NumPy; sections below are that page's.

It shares no code with arrcomp. It was written before its author had seen any, so that the page is known to say
everything; what the page left open then, it was mended for. Keep it so: a new part is written from the page.
Clear rather than fast.

`CODECS` has the names of the codecs that it knows, by id. `read_stream` gives the array, `describe` and
`describe_lines` what the writer chose for each chunk of a payload, `describe_prediction` how it predicted the array,
`describe_mask` which gaps a mask has, `describe_comparison` how it coded the array against a reference,
`reference_nbytes` how long that is, and `is_specified` whether the page says what all elements are. They raise
`CorruptStreamError` where section 7 of the format speaks of corruption, `UnsupportedStreamError` for an unknown codec
or a newer major version, and `WrongReferenceError` for a reference that has another `content_hash`.
"""

from .base_delta import Line, LineChunk
from .chunks import Chunk
from .dtypes import DTYPES, Dtype
from .predicted import GapMask, Prediction, Step
from .referenced import Comparison, content_hash
from .source import CorruptStreamError, UnsupportedStreamError, WrongReferenceError
from .stream import (
    CODECS,
    describe,
    describe_comparison,
    describe_lines,
    describe_mask,
    describe_prediction,
    is_specified,
    reference_nbytes,
)
from .stream import read as read_stream

ERRORS = (CorruptStreamError, UnsupportedStreamError, WrongReferenceError)

__all__ = [
    "CODECS",
    "DTYPES",
    "ERRORS",
    "Chunk",
    "Comparison",
    "CorruptStreamError",
    "Dtype",
    "GapMask",
    "Line",
    "LineChunk",
    "Prediction",
    "Step",
    "UnsupportedStreamError",
    "WrongReferenceError",
    "content_hash",
    "describe",
    "describe_comparison",
    "describe_lines",
    "describe_mask",
    "describe_prediction",
    "is_specified",
    "read_stream",
    "reference_nbytes",
]
