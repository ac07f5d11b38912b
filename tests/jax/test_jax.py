"""`arrcomp.jax` inside JAX's transformations, and its arrays outside of them."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import CorruptStreamError, ErrorBounded, Lossless

jax = pytest.importorskip("jax")

from jax import lax
from jax import numpy as jnp

import arrcomp.jax
from arrcomp.jax import _ops

RNG = np.random.default_rng(11)
X: NDArray[Any] = RNG.normal(0, 1, (6, 5000)).astype(np.float32)
CODECS = (
    Lossless(),
    Lossless(speed="fast"),
    ErrorBounded(abs=1e-3),
    ErrorBounded(rel=1e-3),
    ErrorBounded(pointwise=0.1),
)
BOUNDED = ErrorBounded(abs=1e-3)
DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e4m3",
    "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4",
)  # fmt: skip


def there_and_back(x: Any, codec: arrcomp.Codec = BOUNDED) -> Any:
    return arrcomp.jax.decompress(arrcomp.jax.compress(x, codec))


def expected(x: NDArray[Any], codec: arrcomp.Codec = BOUNDED) -> NDArray[Any]:
    """What NumPy makes of it."""
    return np.asarray(arrcomp.decompress(arrcomp.compress(x, codec)))


@contextlib.contextmanager
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


# Bytes, dtypes, shapes


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("compiled", [False, True])
def test_jax_writes_other_bytes_than_numpy(codec: arrcomp.Codec, compiled: bool) -> None:
    compress = jax.jit(arrcomp.jax.compress, static_argnums=1) if compiled else arrcomp.jax.compress
    c = compress(jnp.asarray(X), codec)
    assert c.to_bytes() == arrcomp.compress(X, codec).to_bytes()
    y = arrcomp.decompress(c)
    assert isinstance(y, jax.Array)
    np.testing.assert_array_equal(np.asarray(y), expected(X, codec))


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_changes_on_the_way(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    lowest = 0 if name.startswith(("bool", "u")) else -8
    array = RNG.integers(lowest, 8, (3, 40)).astype(dtype)
    x = jnp.asarray(array)
    assert x.dtype == dtype
    assert arrcomp.jax.compress(x).to_bytes() == arrcomp.compress(array).to_bytes()
    for y in (there_and_back(x, Lossless()), jax.vmap(arrcomp.jax.roundtrip)(x)):
        checks.check_same_bits(np.asarray(y), array)


@pytest.mark.parametrize("name", ["float64", "int64", "uint64", "complex128"])
def test_a_64_bit_dtype_is_truncated(name: str) -> None:
    array = RNG.normal(0, 9, 50).astype(name)
    stream = arrcomp.compress(array).to_bytes()
    with pytest.raises(TypeError, match="jax_enable_x64"):
        arrcomp.decompress(arrcomp.from_bytes(stream), like=jnp.zeros(1))
    with x64():
        x = jnp.asarray(array)
        assert arrcomp.jax.compress(x).to_bytes() == stream
        for y in (there_and_back(x, Lossless()), arrcomp.jax.roundtrip(x)):
            assert y.dtype == array.dtype
            np.testing.assert_array_equal(np.asarray(y), array)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        arrcomp.jax.compress(x)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (4097,)])
def test_a_shape_is_not_taken(shape: tuple[int, ...]) -> None:
    array = RNG.normal(0, 1, shape).astype(np.float32)
    for function in (there_and_back, arrcomp.jax.roundtrip):
        for transformed in (function, jax.jit(function, static_argnums=1)):
            checks.check_same_bits(np.asarray(transformed(jnp.asarray(array), BOUNDED)), expected(array))
        batch = jax.vmap(lambda x, f=function: f(x, BOUNDED))(jnp.asarray(np.stack([array, array])))
        checks.check_same_bits(np.asarray(batch), np.stack([expected(array)] * 2))
        assert jax.vmap(lambda x, f=function: f(x, BOUNDED))(jnp.zeros((0, *shape))).shape == (0, *shape)


# Transformations


def test_vmap_mixes_up_the_items() -> None:
    codec = ErrorBounded(rel=1e-3)  # whose bound is of each item
    x = jnp.asarray(X * np.arange(1, 7, dtype=np.float32)[:, None])
    c = jax.vmap(lambda row: arrcomp.jax.compress(row, codec))(x)
    assert c.shape == (5000,)
    for i, row in enumerate(np.asarray(x)):
        item = jax.tree_util.tree_map(lambda leaf, i=i: leaf[i], c)
        assert item.to_bytes() == arrcomp.compress(row, codec).to_bytes()
    rows = np.stack([expected(row, codec) for row in np.asarray(x)])
    np.testing.assert_array_equal(np.asarray(jax.vmap(arrcomp.jax.decompress)(c)), rows)
    nested = jax.vmap(jax.vmap(lambda row: there_and_back(row, codec)))(x.reshape(2, 3, 5000))
    np.testing.assert_array_equal(np.asarray(nested).reshape(6, 5000), rows)
    columns = jax.vmap(lambda row: arrcomp.jax.roundtrip(row, codec), in_axes=1, out_axes=1)(x.T)
    np.testing.assert_array_equal(np.asarray(columns).T, rows)


def test_a_batch_passes_for_one_array() -> None:
    c = jax.vmap(arrcomp.jax.compress)(jnp.asarray(X))
    for use in (lambda: c.nbytes, c.to_bytes, lambda: arrcomp.jax.decompress(c), lambda: arrcomp.decompress(c)):
        with pytest.raises(ValueError, match=r"jax\.vmap"):
            use()
    assert "float32[5000]" in repr(c)


def test_the_gradient_of_roundtrip_is_not_the_one_that_came() -> None:
    x = jnp.asarray(X)
    y, pull = jax.vjp(lambda x: arrcomp.jax.roundtrip(x, BOUNDED), x)
    np.testing.assert_array_equal(np.asarray(y), expected(X))
    np.testing.assert_array_equal(np.asarray(pull(2 * x)[0]), 2 * X)
    per_row = jax.jit(jax.vmap(jax.grad(lambda row: (arrcomp.jax.roundtrip(row, BOUNDED) ** 2).sum())))(x)
    np.testing.assert_array_equal(np.asarray(per_row), 2 * np.asarray(y))


def test_forward_mode_of_roundtrip_is_refused_or_another() -> None:
    x, call = jnp.asarray(X), lambda x: arrcomp.jax.roundtrip(x, BOUNDED)
    y, pushed = jax.linearize(call, x)
    for value, tangent in (jax.jvp(call, (x,), (2 * x,)), jax.jit(lambda x: jax.jvp(call, (x,), (2 * x,)))(x)):
        checks.check_same_bits(np.asarray(value), expected(X))
        np.testing.assert_array_equal(np.asarray(tangent), 2 * X)
    checks.check_same_bits(np.asarray(y), expected(X))
    np.testing.assert_array_equal(np.asarray(pushed(3 * x)), 3 * X)
    np.testing.assert_array_equal(np.asarray(jax.jacfwd(call)(x[0, :5])), np.eye(5))
    items = jax.vmap(lambda x: jax.jvp(call, (x,), (2 * x,))[1])
    np.testing.assert_array_equal(np.asarray(items(x)), 2 * X)
    hessian = jax.hessian(lambda x: (call(x) ** 2).sum())
    np.testing.assert_array_equal(np.asarray(hessian(x[0, :5])), 2 * np.eye(5))
    counts, none = jax.jvp(arrcomp.jax.roundtrip, (jnp.arange(3),), (np.zeros(3, jax.dtypes.float0),))
    assert counts.tolist() == [0, 1, 2]
    assert none.dtype == jax.dtypes.float0


def test_a_gradient_passes_compress_or_fails() -> None:
    x = jnp.asarray(X)
    for function in (there_and_back, jax.jit(there_and_back)):
        gradient = jax.grad(lambda x, f=function: (x * f(x)).sum())(x)
        np.testing.assert_array_equal(np.asarray(gradient), expected(X))


def test_a_gradient_of_integers_is_made_up() -> None:
    with pytest.raises(TypeError, match="grad requires"):
        jax.grad(lambda x: arrcomp.jax.roundtrip(x))(jnp.arange(3))


def test_scan_does_not_take_a_compressed_carry_or_xs() -> None:
    x = jnp.asarray(X)

    def step(c: arrcomp.Compressed, row: Any) -> tuple[arrcomp.Compressed, Any]:
        total = arrcomp.jax.decompress(c) + arrcomp.jax.decompress(row)
        return arrcomp.jax.compress(total), total

    rows = jax.vmap(arrcomp.jax.compress)(x)
    last, totals = jax.jit(lambda c, rows: lax.scan(step, c, rows))(arrcomp.jax.compress(x[0]), rows)
    np.testing.assert_array_equal(np.asarray(totals), np.asarray(jnp.cumsum(jnp.concatenate([x[:1], x]), 0)[1:]))
    np.testing.assert_array_equal(np.asarray(arrcomp.jax.decompress(last)), np.asarray(totals[-1]))


def test_a_gradient_does_not_pass_a_scan() -> None:
    def loss(x: Any) -> Any:
        step = lambda total, row: (total + arrcomp.jax.roundtrip(row, BOUNDED), None)  # noqa: E731
        return lax.scan(step, jnp.zeros(5000), x)[0].sum()

    np.testing.assert_array_equal(np.asarray(jax.jit(jax.grad(loss))(jnp.asarray(X))), np.ones_like(X))


def test_a_call_goes_back_to_python() -> None:
    traced = str(jax.make_jaxpr(jax.grad(lambda x: (there_and_back(x) * arrcomp.jax.roundtrip(x, BOUNDED)).sum()))(X))
    assert "callback" not in traced
    assert {target for target in ("arrcomp_encode", "arrcomp_decode", "arrcomp_roundtrip") if target in traced} == {
        "arrcomp_encode",
        "arrcomp_decode",
        "arrcomp_roundtrip",
    }


def test_the_same_shape_is_traced_again() -> None:
    traces = 0

    @jax.jit
    def function(c: arrcomp.Compressed) -> Any:
        nonlocal traces
        traces += 1
        return arrcomp.jax.decompress(c)

    before = _ops.encode._cache_size()  # type: ignore[attr-defined]
    for scale in (1, 2, 3):
        function(arrcomp.jax.compress(jnp.asarray(X * scale), ErrorBounded(abs=0.5)))
    assert traces == 1
    assert _ops.encode._cache_size() == before + 1  # type: ignore[attr-defined]


def test_roundtrip_of_a_donated_array_takes_other_memory() -> None:
    x = jnp.asarray(X) + 0
    place = x.unsafe_buffer_pointer()
    y = jax.jit(lambda x: arrcomp.jax.roundtrip(x, BOUNDED), donate_argnums=0)(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(np.asarray(y), expected(X))


def test_roundtrip_changes_an_array_that_is_not_donated() -> None:
    x = jnp.asarray(X) + 0
    arrcomp.jax.roundtrip(x, ErrorBounded(abs=1.0)).block_until_ready()
    np.testing.assert_array_equal(np.asarray(x), X)


# Several devices: JAX takes their number when it starts


@pytest.mark.parametrize(("program", "devices"), [("two_devices.py", 2), ("sharded.py", 4)])
def test_devices_get_in_each_others_way(program: str, devices: int) -> None:
    script = Path(__file__).parent / "programs" / program
    flags = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}"
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "passed\n"


# Bad input


def test_a_traced_value_is_asked_for_its_bytes() -> None:
    seen = []

    @jax.jit
    def function(x: Any) -> Any:
        c = arrcomp.jax.compress(x, BOUNDED)
        for use in (lambda: c.nbytes, lambda: c.ratio, c.to_bytes, lambda: pickle.dumps(c), lambda: c.device):
            with pytest.raises(jax.errors.ConcretizationTypeError, match="use it outside"):
                use()
        seen.append(repr(c))
        return c

    assert function(jnp.asarray(X)).ratio > 2
    assert "float32[6, 5000]" in seen[0]


def test_what_is_not_of_jax_is_taken() -> None:
    with pytest.raises(TypeError, match=r"jax\.numpy\.asarray"):
        arrcomp.jax.compress(X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"jax\.numpy\.asarray"):
        arrcomp.jax.roundtrip(X)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"c: expected a Compressed \(arrcomp\.from_bytes reads a stream\), got numpy\.ndarray"
    ):
        arrcomp.jax.decompress(X)  # type: ignore[arg-type]


def test_what_is_not_a_codec_is_taken() -> None:
    class Unhashable(ErrorBounded):
        __hash__ = None  # type: ignore[assignment]

    x = jnp.asarray(X)
    for function in (arrcomp.jax.compress, arrcomp.jax.roundtrip):
        with pytest.raises(TypeError, match=r"codec: expected a codec such as ErrorBounded\(abs=1e-4\), got dict"):
            function(x, {"codec": "lossless"})  # type: ignore[arg-type]
        with pytest.raises(
            TypeError,
            match=r"codec: expected hashable parameters, such as tuples, got Unhashable\(abs=1\.0\) \(unhashable",
        ):
            function(x, Unhashable(abs=1.0))
        with pytest.raises(
            TypeError, match="dtype: expected float16, bfloat16, float32, float64 for ErrorBounded, got int32"
        ):
            function(jnp.arange(3), BOUNDED)


def test_random_keys_are_taken_for_numbers() -> None:
    with pytest.raises(TypeError, match="key_data"):
        arrcomp.jax.compress(jax.random.key(0))


def test_memory_of_jax_is_written_to() -> None:
    x = jnp.asarray(X)
    for out in (jnp.zeros(10**6, jnp.uint8), np.zeros(10**6, np.uint8)):
        with pytest.raises(TypeError, match="out: expected None, got an array"):
            arrcomp.compress(x, out=out)
    with pytest.raises(TypeError, match="like="):
        arrcomp.decompress(arrcomp.compress(x), out=jnp.zeros_like(x))


def test_a_corrupt_stream_becomes_an_array() -> None:
    c = arrcomp.compress(X)
    bad = np.array(c.host_payload())
    bad[18] ^= 1
    payload = arrcomp._arrays.contract.Payload(arrcomp._arrays.numpy.ADAPTER, bad)
    corrupt = arrcomp.Compressed(c.spec, payload)
    for use in (
        lambda: arrcomp.decompress(corrupt, like=jnp.zeros(1)),
        lambda: arrcomp.jax.decompress(corrupt),
        lambda: jax.jit(lambda: arrcomp.jax.decompress(corrupt))(),
        lambda: jax.tree_util.tree_leaves(corrupt),
    ):
        with pytest.raises(CorruptStreamError):
            use()


def test_corrupt_leaves_become_an_array() -> None:
    c = arrcomp.jax.compress(jnp.asarray(X))
    corrupt = jax.tree_util.tree_map(lambda leaf: leaf.at[0].add(1), c)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="corrupt"):
        jax.jit(arrcomp.jax.decompress)(corrupt).block_until_ready()


def test_payloads_from_outside_compile_few_programs() -> None:
    sizes = {_ops.rounded_nbytes(nbytes) for nbytes in range(1 << 10, 1 << 14, 7)}
    assert len(sizes) <= 4 * 16 + 1
    for nbytes in (0, 1, 16, 1000, 4097, 10**9 + 1):
        rounded = _ops.rounded_nbytes(nbytes)
        assert nbytes <= rounded <= max(nbytes * 1.07, nbytes + 8)
        assert rounded % 8 == 0


def test_values_that_are_not_finite_are_refused_if_asked() -> None:
    for function in (arrcomp.jax.compress, arrcomp.jax.roundtrip):
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="x: expected finite values, got NaN or infinit"):
                function(jnp.array([1.0, bad]), BOUNDED, check_finite=True)
        function(jnp.ones(3), BOUNDED, check_finite=True)
        with pytest.raises(ValueError, match="check_finite: expected False under tracing, got True"):
            jax.jit(lambda x, call=function: call(x, BOUNDED, check_finite=True))(jnp.ones(3))


def test_the_round_trip_takes_threads() -> None:
    x = jnp.asarray(X)
    for threads in (None, 1, 2):
        y = jax.jit(lambda x, n=threads: arrcomp.jax.roundtrip(x, BOUNDED, threads=n))(x)
        np.testing.assert_array_equal(np.asarray(y), np.asarray(arrcomp.jax.roundtrip(x, BOUNDED)))
    assert (jax.grad(lambda x: arrcomp.jax.roundtrip(x, BOUNDED, threads=1).sum())(x) == 1).all()
    with pytest.raises(ValueError, match=r"threads: expected an integer of at least 1.*, got 0"):
        arrcomp.jax.roundtrip(x, BOUNDED, threads=0)


def test_the_gradient_of_compress_is_zero() -> None:
    gradient = jax.grad(lambda x: arrcomp.jax.decompress(arrcomp.jax.compress(x, BOUNDED)).sum())(jnp.ones(5))
    assert (gradient == 0).all()
