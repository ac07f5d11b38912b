"""Wrong arguments: the package's own errors name them, and show no more of a value than a person reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
from arrcomp import QSGD, Compressed, ErrorBounded, Rule
from arrcomp._arguments import shown, type_name
from arrcomp._files import read_arrays

X = np.linspace(0, 1, 1000, dtype=np.float32)
C, Q = arrcomp.compress(X), arrcomp.compress(X, QSGD())
STOCHASTIC = QSGD(rounding="stochastic")
MOST = 1000  # characters of an error

WRONG: dict[str, Any] = {
    "integers beyond the core's": 2**70,
    "negative integers": -(2**70),
    "numbers beyond floats": 10**400,
    "numbers that Python does not write": -(10**5000),
    "long texts": "a" * 10**5,
    "long lists": list(range(10**5)),
    "lists of long texts": ["b" * 10**5],
    "floats": 1.5,
    "NaN": float("nan"),
    "bytes": b"c" * 10**5,
    "numpy's integers": np.uint64(2**63),
    "arrays": np.ones((2, 3)),
    "objects": object(),
    "classes": QSGD,
}


def calls() -> dict[str, Callable[[Any], Any]]:
    """A call for each argument of the public functions, by the name that its errors begin with."""
    return {
        "compress/x": lambda value: arrcomp.compress([value]),
        "compress/codec": lambda value: arrcomp.compress(X, value),
        "compress/out": lambda value: arrcomp.compress(X, out=value),
        "compress/threads": lambda value: arrcomp.compress(X, threads=value),
        "compress/seed": lambda value: arrcomp.compress(X, STOCHASTIC, seed=value),
        "decompress/c": lambda value: arrcomp.decompress(value),
        "decompress/out": lambda value: arrcomp.decompress(C, out=value),
        "decompress/threads": lambda value: arrcomp.decompress(C, threads=value),
        "decompress/max_nbytes": lambda value: arrcomp.decompress(C, max_nbytes=value),
        "compress_many/threads": lambda value: arrcomp.compress_many([X], threads=value),
        "decompress_many/threads": lambda value: arrcomp.decompress_many([C], threads=value),
        "accumulate/weight": lambda value: arrcomp.accumulate(Q, X.copy(), value),
        "accumulate/threads": lambda value: arrcomp.accumulate(Q, X.copy(), threads=value),
        "accumulate/into": lambda value: arrcomp.accumulate(Q, value),
        "compress_sum/threads": lambda value: arrcomp.compress_sum([Q], threads=value),
        "compress_sum/weights": lambda value: arrcomp.compress_sum([Q], weights=value),
        "Compressed.numpy/threads": lambda value: C.numpy(threads=value),
        "Compressed.verify/threads": lambda value: arrcomp.from_bytes(C.to_bytes()).verify(threads=value),
        "Compressed.to/device": lambda value: C.to(value),
        "max_compressed_nbytes/x": lambda value: arrcomp.max_compressed_nbytes(value, "float32"),
        "max_compressed_nbytes/dtype": lambda value: arrcomp.max_compressed_nbytes(3, value),
        "ErrorBounded/abs": lambda value: ErrorBounded(abs=value),
        "QSGD/bits": lambda value: QSGD(bits=value),
        "codec_from_config/config": lambda value: arrcomp.codec_from_config({"codec": value}),
        "QSGD.from_config/config": lambda value: QSGD.from_config(value),
        "Rule/codec": lambda value: Rule(value),
        "load_file/names": lambda value: arrcomp.load_file(__file__, names=value),
    }


@pytest.mark.parametrize("call", calls())
def test_errors_name_the_argument_and_are_short(call: str) -> None:
    function, name = calls()[call], call.partition("/")[2]
    refused = []
    for value in WRONG.values():
        try:
            function(value)
        except (TypeError, ValueError) as error:
            refused.append(str(error))
    assert len(refused) >= 5
    for message in refused:
        assert re.match(rf"{name}\b.*: expected |[^:]*: expected suffix", message), message[:MOST]
        assert len(message) < MOST
        assert "incompatible function arguments" not in message


def test_a_number_of_threads_is_one_that_the_core_can_count() -> None:
    assert arrcomp.compress(X, threads=2**31 - 1).to_bytes() == C.to_bytes()
    with pytest.raises(ValueError, match=r"^threads: expected an integer of at most 2147483647, .*, got 2147483648$"):
        arrcomp.compress(X, threads=2**31)


def test_long_names_of_arrays_are_shortened(tmp_path: Path) -> None:
    name, path = "n" * 10**5, tmp_path / "x.safetensors"
    with pytest.raises(TypeError, match=r"^array 'nnn.*nnn': dtype: expected") as caught:
        arrcomp.save_file({name: np.array(["text"])}, path)
    assert len(str(caught.value)) < MOST
    arrcomp.save_file({"x": X}, path)
    with pytest.raises(KeyError) as missing:
        arrcomp.load_file(path, names=[name])
    assert len(str(missing.value)) < MOST


def test_damaged_headers_are_not_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    header = b"{'descr': '" + b"x" * 9000 + b"', 'fortran_order': False, 'shape': (1,)}"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match=r"x\.npy: expected a \.npy file, got another or a damaged one: ") as caught:
        read_arrays(path)
    assert len(str(caught.value)) < MOST + 200


def test_values_are_shown_as_people_read_them() -> None:
    assert shown((1, 2)) == "(1, 2)"
    assert shown("text") == "'text'"
    assert shown(10**30) == str(10**30)
    assert shown(-(10**400)) == "an integer of 1329 bits"
    assert shown([10**5000]) == "[an integer of 16610 bits]"
    assert shown(range(3)) == "range(0, 3)"
    for value in ("a" * 1000, b"a" * 1000, (2**50,) * 64, {str(i): i for i in range(1000)}, [["b" * 300] * 300] * 300):
        assert len(shown(value)) <= 200


def test_types_of_this_package_are_named_as_users_import_them() -> None:
    assert type_name(C) == "arrcomp.Compressed"
    assert type_name(QSGD()) == "arrcomp.codecs.QSGD"
    assert type_name(X) == "numpy.ndarray"
    assert type_name(1) == "int"
    with pytest.raises(TypeError, match=r"got arrcomp\.Compressed$"):
        arrcomp.codec_from_config(C)  # type: ignore[arg-type]


def test_a_matrix_is_memory_as_other_arrays_are() -> None:
    grid = X.reshape(20, 50)
    out = np.zeros((20, arrcomp.max_compressed_nbytes(grid)), np.uint8).view(np.matrix)
    c = arrcomp.compress(grid, out=out)
    assert c.to_bytes() == arrcomp.compress(grid).to_bytes()
    assert (arrcomp.decompress(c) == grid).all()
    restored = np.zeros_like(grid).view(np.matrix)
    assert arrcomp.decompress(c, out=restored) is restored
    assert (restored == grid).all()
    summed = arrcomp.compress_sum([Q], out=np.zeros((2, 9000), np.uint8).view(np.matrix))
    assert summed.to_bytes() == arrcomp.compress_sum([Q]).to_bytes()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("x", lambda masked: arrcomp.compress(masked)),
        ("out", lambda masked: arrcomp.decompress(C, out=masked)),
        ("out", lambda masked: arrcomp.compress(X, out=masked.astype(np.uint8))),
        ("into", lambda masked: arrcomp.accumulate(Q, masked)),
        ("like", lambda masked: arrcomp.decompress(C, like=masked)),
        ("device", lambda masked: C.to(masked)),
    ],
)
def test_masked_arrays_are_refused_by_the_name_of_the_argument(name: str, call: Callable[[Any], Compressed]) -> None:
    with pytest.raises(TypeError, match=f"^{name}: expected an array without a mask, got a masked array; pass "):
        call(np.ma.array(X))
