"""What "auto" finds on boxes of an array is what the array takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from arrcomp import Codec, ErrorBounded, Lossless
from checks import Array
from predicted_fields import ALWAYS, codecs_of, field, nbytes_of, prediction_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm]

LARGE = [(59, 57, 61), (6, 5, 70, 75), (10, 4, 2, 41, 60), (700, 800), (3, 400, 420)]  # more than is tried as a whole


def walks(*shape: int) -> Array:
    """Random walks along the last axis, far from each other."""
    rng = np.random.default_rng(5)
    starts = 1e3 * rng.standard_normal((*shape[:-1], 1))
    return np.asarray((starts + np.cumsum(rng.standard_normal(shape), axis=-1)).astype(np.float32))


def smooth(*shape: int) -> Array:
    return field("float32", *shape)


def noisy(*shape: int) -> Array:
    return field("float32", *shape, noise=0.05)


def centred(*shape: int) -> Array:
    """Noise in the middle, and next to nothing around it."""
    places = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
    distance = np.sqrt(np.sum(np.square(places), axis=0))
    rng = np.random.default_rng(6)
    return np.asarray((np.exp(-4 * distance**2) * rng.standard_normal(shape)).astype(np.float32))


@pytest.mark.parametrize("codec", codecs_of("auto")[1:4:2], ids=repr)
@pytest.mark.parametrize("shape", LARGE, ids=str)
@pytest.mark.parametrize("values", [smooth, noisy, walks, centred])
def test_no_named_predictor_takes_far_fewer_bytes(
    values: Callable[..., Array], shape: tuple[int, ...], codec: Codec
) -> None:
    x = values(*shape)
    named = [dataclasses.replace(codec, predictor=predictor) for predictor in (*ALWAYS, None)]
    more = 1.1 if values is centred else 1.03  # boxes have more of the middle than the array
    assert nbytes_of(x, codec) <= more * min(nbytes_of(x, other) for other in named)


def test_ends_of_boxes_do_not_count() -> None:
    x = smooth(700, 800)  # where they count, another way of interpolation seems better
    auto, best = (nbytes_of(x, Lossless(predictor=predictor)) for predictor in ("auto", "interpolation"))
    assert auto <= 1.01 * best


def test_of_five_axes_one_box_is_tried() -> None:
    x = smooth(3, 5, 7, 37, 43)
    for codec in (ErrorBounded(rel=1e-3, predictor="auto"), Lossless(predictor="auto")):
        assert len(prediction_of(x, codec).steps) > 0
