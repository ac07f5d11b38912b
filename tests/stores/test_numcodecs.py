"""arrcomp as a codec of numcodecs: buffers come back, and what is not allowed is told as numcodecs' users expect."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import arrcomp
import checks
from arrcomp import CorruptStreamError, ErrorBounded, Lossless

numcodecs = pytest.importorskip("numcodecs")

from arrcomp.stores.numcodecs import Arrcomp

CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
ROWS = np.arange(60, dtype=np.float32).reshape(6, 10)


def coded_by(codec: arrcomp.Codec) -> Arrcomp:
    return Arrcomp(codec, seed=checks.SEED if codec.needs_seed else None)


@given(name=st.sampled_from(checks.DTYPES), shape=hnp.array_shapes(min_dims=0, min_side=0), order=st.sampled_from("CF"))
def test_every_dtype_comes_back(name: str, shape: tuple[int, ...], order: Any) -> None:
    x = np.asarray(np.arange(np.prod(shape)).reshape(shape) % 2, checks.numpy_dtype(name), order=order)
    y = Arrcomp().decode(Arrcomp().encode(x))
    flat = not x.flags.c_contiguous
    checks.check_same_bits(y, x.ravel("F") if flat else x)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_every_codec_codes_as_it_does_elsewhere(codec: arrcomp.Codec) -> None:
    c = coded_by(codec)
    stream = c.encode(ROWS)
    assert stream == checks.stream_of(ROWS, codec)
    checks.check_same_bits(c.decode(stream), checks.array_of(stream))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_a_configuration_is_json_and_gives_the_codec_back(codec: arrcomp.Codec) -> None:
    c = coded_by(codec)
    again = numcodecs.get_codec(json.loads(json.dumps(c.get_config())))
    assert again == c
    assert again.codec == codec
    assert again.encode(ROWS) == c.encode(ROWS)
    assert pickle.loads(pickle.dumps(c)) == c  # noqa: S301


def test_the_default_is_lossless() -> None:
    assert numcodecs.get_codec({"id": "arrcomp"}) == Arrcomp() == Arrcomp(Lossless())


def test_a_codec_shows_how_it_is_made() -> None:
    assert repr(Arrcomp(arrcomp.SmaQ(), seed=3)) == "Arrcomp(SmaQ(main_bits=6, outlier_bits=8), seed=3)"


def test_a_fresh_process_finds_the_codec_by_its_name() -> None:
    code = "import numcodecs; print(numcodecs.get_codec({'id': 'arrcomp', 'codec': 'error-bounded', 'abs': 0.5}))"
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "Arrcomp(ErrorBounded(abs=0.5))\n", result.stderr


@pytest.mark.parametrize("data", [b"some bytes", bytearray(b"x"), b"", memoryview(b"abc")])
def test_buffers_are_bytes(data: Any) -> None:
    assert bytes(Arrcomp().decode(Arrcomp().encode(data))) == bytes(data)


def test_what_is_coded_may_be_any_buffer() -> None:
    stream = Arrcomp().encode(ROWS)
    for kind in (bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)):
        checks.check_same_bits(Arrcomp().decode(kind(stream)), ROWS)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_out_is_filled_whatever_its_dtype(dtype: str) -> None:
    out = np.zeros(ROWS.nbytes, np.uint8).view(dtype)
    found = Arrcomp().decode(Arrcomp().encode(ROWS), out=out)
    assert found is out
    checks.check_same_bits(out.view(np.float32).reshape(ROWS.shape), ROWS)
    buffer = bytearray(ROWS.nbytes)
    Arrcomp().decode(Arrcomp().encode(ROWS), out=buffer)
    assert bytes(buffer) == ROWS.tobytes()
    fortran = np.asfortranarray(np.zeros_like(ROWS))
    Arrcomp().decode(Arrcomp().encode(np.asfortranarray(ROWS)), out=fortran)
    checks.check_same_bits(fortran, ROWS)


def test_a_wrong_out_is_named() -> None:
    stream = Arrcomp().encode(ROWS)
    for size in (0, 59, 61):
        with pytest.raises(ValueError, match=f"^out: expected 240 bytes, got {4 * size}"):
            Arrcomp().decode(stream, out=np.zeros(size, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        Arrcomp().decode(stream, out=bytes(240))
    with pytest.raises(ValueError, match="contiguous"):
        Arrcomp().decode(stream, out=np.zeros((20, 60), np.float32)[::2, ::10])


KEPT_AS_BYTES = {
    "swapped": ROWS.astype(">f4"),
    "strings": np.array([["a", "bcd"], ["", "\u00e9"]]),
    "swapped strings": np.array(["a", "bcd"]).astype(">U3"),
    "bytes": np.array([b"a", b"", b"\xff\0b"]),
    "void": np.arange(12, dtype="u1").view("V3"),
    "structures": np.array([(1, 2.5, "x"), (3, 4.5, "y")], [("a", "<i4"), ("b", ">f8"), ("c", "U2")]),
    "long double": np.linspace(0, 1, 7, dtype="g"),
    "none": np.zeros((0, 3), "U5"),
    "scalar": np.array("abc"),
}


@pytest.mark.parametrize("codec", [Lossless(), arrcomp.BaseDelta()], ids=repr)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("x", KEPT_AS_BYTES.values(), ids=KEPT_AS_BYTES)
def test_what_the_format_lacks_is_kept_as_bytes(x: checks.Array, order: Any, codec: arrcomp.Codec) -> None:
    x = np.asarray(x, order=order)
    stream = Arrcomp(codec).encode(x)
    y = Arrcomp(codec).decode(stream)
    assert (y.dtype, y.shape) == (np.uint8, (x.nbytes,))
    assert y.tobytes() == x.tobytes(order="A")
    out = np.empty_like(x)
    assert Arrcomp(codec).decode(stream, out=out) is out
    assert out.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [[("a", "i4"), ("b", object)], np.dtypes.StringDType()], ids=["structure", "string"])
def test_pointers_are_no_bytes(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"^dtype: expected one without Python objects, got "):
        Arrcomp().encode(np.zeros(3, dtype))


def test_datetimes_are_integers() -> None:
    x = np.array(["2001-01-01", "NaT", "2026-06-05"], "M8[s]")
    checks.check_same_bits(Arrcomp().decode(Arrcomp().encode(x)), x.view(np.int64))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (ROWS.astype(">f4"), TypeError, "^dtype: expected <f4, in native byte order, got >f4"),
        (np.array(["a"]), TypeError, "^dtype: expected bool, int8, uint8, int16,.*got <U1"),
        (np.array([None]), TypeError, "object arrays are not supported"),
        (ROWS.astype([("a", "f4")]), TypeError, r"^dtype: expected bool, int8, uint8, int16,.*got \[\('a', '<f4'\)\]"),
        (ROWS[::2, ::2], ValueError, "contiguous"),
        (
            ROWS.astype(int),
            TypeError,
            "^dtype: expected float16, bfloat16, float32,.*got int64; Lossless takes every dtype",
        ),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_what_cannot_be_coded_is_named(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Arrcomp(ErrorBounded(abs=1)).encode(data)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"codec": "error-bounded"}, TypeError, "exactly one of abs, rel and pointwise"),
        ({"codec": "zip"}, arrcomp.UnknownCodecError, r"^config\['codec'\]: expected lossless,.*got 'zip'"),
        ({"codec": 3}, ValueError, "config"),
        ({"speed": "faster"}, ValueError, "^speed: expected 'default' or 'fast', got 'faster'"),
        ({"level": 3}, ValueError, r"^config: expected parameters of lossless \(speed, predictor\), got 'level'"),
        ({"predictor": "reference"}, ValueError, "^codec: expected one without a reference, as a chunk has none, got "),
        ({"codec": "smaq"}, TypeError, r"^seed: expected an integer, .*, got None"),
        ({"codec": "smaq", "seed": -1}, ValueError, "^seed: expected an integer .*, got -1"),
        ({"codec": "smaq", "seed": "7"}, TypeError, r"^seed: expected an integer .*, got '7' \(str\)"),
    ],
    ids=str,
)
def test_wrong_configurations_are_named(config: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numcodecs.get_codec({"id": "arrcomp"} | config)


def test_what_is_no_codec_is_named() -> None:
    with pytest.raises(TypeError, match=r"^codec: expected a codec .*, got 'lossless' \(str\)"):
        Arrcomp("lossless")  # type: ignore[arg-type]


def test_damage_is_noticed() -> None:
    stream = Arrcomp().encode(ROWS)
    for damaged in (b"", stream[:-1], stream + b"\0", bytes(100), stream[:50] + b"\xff" + stream[51:]):
        with pytest.raises(CorruptStreamError):
            Arrcomp().decode(damaged)
