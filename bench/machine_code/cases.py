"""What is counted: for each codec, the loops that an ordinary row passes, and how many instructions it may take.

A codec that is added has its cases here, and marks in its source (regions.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_MOST_REGISTERS = 64
_MOST_TO_ENCODE = 128  # groups: shared memory holds no more warps than these leave room for


@dataclass(frozen=True)
class Part:
    """A marked loop.

    Attributes:
        loop: its name.
        modes: for which of the marked calls it is looked at.
        needed: opcodes (patterns) that the way around must have, so many times.
        having: opcodes (patterns) that the loop has exactly so many times: for modes of templates, which have their
            lines in common.
        through: marked calls, of each of which it must have an instruction.
        kernel: part of the kernel's name, where it is not the case's: what runs before it.
        title: in the table, where a case has several of a loop.
    """

    loop: str
    modes: tuple[str, ...] = ()
    needed: Mapping[str, int] = field(default_factory=dict)
    having: Mapping[str, int] = field(default_factory=dict)
    through: tuple[str, ...] = ()
    kernel: str = ""
    title: str = ""


@dataclass(frozen=True)
class Case:
    """What is done with a row.

    Attributes:
        title: of its line on the page.
        source: what is compiled: a type of elements or a codec of buckets.
        kernel: part of the kernel's mangled name (a pattern).
        parts: the loops that an ordinary row passes.
        budget: instructions for a row, at most.
        registers: of a thread, at most.
        itemsize: bytes of a value.
    """

    title: str
    source: str
    kernel: str
    parts: tuple[Part, ...]
    budget: int
    registers: int = _MOST_REGISTERS
    itemsize: int = 4


# --- groups

_USUAL_GROUPS = "Li4E"  # in names: of at most 4 chunks, as all but those of codes
_REGULAR_DECODER = f"decode_regular_kernel.*{_USUAL_GROUPS}"
_TAKES_WORDS = {r"^LDS\.U16": 8}  # of the entropy coder, one a row
_WIDE_BITS = {r"^LDG\.E\.CONSTANT": 16}  # two words a row, as bits beyond 8 take them
# What becomes numbers, of 8 rows, and what is summed across the lanes.
_QUANTIZED = {r"^I2F": 8, r"^SHFL": 0}
_QUANTIZED_DIFFERENCES = {r"^I2F": 8, r"^SHFL": 6}
_DIFFERENCES = {r"^I2F": 0, r"^SHFL": 6}
_EXPONENTS = {r"^I2F": 0, r"^SHFL": 0}


def _decode(coder: str, having: Mapping[str, int], needed: Mapping[str, int]) -> tuple[Part, ...]:
    """A tile of a regular chunk."""
    return (Part("decode tile", (coder,), needed, having),)


# Of values without order. Those of smooth data are coded by their differences.
_DECODING: tuple[Case, ...] = (
    Case(
        "ErrorBounded float32, decode",
        "float32",
        _REGULAR_DECODER,
        _decode("entropy decoded", _QUANTIZED, _TAKES_WORDS),
        budget=55,
    ),
    Case(
        "ErrorBounded float32, decode, smooth",
        "float32",
        _REGULAR_DECODER,
        _decode("entropy decoded", _QUANTIZED_DIFFERENCES, _TAKES_WORDS),
        budget=55,
    ),
    Case(
        "Lossless float32, decode",
        "float32",
        _REGULAR_DECODER,
        _decode("entropy decoded", _EXPONENTS, {**_TAKES_WORDS, **_WIDE_BITS}),
        budget=55,
    ),
    Case(
        "Lossless float32, decode, smooth",
        "float32",
        _REGULAR_DECODER,
        _decode("entropy decoded", _DIFFERENCES, {**_TAKES_WORDS, **_WIDE_BITS}),
        budget=55,
    ),
    Case(
        "ErrorBounded float32 fast, decode",
        "float32",
        _REGULAR_DECODER,
        _decode("unpacked", _QUANTIZED, _WIDE_BITS),
        budget=40,
    ),
    Case(
        "Lossless float32 fast, decode",
        "float32",
        _REGULAR_DECODER,
        _decode("unpacked", _EXPONENTS, _WIDE_BITS),
        budget=40,
    ),
    Case(
        "ErrorBounded bfloat16, decode",
        "bfloat16",
        _REGULAR_DECODER,
        _decode("entropy decoded", _QUANTIZED, _TAKES_WORDS),
        budget=55,
        itemsize=2,
    ),
    Case(
        "Lossless bfloat16, decode",
        "bfloat16",
        _REGULAR_DECODER,
        _decode("entropy decoded", _EXPONENTS, _TAKES_WORDS),
        budget=55,
        itemsize=2,
    ),
)


def _encoding(title: str, source: str, parts: Sequence[Part], budget: int, itemsize: int = 4) -> Case:
    """A case of the encoder of groups, with the copy to the payload as if nothing got smaller."""
    parts = (*parts, Part("copy"))
    return Case(
        title,
        source,
        f"encode_kernelINS0_.*{_USUAL_GROUPS}",
        parts,
        budget,
        registers=_MOST_TO_ENCODE,
        itemsize=itemsize,
    )


# How values of an ordinary chunk are sampled, and become words.
_QUANTIZED_SAMPLES = (
    Part("sample values", ("quantized",)),
    Part("sample mean"),
    Part("sample predictions"),
    Part("sample repeats"),
)
_LOSSLESS_SAMPLES = (
    Part("bits of elements"),
    Part("sample values", ("lossless",)),
    Part("sample repeats"),
    Part("sample floats"),
    Part("sample exponents"),
)
_WIDE_WORDS = Part("words", ("exponent",), {r"STG?\.E\.64": 2})  # with their upper halves
_SYMBOLS = (Part("sample features"), Part("rans", needed={r"LDS\.64": 8}))

_ENCODING: tuple[Case, ...] = (
    _encoding(
        "ErrorBounded float32, encode",
        "float32",
        (
            *_QUANTIZED_SAMPLES,
            Part("words", ("quantized",)),
            Part("sample words", ("narrow words",)),
            Part("sample lengths"),
            Part("sample shifts"),
            Part("sample evenness"),
            Part("low bits", needed={r"ST\.E$": 1}),
            *_SYMBOLS,
        ),
        85,
    ),
    _encoding(
        "Lossless float32, encode",
        "float32",
        (
            *_LOSSLESS_SAMPLES,
            _WIDE_WORDS,
            Part("sample words", ("upper halves",)),
            Part("low bits", needed={r"LDG\.E\.U16": 8, r"ST\.E$": 6}),
            *_SYMBOLS,
        ),
        85,
    ),
    _encoding(
        "ErrorBounded float32 fast, encode",
        "float32",
        (*_QUANTIZED_SAMPLES, Part("words", ("fast",)), Part("pack", needed={r"ST\.E$": 3})),
        40,
    ),
    _encoding(
        "Lossless float32 fast, encode",
        "float32",
        (*_LOSSLESS_SAMPLES, _WIDE_WORDS, Part("pack", needed={r"LDG\.E\.U16": 8, r"ST\.E$": 7})),
        40,
    ),
    _encoding(
        "Lossless bfloat16, encode",
        "bfloat16",
        (
            *_LOSSLESS_SAMPLES,
            Part("words", ("exponent",)),
            Part("sample words", ("narrow words",)),
            Part("low bits", needed={r"ST\.E$": 2}),
            *_SYMBOLS,
        ),
        75,
        itemsize=2,
    ),
)

# A step of interpolation, of values with two neighbours on both sides; its codes are coded by the kernels of groups.
_PREDICTING: tuple[Case, ...] = tuple(
    Case(f"interpolation float32, {way}, {where}", "predicted_float32", kernel, (Part(loop),), budget, registers=96)
    for way, kernel, budget in (("encode", "encode_step_kernelINS0_", 120), ("decode", "decode_step_kernelINS0_", 102))
    for where, loop in (("along the last axis", "between elements"), ("along another axis", "between slices"))
)

_LOADS_FLOAT32, _STORES_FLOAT32 = {r"^LDG?\.E\.128": 4}, {r"^STG?\.E\.128": 4}
_STORES_BYTES = {r"^STG?": 5}  # four words of codes, and a row of scales


# Of 32 rows in any order, of 16 in order, as sums need them.
_LOADS_ANY, _LOADS_ROWS = {r"^LDG?\.E\.128": 8}, {r"^LDG?\.E$": 16}


def _encode_window(*through: str, **needed: int) -> tuple[Part, ...]:
    """What encodes a window of float32, with what fits the bucket that it is."""
    return (Part("encode codes", needed={**_LOADS_FLOAT32, **needed}, through=("one bucket", *through)),)


def _encode_buckets(*through: str, **needed: int) -> tuple[Part, ...]:
    """The same with several buckets in it, or a part of one."""
    return (Part("encode codes", needed={**_LOADS_FLOAT32, **needed}, through=("nearest", *through)),)


def _decode_window(*through: str, **needed: int) -> tuple[Part, ...]:
    return (Part("decode codes", needed={**_STORES_FLOAT32, **needed}, through=through),)


def _statistics(
    loop: str,
    title: str,
    loads: Mapping[str, int],
    *through: str,
    having: Mapping[str, int] | None = None,
    **needed: int,
) -> Part:
    """What looks at a bucket's values before they are encoded."""
    return Part(
        loop,
        needed={**loads, **needed},
        having=having or {},
        through=through,
        kernel="fit_chunks_kernel.*LanesIf",
        title=title,
    )


