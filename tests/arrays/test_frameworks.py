"""The conformance matrix: every codec on every dtype, framework, device and way to call writes NumPy's bytes.

The table of what agrees is printed at the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import _dtypes
from checks import DTYPES, FLOATS
from frameworks import COMPILED, PLACES, Place, seed_of

from .test_conformance import CODECS, mixture

pytestmark = pytest.mark.wheel

SHAPE = (37, 161)  # two chunks, the second not full
CASES = [
    pytest.param(place, way, codec, dtype, id=f"{place.name}-{place.device}-{way}-{codec!r}-{dtype}")
    for place in PLACES
    for way in place.ways
    for codec in CODECS
    for dtype in DTYPES
    if codec.takes(_dtypes.by_name(dtype))
]


@pytest.mark.together("place", "way")
@pytest.mark.together("place", "codec")
@pytest.mark.together("place", "dtype")
@pytest.mark.parametrize(("place", "way", "codec", "dtype"), CASES)
@pytest.mark.filterwarnings("ignore:.*different byte:UserWarning")
def test_the_same_everywhere(
    place: Place, way: str, codec: arrcomp.Codec, dtype: str, record_property: Callable[[str, object], None]
) -> None:
    place.check()
    array = mixture(dtype, 20_000)[-SHAPE[0] * SHAPE[1] :].reshape(SHAPE)
    expected = arrcomp.compress(array, codec, seed=seed_of(codec))
    compress, decompress = place.functions(way, codec)
    with place.context():
        x = place.put(array)
        c = compress(x)
        y = decompress(c)
        assert c.device.partition(":")[0] == place.device
        assert c.to_bytes() == expected.to_bytes()
        assert place.describe(y) == place.describe(x)
        checks.check_same_bits(place.get(y), arrcomp.decompress(expected))
    record_property("conformance", (place.title, way, type(codec).__name__, repr(codec), dtype))


PREDICTED: tuple[arrcomp.Codec, ...] = (
    arrcomp.ErrorBounded(abs=1e-3, predictor="interpolation"),
    arrcomp.ErrorBounded(rel=1e-3, predictor="auto", speed="fast"),
    arrcomp.Lossless(predictor="lorenzo"),
    arrcomp.ErrorBounded(pointwise=1e-3, predictor="columns"),
)
WAYS = [pytest.param(place, way, id=f"{place.name}-{place.device}-{way}") for place in PLACES for way in place.ways]


@pytest.mark.together("place", "codec")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("codec", PREDICTED, ids=repr)
@pytest.mark.parametrize(("place", "way"), WAYS)
@pytest.mark.filterwarnings("ignore:.*different byte:UserWarning")
def test_predicted_arrays_are_the_same_everywhere(place: Place, way: str, codec: arrcomp.Codec, dtype: str) -> None:
    place.check()
    array = (np.sin(np.arange(30)[:, None] / 5) + np.cos(np.arange(41) / 7)).astype(checks.numpy_dtype(dtype))
    array[3:5, :7] = np.nan
    expected = arrcomp.compress(array, codec)
    compress, decompress = place.functions(way, codec)
    with place.context():
        x = place.put(array)
        c = compress(x)
        y = decompress(c)
        assert c.to_bytes() == expected.to_bytes()
        assert place.describe(y) == place.describe(x)
        checks.check_same_bits(place.get(y), arrcomp.decompress(expected))


WITH_REFERENCE: tuple[arrcomp.Codec, ...] = (arrcomp.Lossless(), arrcomp.ErrorBounded(abs=1e-2))


def changed_pair(dtype: str) -> tuple[checks.Array, checks.Array]:
    """An array, and what it was before some of its values changed."""
    old = mixture(dtype, 20_000)[-SHAPE[0] * SHAPE[1] :].reshape(SHAPE)
    new = old.copy()
    new[::7] = old[-SHAPE[0] :: -1][: len(new[::7])]
    return new, old


@pytest.mark.together("place", "codec")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "int64", "bool", "float8_e4m3fn"])
@pytest.mark.parametrize("codec", WITH_REFERENCE, ids=repr)
@pytest.mark.parametrize(("place", "way"), WAYS)
@pytest.mark.filterwarnings("ignore:.*different byte:UserWarning")
def test_arrays_with_a_reference_are_the_same_everywhere(
    place: Place, way: str, codec: arrcomp.Codec, dtype: str
) -> None:
    place.check()
    if not codec.takes(_dtypes.by_name(dtype)):
        pytest.skip("the codec takes floats")
    array, before = changed_pair(dtype)
    expected = arrcomp.compress(array, codec, reference=before)
    compress, decompress = place.functions_with_reference(way, codec)
    with place.context():
        x, old = place.put(array), place.put(before)
        c = compress(x, old)
        y = decompress(c, old)
        assert c.needs_reference
        assert c.to_bytes() == expected.to_bytes()
        assert place.describe(y) == place.describe(x)
        checks.check_same_bits(place.get(y), arrcomp.decompress(expected, reference=before))
        assert c.reference_hash == arrcomp.content_hash(old) == arrcomp.content_hash(before)


@pytest.mark.parametrize(("place", "way"), WAYS)
@pytest.mark.filterwarnings("ignore:.*different byte:UserWarning")
def test_a_wrong_reference_is_an_error_everywhere(place: Place, way: str) -> None:
    place.check()
    array, before = changed_pair("float32")
    compress, decompress = place.functions_with_reference(way, arrcomp.Lossless())
    with place.context():
        x, old = place.put(array), place.put(before)
        c = compress(x, old)
        with pytest.raises(Exception, match=r"reference") as raised:
            place.get(decompress(c, x))
    # Compiled programs of JAX have errors of their own.
    assert isinstance(raised.value, arrcomp.WrongReferenceError) or (place.name, way) == ("JAX", COMPILED)


@pytest.mark.parametrize(
    "place", [place for place in PLACES if place.name in ("NumPy", "PyTorch", "CuPy")], ids=lambda p: p.title
)
def test_references_become_arrays_in_place(place: Place) -> None:
    place.check()
    array, before = changed_pair("float32")
    x, old = place.put(array), place.put(before.copy())
    for codec in (arrcomp.Lossless(), arrcomp.ErrorBounded(abs=1e-2)):
        target = place.put(before.copy())
        c = arrcomp.compress(x, codec, reference=old)
        wanted = place.get(arrcomp.decompress(c, reference=old))
        assert arrcomp.decompress(c, reference=target, out=target) is target
        checks.check_same_bits(place.get(target), wanted)
        with pytest.raises(arrcomp.WrongReferenceError):  # it is another array now
            arrcomp.decompress(c, reference=target, out=target)
        checks.check_same_bits(place.get(target), wanted)
    room = place.put(np.concatenate([before.reshape(-1), before.reshape(-1)]))
    old, moved = room[: before.size].reshape(SHAPE), room[1 : 1 + before.size].reshape(SHAPE)
    with pytest.raises(ValueError, match=r"out: expected memory of its own, got memory that overlaps"):
        arrcomp.decompress(c, reference=old, out=moved)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "complex64", "int32"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.title)
def test_values_that_are_not_finite_are_found(place: Place, dtype: str) -> None:
    place.check()
    array = mixture(dtype, 20_000)[:6000].copy()  # without the random bits at its end
    arrcomp.compress(place.put(array), check_finite=True)
    if dtype != "int32":
        array[777] = np.nan
        with pytest.raises(ValueError, match="check_finite=False"):
            arrcomp.compress(place.put(array), check_finite=True)
        arrcomp.compress(place.put(array))
