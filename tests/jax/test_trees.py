"""`Compressed` as a pytree, many arrays at once, and the calls that XLA makes, with what they must refuse."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import ErrorBounded, Lossless

jax = pytest.importorskip("jax")

from jax import numpy as jnp

import arrcomp.jax

RNG = np.random.default_rng(12)
X: NDArray[Any] = RNG.normal(0, 1, (6, 5000)).astype(np.float32)
STREAM = arrcomp.compress(X).to_bytes()
SOURCES = {
    "JAX": lambda: arrcomp.jax.compress(jnp.asarray(X)),
    "JAX, trimmed": lambda: arrcomp.jax.compress(jnp.asarray(X)).trim(),
    "JAX, one of many": lambda: arrcomp.compress_many([jnp.ones(3), jnp.asarray(X)])[1],
    "NumPy": lambda: arrcomp.compress(X),
    "a stream": lambda: arrcomp.from_bytes(STREAM),
}


@pytest.mark.parametrize("source", SOURCES)
def test_flattening_changes_it(source: str) -> None:
    c = SOURCES[source]()
    leaves, structure = jax.tree_util.tree_flatten(c)
    buffer, length = leaves
    assert (buffer.dtype, buffer.ndim, length.dtype, length.shape) == (np.uint8, 1, np.uint32, (2,))
    if not source.startswith("JAX"):
        assert isinstance(buffer, np.ndarray)
        assert buffer.size == c.payload.nbytes
    again = jax.tree_util.tree_unflatten(structure, leaves)
    assert jax.tree_util.tree_structure(again) == structure == jax.tree_util.tree_structure(SOURCES[source]())
    assert hash(structure) == hash(jax.tree_util.tree_structure(again))
    assert again.to_bytes() == c.to_bytes() == STREAM
    for y in (arrcomp.jax.decompress(c), arrcomp.jax.decompress(again), jax.jit(arrcomp.jax.decompress)(c)):
        assert isinstance(y, jax.Array)
        checks.check_same_bits(np.asarray(y), X)
    inside = jax.jit(lambda: arrcomp.jax.decompress(c))()  # a constant of the program
    checks.check_same_bits(np.asarray(inside), X)


def test_a_tree_with_it_is_not_a_tree() -> None:
    tree = {"a": arrcomp.jax.compress(jnp.asarray(X)), "b": (arrcomp.jax.compress(jnp.ones(3)), 1)}
    for same in (
        jax.tree_util.tree_map(lambda leaf: leaf, tree),
        jax.device_put(tree, jax.devices()[0]),
        jax.device_get(tree),
        jax.jit(lambda tree: tree)(tree),
        jax.lax.cond(jnp.array(True), lambda tree: tree, lambda tree: tree, tree),
    ):
        assert same["a"].to_bytes() == STREAM
        assert same["b"][0].shape == (3,)
        assert same["a"].device == "cpu"
        checks.check_same_bits(np.asarray(arrcomp.decompress(same["a"])), X)
        checks.check_same_bits(np.asarray(arrcomp.decompress(same["a"], like=jnp.zeros(1))), X)
        checks.check_same_bits(arrcomp.decompress(same["a"], like=X), X)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    assert paths == ["['a'].buffer", "['a'].length", "['b'][0].buffer", "['b'][0].length", "['b'][1]"]
    other = jax.tree_util.tree_structure(arrcomp.jax.compress(jnp.asarray(X), Lossless(speed="fast")))
    assert other != jax.tree_util.tree_structure(tree["a"])


def test_placeholders_break_it() -> None:
    c = arrcomp.jax.compress(jnp.asarray(X))
    structure = jax.tree_util.tree_structure(c)
    for leaf in (None, object(), 1, "x", jax.ShapeDtypeStruct((3,), np.uint8)):
        twin = jax.tree_util.tree_unflatten(structure, [leaf, leaf])
        assert jax.tree_util.tree_leaves(twin, is_leaf=lambda x: x is None) == [leaf, leaf]
        assert "float32[6, 5000]" in repr(twin)
    shapes = jax.eval_shape(arrcomp.jax.compress, jax.ShapeDtypeStruct((6, 5000), np.float32))
    assert jax.tree_util.tree_structure(shapes) == structure
    assert [leaf.shape for leaf in jax.tree_util.tree_leaves(shapes)] == [
        leaf.shape for leaf in jax.tree_util.tree_leaves(c)
    ]
    assert jax.eval_shape(arrcomp.jax.decompress, shapes).shape == (6, 5000)


def test_payloads_of_odd_sizes_are_not_batched() -> None:
    arrays = [RNG.normal(0, 1, 700 + 32 * i).astype(np.float32) for i in range(4)]
    for array in arrays:
        buffer, length = jax.tree_util.tree_leaves(arrcomp.compress(array))
        structure = jax.tree_util.tree_structure(arrcomp.compress(array))
        batch = jax.tree_util.tree_unflatten(structure, [jnp.stack([buffer] * 3), jnp.stack([length] * 3)])
        checks.check_same_bits(np.asarray(jax.vmap(arrcomp.jax.decompress)(batch)), np.stack([array] * 3))


def test_it_does_not_pickle_or_copy() -> None:
    c = arrcomp.jax.compress(jnp.asarray(X))
    for again in (pickle.loads(pickle.dumps(c)), copy.copy(c), copy.deepcopy(c), c.trim()):  # noqa: S301
        assert isinstance(again.payload.buffer, jax.Array)
        assert again.to_bytes() == STREAM
        checks.check_same_bits(np.asarray(arrcomp.decompress(again)), X)


# Many arrays at once


@pytest.mark.parametrize("compiled", [False, True])
def test_many_differ_from_each(compiled: bool) -> None:
    codec = ErrorBounded(rel=1e-3)
    arrays = {f"w{i}": RNG.normal(0, i, (i, 300)).astype(np.float32) for i in range(1, 6)}
    tree = {key: jnp.asarray(value) for key, value in arrays.items()} | {"step": jnp.arange(7)}
    compress = lambda tree: arrcomp.compress_many(tree, codec)  # noqa: E731
    many = (jax.jit(compress) if compiled else compress)(tree)
    assert many["step"].to_bytes() == arrcomp.compress(np.asarray(tree["step"])).to_bytes()
    for key, array in arrays.items():
        assert many[key].to_bytes() == arrcomp.compress(array, codec).to_bytes()
    for back in (arrcomp.decompress_many(many), jax.jit(arrcomp.decompress_many)(many)):
        for key, array in arrays.items():
            expected = arrcomp.decompress(arrcomp.compress(array, codec))
            checks.check_same_bits(np.asarray(back[key]), expected)
    some = arrcomp.decompress_many([many["w3"], many["w1"]])  # not all that share their lengths, nor in order
    assert [array.shape for array in some] == [(3, 300), (1, 300)]
    assert many["w2"].payload.copy().nbytes == many["w2"].payload.nbytes


def test_many_under_vmap_differ_from_each() -> None:
    x, constant = jnp.asarray(X), jnp.ones(10)
    mapped = jax.vmap(lambda row: arrcomp.compress_many([row, row[:100], constant]))(x)
    back = jax.vmap(arrcomp.decompress_many)(mapped)
    for found, expected in zip(back, (X, X[:, :100], np.ones((6, 10), np.float32)), strict=True):
        checks.check_same_bits(np.asarray(found), expected)


# What XLA calls


ATTRIBUTES = {
    "codec_id": 1,
    "parameters": np.zeros(2),
    "dtype_id": 12,
    "counts": np.array([10], np.int64),
    "threads": 0,
}
BUFFER = jax.ShapeDtypeStruct((1000,), np.uint8)
LENGTH = jax.ShapeDtypeStruct((2,), np.uint32)
STATUS = jax.ShapeDtypeStruct((), np.uint32)
ARRAY = jax.ShapeDtypeStruct((10,), np.float32)
FLOATS = np.ones(10, np.float32)
BYTES = np.zeros(1000, np.uint8)
PAIR = np.zeros(2, np.uint32)
ENCODE = ("arrcomp_encode", [FLOATS], [BUFFER, LENGTH])
DECODE = ("arrcomp_decode", [BYTES, PAIR], [ARRAY, STATUS])
ROUNDTRIP = ("arrcomp_roundtrip", [FLOATS], [ARRAY])
REFUSED: dict[str, tuple[tuple[str, list[Any], list[Any]], dict[str, Any]]] = {
    "dtype_id: expected 1 to 28, got 29": (ENCODE, {"dtype_id": 29}),
    "dtype_id: expected 1 to 28, got -1": (DECODE, {"dtype_id": -1}),
    "codec_id: expected the id of a codec, got 77": (ENCODE, {"codec_id": 77}),
    "parameters: expected fast, predictor, as lossless takes them, got": (DECODE, {"parameters": np.zeros(1)}),
    "parameters: expected kind, bound, fast, has_fill, fill, predictor, as error-bounded takes them, got": (
        ROUNDTRIP,
        {"codec_id": 2, "parameters": np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])},
    ),
    "counts: expected one for each array": (ENCODE, {"counts": np.zeros(0, np.int64)}),
    "counts: expected 0 to .*, got -1": (DECODE, {"counts": np.array([-1], np.int64)}),
    "threads: expected 0 to 1048576, got -1": (ROUNDTRIP, {"threads": -1}),
    "array 0: expected 44 bytes, got 40": (ENCODE, {"counts": np.array([11], np.int64)}),
    "array 0: expected 36 bytes, got 40": (DECODE, {"counts": np.array([9], np.int64)}),
    "array 0: expected XLA's element type": (ENCODE, {"dtype_id": 10}),
    "dtype_id: expected one that codec 2 takes with these parameters": (
        ENCODE,
        {"codec_id": 2, "parameters": np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), "dtype_id": 3},
    ),
    "operands: expected 2, got 1": (ENCODE, {"counts": np.array([10, 10], np.int64)}),
    "bytes for a payload: expected": (
        ("arrcomp_encode", [FLOATS], [jax.ShapeDtypeStruct((50,), np.uint8), LENGTH]),
        {},
    ),
    "results: expected 3, got 2": (
        ("arrcomp_decode", [BYTES, BYTES, PAIR], [ARRAY, STATUS]),
        {"counts": np.array([10, 10])},
    ),
    "lengths: expected 1, got 0": (("arrcomp_decode", [BYTES], [ARRAY, STATUS]), {}),
    "lengths: expected 1, got 2": (("arrcomp_decode", [BYTES, PAIR, PAIR], [ARRAY, STATUS]), {}),
    "expected a multiple of 2 values, got 3": (
        ("arrcomp_encode", [FLOATS], [BUFFER, jax.ShapeDtypeStruct((3,), np.uint32)]),
        {},
    ),
    "expected a multiple of 7 values, got 10": (ROUNDTRIP, {"counts": np.array([7], np.int64)}),
    "expected a multiple of 10 values, got 1": (
        ("arrcomp_roundtrip", [np.ones(1, np.float32)], [jax.ShapeDtypeStruct((1,), np.float32)]),
        {},
    ),
    "not one of this data type and number of elements": (DECODE, {}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_wrong_call_is_carried_out(message: str) -> None:
    (target, operands, results), changed = REFUSED[message]
    call = jax.ffi.ffi_call(target, results)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match=message):
        jax.block_until_ready(jax.jit(lambda: call(*operands, **(ATTRIBUTES | changed)))())


def test_importing_arrcomp_imports_jax() -> None:
    code = "import sys, arrcomp; assert 'jax' not in sys.modules; import arrcomp.jax; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], check=True)