# Extremes of which the sums tell whether they are numbers, and sums of numbers that need not be scaled.
_MEAN_AND_DEVIATION = (
    _statistics("bucket extremes", "extremes", _LOADS_ANY, having={"^FFMA": 0}, FMNMX=64),
    _statistics("bucket sums", "sums", _LOADS_ROWS, having={"^FMUL": 16}, FADD=48),
)
_FILL = Part("fill table", ("simple",))


_ENCODE_EXTRA, _DECODE_EXTRA = "encode_extra_windows_kernel.*LanesIf", "decode_extra_windows_kernel.*LanesIf"
_ENCODE, _DECODE = "encode_windows_kernel.*LanesIf", "decode_windows_kernel.*LanesIf"

_BUCKETS: tuple[Case, ...] = (
    Case("QSGD 4 bits, encode", "qsgd", _ENCODE, _encode_window("nearest", "codes of 4 bits"), budget=32),
    Case(
        "QSGD 4 bits, stochastic (32 and Philox), encode",
        "qsgd",
        _ENCODE,
        _encode_window("stochastic", "codes of 4 bits"),
        budget=32 + 12,
    ),
    Case("QSGD 4 bits, decode", "qsgd", _DECODE, _decode_window("codes of 4 bits"), budget=32),
    Case(
        "QSGD 8 bits, encode", "qsgd", _ENCODE, _encode_window("nearest", "codes of 8 bits", **_STORES_BYTES), budget=32
    ),
    Case("QSGD 8 bits, decode", "qsgd", _DECODE, _decode_window("codes of 8 bits"), budget=32),
    Case(
        "FloatFormat e4m3, scaled, encode",
        "float_format",
        _ENCODE,
        _encode_window("nearest", "codes of 8 bits", "signs apart", **_STORES_BYTES),
        budget=32,
    ),
    Case(
        "FloatFormat e4m3, scaled, decode",
        "float_format",
        _DECODE,
        _decode_window("codes of 8 bits", "signs apart"),
        budget=32,
    ),
    Case(
        "Codebook NF4, encode",
        "codebook",
        _ENCODE,
        _encode_buckets("eight buckets", "cells", "codes of 4 bits", REDUX=8),
        budget=32,
    ),
    Case("Codebook NF4, decode", "codebook", _DECODE, _decode_window("codes of 4 bits"), budget=32),
    Case(
        "Codebook dynamic8, encode",
        "codebook",
        _ENCODE,
        _encode_buckets("two buckets", "cells", "codes of 8 bits", REDUX=2),
        budget=32,
    ),
    Case("Codebook dynamic8, decode", "codebook", _DECODE, _decode_window("codes of 8 bits"), budget=32),
    Case(
        "S2FP8, encode",
        "s2fp8",
        _ENCODE,
        (_statistics("bucket sums", "logarithms", _LOADS_ROWS, "logarithms"), *_encode_buckets("guesses")),
        budget=32,
    ),
    Case("S2FP8, decode", "s2fp8", _DECODE, (_FILL, *_decode_window()), budget=32),
    Case(
        "SmaQ 8 bits, encode",
        "smaq",
        _ENCODE_EXTRA,
        (*_MEAN_AND_DEVIATION, *_encode_buckets("not truncated", "codes of 8 bits")),
        budget=32,
    ),
    Case("SmaQ 8 bits, decode", "smaq", _DECODE_EXTRA, (_FILL, *_decode_window("codes of 8 bits")), budget=32),
    Case(
        "SmaQ 6 and 8 bits, a third outliers, encode",
        "smaq",
        _ENCODE_EXTRA,
        (
            *_MEAN_AND_DEVIATION,
            Part("encode within", needed={**_LOADS_ROWS, "VOTE": 16}, through=("low 6 bits",)),
            Part("extra bits", needed={r"^STS?\.(E\.)?U8": 2}, through=("two extra bits",)),
        ),
        budget=32,
    ),
    Case(
        "SmaQ 6 and 8 bits, a third outliers, decode",
        "smaq",
        _DECODE_EXTRA,
        (_FILL, Part("read extra bits", ("two extra bits",)), *_decode_window("codes of 6 bits", VOTE=16)),
        budget=32,
    ),
)

CASES = (*_DECODING, *_ENCODING, *_PREDICTING, *_BUCKETS)
