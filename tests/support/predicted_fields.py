"""Fields that are predicted, with multiples or not, and what their streams tell."""

from __future__ import annotations

from typing import Any

import numpy as np

import checks
import reference_reader
from arrcomp import Codec, ErrorBounded, Lossless
from checks import Array, numpy_dtype

PREDICTORS: tuple[Any, ...] = ("auto", "interpolation", "lorenzo", "columns")
ALWAYS: tuple[Any, ...] = ("interpolation", "lorenzo")  # those that predict whatever it takes
SHAPES: list[tuple[int, ...]] = [
    *((511,), (512,), (513,), (600,), (4097,), (9000,)),
    *((1, 700), (700, 1), (19, 27), (23, 31), (2, 300), (300, 2), (3, 257), (64, 64)),
    *((9, 10, 11), (64, 3, 5), (2, 2, 150), (1, 40, 41)),
    *((5, 6, 4, 7), (3, 3, 3, 33), (1, 40, 1, 41)),
    *((2, 3, 5, 4, 7), (3, 1, 2, 1, 150), (2, 1, 3, 10, 13), (5, 4, 3, 9, 8), (7, 2, 2, 2, 40), (3, 2, 2, 3, 4, 7)),
    (2,) * 9,
]


def table(name: str, rows: int, *columns: int, seed: int = 0) -> Array:
    """A table of noise: each column has another mean and another range."""
    rng = np.random.default_rng(seed)
    number = np.arange(np.prod(columns)).reshape(columns)
    scales = 2.0 ** (number * 5 % 12) / 2**8
    values = (rng.normal(0, 1, (rows, *columns)) + 3 * np.cos(number)) * scales
    kind = numpy_dtype(name)
    if kind.kind in "iu":
        values = np.clip(100 + 5 * values, np.iinfo(kind).min, min(np.iinfo(kind).max, 2**31))
    return np.asarray(values.astype(kind))


def field(name: str, *shape: int, noise: float = 0.0) -> Array:
    """A smooth field between -3 and 3, with noise on it."""
    rng = np.random.default_rng(len(shape))
    places = np.meshgrid(*(np.arange(size) / max(size, 9) for size in shape), indexing="ij")
    waves = [np.sin((5 + 2 * axis) * place + 0.7 * np.roll(places, 1, 0)[axis]) for axis, place in enumerate(places)]
    values = np.stack(waves).sum(axis=0) * 3 / len(shape) + noise * rng.normal(0, 1, shape)
    return np.asarray(values.astype(numpy_dtype(name)))


def codecs_of(predictor: Any, bound: float = 1e-2) -> list[Codec]:
    """Codecs of every kind of bound that predict."""
    return [
        ErrorBounded(abs=bound, predictor=predictor),
        ErrorBounded(rel=bound / 10, predictor=predictor),
        ErrorBounded(abs=bound, predictor=predictor, speed="fast"),
        Lossless(predictor=predictor),
        Lossless(predictor=predictor, speed="fast"),
    ]


def is_predicted(stream: bytes) -> bool:
    """Whether the array of a stream is predicted."""
    return reference_reader.describe_prediction(stream) is not None


def prediction_of(x: Array, codec: Codec) -> reference_reader.Prediction:
    """How an array is predicted, which it must be."""
    found = reference_reader.describe_prediction(checks.stream_of(x, codec))
    assert found is not None
    return found


def nbytes_of(array: Array, codec: Codec) -> int:
    """The bytes of an array's stream."""
    return len(checks.stream_of(array, codec))


def payload_of(stream: bytes) -> bytes:
    start, end = checks.payload_span(stream)
    return stream[start:end]


STEPS_OFFSET = 64  # in the payload of a predicted array of up to four axes
WEIGHTED = 8  # of the kind of a step


def weights_at(payload: bytes) -> int:
    """Where the weights of the steps begin in the payload of a predicted array."""
    return STEPS_OFFSET + 4 * payload[12]


def weighted(payload: bytes) -> int:
    """How many of its steps have weights."""
    return sum(kind >= WEIGHTED for kind in payload[STEPS_OFFSET + 1 : weights_at(payload) : 4])


def behind_steps(payload: bytes) -> int:
    """Where its multiples begin, or its codes."""
    end = weights_at(payload) + 4 * weighted(payload)
    return end + -end % 8


def exact_nbytes(x: Array, codec: Codec) -> int:
    """The bytes of what a predicted array keeps exactly."""
    return int.from_bytes(payload_of(checks.stream_of(x, codec))[56:64], "little")


def mask_of(x: Array, codec: Codec) -> reference_reader.GapMask:
    """The mask of a predicted array, which must have one."""
    found = reference_reader.describe_mask(checks.stream_of(x, codec))
    assert found is not None
    return found


KINDS: dict[str, tuple[float, float]] = {  # multiplier, divisor
    **{f"{places} decimal places": (1, 10.0**places) for places in range(1, 6)},
    **{f"times 0.1 ^ {places}": (10.0**-places, 1) for places in range(1, 5)},
    "by 255": (1, 255),
    "times 1 / 255": (1 / 255, 1),
    "by 65535": (1, 65535),
    "times 1 / 65535": (1 / 65535, 1),
    **{f"of 2 ^ {exponent}": (2.0**exponent, 1) for exponent in (-40, -3, 0, 5)},
}


STEPS: dict[str, tuple[float, float]] = {  # that are found in the numbers
    "0.0015259": (0.0015259, 1),
    "3.3 / 4096": (3.3 / 4096, 1),
    "7.3": (7.3, 1),
    "2.1e-9 and more": (2.12345678912345e-9, 1),
    "1 / 32767": (1, 32767),
    "1 / 4095": (1, 4095),
    "1 / 7": (1, 7),
}


def multiples(name: str, kind: str, *shape: int) -> Array:
    """A smooth field of multiples, made with one operation each."""
    dtype = numpy_dtype(name)
    arithmetic: Any = np.float64 if name == "float64" else np.float32
    multiplier, divisor = (arithmetic(number) for number in (KINDS | STEPS)[kind])
    k: Any = np.round(field("float64", *shape, noise=0.01).clip(-4, 4) * (20 if dtype.itemsize == 2 else 2000))
    assert multiplier == 1 or divisor == 1
    return np.asarray((k.astype(arithmetic) * multiplier / divisor).astype(dtype)) + dtype.type(0)  # no -0
