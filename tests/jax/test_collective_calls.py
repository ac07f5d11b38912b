"""Collective operations with compressed data on the wire: all of them, on pytrees, differentiated, and of bad input."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import reference_collectives as reference
from arrcomp import QSGD, S2FP8, Codebook, Codec, ErrorBounded, FloatFormat, Lossless
from ordinary import then_full

jax = pytest.importorskip("jax")

from jax import lax
from jax import numpy as jnp

import arrcomp.jax

from .vmapped_collectives import QUANTIZED, normal, on_devices

RANDOM = QSGD(bits=3, bucket_size=64, rounding="stochastic")


# Other collectives, and pytrees


@pytest.mark.parametrize("codec", [QSGD(bits=5, bucket_size=64), Codebook.nf4()], ids=repr)
@pytest.mark.parametrize(("shape", "dimension", "tiled"), [
    ((4, 50), 0, False), ((50, 4), 1, False), ((3, 4, 7), -2, False), ((4,), 0, False), ((4,), -1, True),
    ((8, 50), 0, True), ((3, 400), 1, True), ((3, 8, 7), -2, True), ((0, 5), 0, True),
])  # fmt: skip
def test_a_scattered_sum_is_another(codec: Codec, shape: tuple[int, ...], dimension: int, tiled: bool) -> None:
    x = normal(4, *shape)
    options = {"scatter_dimension": dimension, "tiled": tiled}
    y = on_devices(arrcomp.jax.psum_scatter_quantized, **options)(x, codec)
    parts = np.stack(np.split(x, 4, axis=dimension % len(shape) + 1), axis=1)
    expected = reference.scattered_sum(parts, codec)
    np.testing.assert_array_equal(y, expected if tiled else expected.squeeze(dimension % len(shape) + 1))
    options["scatter_dimension"] %= len(shape)
    assert y.shape == jax.vmap(lambda x: lax.psum_scatter(x, "d", **options), axis_name="d")(x).shape


@pytest.mark.parametrize("codec", [QSGD(bits=5, bucket_size=64), Codebook.nf4(), S2FP8()], ids=repr)
@pytest.mark.parametrize(("shape", "axis", "tiled"), [
    ((50,), 0, False), ((50,), 1, False), ((50,), -1, False), ((), 0, False), ((0, 2), 0, True),
    ((50,), 0, True), ((3, 5), 1, True), ((3, 5, 7), -2, True), ((3, 5, 7), -2, False),
])  # fmt: skip
def test_gathered_arrays_are_others(codec: Codec, shape: tuple[int, ...], axis: int, tiled: bool) -> None:
    x = normal(3, *shape)
    y = on_devices(arrcomp.jax.all_gather_quantized, axis=axis, tiled=tiled)(x, codec)
    back = [np.asarray(arrcomp.decompress(arrcomp.compress(row, codec))) for row in x]
    expected = (np.concatenate if tiled else np.stack)(back, axis=axis)
    for row in y:
        np.testing.assert_array_equal(row, expected)


EXCHANGES = then_full(
    [((4, 3, 16), 0, 0, False), ((3, 4, 16), -2, -1, False), ((8, 3, 16), 0, 1, True)],
    [((3, 4, 16), 1, 0, False), ((4,), 0, 0, False), ((3, 8, 16), 1, 0, True), ((8,), -1, 0, True),
     ((0, 4, 5), 1, 0, True)],
)  # fmt: skip


@pytest.mark.parametrize("codec", [QSGD(bits=5, bucket_size=16), Codebook.nf4(), S2FP8()], ids=repr)
@pytest.mark.parametrize("case", EXCHANGES, ids=str)
def test_a_part_comes_back_other_than_coded_alone(codec: Codec, case: tuple[tuple[int, ...], int, int, bool]) -> None:
    shape, split, concat, tiled = case
    x = normal(4, *shape)

    def exact(x: Any) -> Any:
        return lax.all_to_all(x, "d", split % len(shape), concat % len(shape), tiled=tiled)

    def coded(x: Any) -> Any:
        parts = np.split(x, 4, axis=split)
        back = [np.asarray(arrcomp.decompress(arrcomp.compress(np.ascontiguousarray(part), codec))) for part in parts]
        return np.concatenate(back, axis=split)

    on_all = functools.partial(jax.vmap, axis_name="d")
    y = on_devices(arrcomp.jax.all_to_all_quantized, split_axis=split, concat_axis=concat, tiled=tiled)(x, codec)
    np.testing.assert_array_equal(y, on_all(exact)(np.stack([coded(each) for each in x])))

    def pulled(x: Any, g: Any) -> Any:
        function = functools.partial(
            arrcomp.jax.all_to_all_quantized, axis_name="d", split_axis=split, concat_axis=concat, tiled=tiled,
            codec=QSGD(bits=2), backward_codec=QSGD(bits=8, bucket_size=16),
        )  # fmt: skip
        back = lax.all_to_all(g, "d", concat % len(shape), split % len(shape), tiled=tiled)
        return jax.vjp(function, x)[1](g)[0], back

    gradient, expected = jax.jit(on_all(pulled))(jnp.asarray(x), jnp.asarray(normal(4, *y.shape[1:])))
    assert gradient.shape == x.shape
    error, unit = np.abs(gradient - expected), (np.ptp(expected) if expected.size else 0) / 255
    assert (error <= 0.5001 * unit + 1e-6).all()
    assert gradient.size < 100 or error.max() > 0


@pytest.mark.full  # `arrcomp.torch`'s are ordinary
def test_an_exchange_draws_the_same_numbers_forward_and_backward() -> None:
    def pulled(x: Any, g: Any, seed: Any) -> Any:
        function = functools.partial(arrcomp.jax.all_to_all_quantized, axis_name="d", split_axis=0, concat_axis=0)
        y, pull = jax.vjp(lambda x: function(x, codec=RANDOM, seed=seed), x)
        return y, pull(g)[0]

    call = jax.jit(jax.vmap(pulled, axis_name="d", in_axes=(0, 0, None)))
    x = jnp.broadcast_to(jnp.asarray(normal(1, 1, 64)), (3, 3, 64))
    y, gradient = call(x, x, jnp.uint32(1))
    for other in (gradient, *call(x, x, jnp.uint32(2))):
        assert (np.asarray(other) != np.asarray(y)).any()
    np.testing.assert_array_equal(call(x, x, jnp.uint32(1))[0], y)
    assert len({row.tobytes() for row in np.asarray(y).reshape(9, 64)}) == 9, "senders and receivers draw their own"


def test_a_token_comes_back_other_beside_other_tokens() -> None:
    codec = QSGD(bits=4, bucket_size=32)
    x = normal(2, 6, 32)
    y = on_devices(arrcomp.jax.all_to_all_quantized, split_axis=0, concat_axis=0, tiled=True)
    alone = y(x, codec)[0][1]
    for factor in (0, 1000):
        x[:, [0, 2, 3, 4, 5]] *= factor
        np.testing.assert_array_equal(y(x, codec)[0][1], alone)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"codec": Lossless()}, TypeError, "codec: expected a fixed-rate codec, such as"),
        ({"backward_codec": ErrorBounded(abs=1.0)}, TypeError, "codec: expected a fixed-rate codec, such as"),
        ({"backward_codec": RANDOM}, TypeError, r"seed: expected an integer, or .* for QSGD.*, got None"),
        ({"split_axis": 2}, ValueError, "split_axis: expected an integer from -2 to 1, got 2"),
        ({"concat_axis": -3}, ValueError, "concat_axis: expected an integer from -2 to 1, got -3"),
        ({"split_axis": 1}, ValueError, r"x: expected 4 \(the number of devices\) in dimension 1 with tiled=False"),
        ({"split_axis": 1, "tiled": True}, ValueError, "x: expected a multiple of 4"),
        ({"tiled": 1}, TypeError, "tiled: expected True or False, got 1"),
    ],
)
def test_an_exchange_that_cannot_be_is_done(arguments: Any, error: type[Exception], message: str) -> None:
    options = {"axis_name": "d", "split_axis": 0, "concat_axis": 0, "codec": QSGD()} | arguments
    with pytest.raises(error, match=message):
        jax.vmap(lambda x: arrcomp.jax.all_to_all_quantized(x, **options), axis_name="d")(jnp.zeros((4, 4, 10)))


@pytest.mark.parametrize("function", QUANTIZED)
def test_arrays_of_a_tree_change_places_or_travel_alone(function: Callable[..., Any]) -> None:
    codec = QSGD(bits=4, bucket_size=64)
    tree = {"w": normal(4, 4, 100), "half": normal(4, 4, dtype=np.float16), "none": None, "w2": [normal(4, 4, 3, 9)]}
    call = on_devices(function)
    together = call(tree, codec)
    apart = jax.tree.map(lambda x: call(x, codec), tree)
    assert jax.tree.structure(together) == jax.tree.structure(apart)
    jax.tree.map(np.testing.assert_array_equal, together, apart)
    local = jax.tree.map(lambda x: x[0], tree)
    jaxpr = str(jax.make_jaxpr(lambda x: function(x, "d", codec), axis_env=[("d", 4)])(local))
    assert jaxpr.count("all_to_all[") == (function is not QUANTIZED[3])
    assert jaxpr.count("all_gather[") == (function is not QUANTIZED[2])
    assert jax.vmap(lambda _: function({}, "d", codec), axis_name="d")(jnp.zeros(4)) == {}


@pytest.mark.parametrize("codec", [QSGD(bits=4, bucket_size=64), QSGD(skip_incomplete=True), FloatFormat("fp8_e4m3")])
def test_other_bytes_are_on_the_wire_than_it_is_said(codec: Codec) -> None:
    world = 8
    tree = [jax.ShapeDtypeStruct((100, 77), "float32"), jax.ShapeDtypeStruct((2049,), "float16")]
    function = functools.partial(arrcomp.jax.psum_quantized, axis_name="d", codec=codec)
    sent = 0
    for equation in equations(jax.make_jaxpr(function, axis_env=[("d", world)])(tree).jaxpr):
        nbytes = sum(x.aval.size * x.aval.dtype.itemsize for x in equation.invars)
        shares = {"all_to_all": (world - 1, world), "all_gather": (world - 1, 1), "psum": (2 * (world - 1), world)}
        times, of = shares.get(equation.primitive.name, (0, 1))
        sent += -(-times * nbytes // of)
    assert sent == arrcomp.jax.psum_wire_nbytes(tree, codec, world)
    assert arrcomp.jax.psum_wire_nbytes(tree, codec, 1) == 0


def equations(jaxpr: Any) -> Any:
    """All equations of a program, those of programs within as well."""
    for equation in jaxpr.eqns:
        yield equation
        for parameter in equation.params.values():
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from equations(inner)


# Transformations


@pytest.mark.parametrize("function", QUANTIZED)
def test_a_derivative_is_not_the_exact_collectives(function: Callable[..., Any]) -> None:
    exact = getattr(lax, function.__name__.removesuffix("_quantized"))
    x, change = jnp.asarray(normal(4, 4, 50)), jnp.asarray(normal(4, 4, 50))[::-1]
    quantized_sum, exact_sum = (
        jax.vmap(f, axis_name="d") for f in (lambda x: function(x, "d", QSGD(bits=3)), lambda x: exact(x, "d"))
    )
    # (Not of a jitted function: there JAX does not know the axis of vmap any more.)
    y, dy = jax.jit(lambda x, change: jax.jvp(quantized_sum, (x,), (change,)))(x, change)
    np.testing.assert_array_equal(y, quantized_sum(x))
    assert (np.asarray(y) != np.asarray(exact_sum(x))).any()
    np.testing.assert_allclose(dy, exact_sum(change), rtol=1e-5, atol=1e-5)
    expected = jax.vjp(exact_sum, x)[1](y)[0]
    np.testing.assert_allclose(jax.vjp(quantized_sum, x)[1](y)[0], expected, rtol=1e-5, atol=1e-5)
    hessian = jax.jvp(jax.grad(lambda x: (quantized_sum(x) ** 2).sum()), (x,), (change,))[1]
    expected = jax.jvp(jax.grad(lambda x: (exact_sum(x) ** 2).sum()), (x,), (change,))[1]
    np.testing.assert_allclose(hessian, expected, rtol=1e-4, atol=1e-4)


def test_a_gradient_does_not_pass_with_a_seed() -> None:
    def loss(x: Any, seed: Any) -> Any:
        return jax.vmap(lambda x: arrcomp.jax.psum_quantized(x, "d", RANDOM, seed=seed), axis_name="d")(x).sum()

    gradient = jax.jit(jax.grad(loss))(jnp.asarray(normal(3, 50)), jnp.uint32(5))
    np.testing.assert_array_equal(gradient, np.full((3, 50), 9, np.float32) / 3)


def test_a_batch_is_mixed_up() -> None:
    codec, x = QSGD(bits=4, bucket_size=64), normal(3, 5, 300)
    for function in QUANTIZED[:2]:
        each = jax.vmap(jax.vmap(lambda x, f=function: f(x, "d", codec)), axis_name="d")(jnp.asarray(x))
        for i in range(5):
            np.testing.assert_array_equal(each[:, i], on_devices(function)(x[:, i], codec))


# Bad input


@pytest.mark.parametrize("function", QUANTIZED)
def test_what_cannot_be_is_done(function: Callable[..., Any]) -> None:
    def call(x: Any = normal(2, 2, 8), codec: Any = QSGD(), axis_name: Any = "d", **options: Any) -> None:  # noqa: B008
        local = functools.partial(function, axis_name=axis_name, codec=codec, **options)
        jax.vmap(local, axis_name="d")(jax.tree.map(jnp.asarray, x))

    for codec in (Lossless(), ErrorBounded(abs=1e-3), QSGD(coding="entropy"), None):
        with pytest.raises(
            TypeError,
            match=r"codec: expected a fixed-rate codec, such as QSGD\(bits=4\), got (Lossless|ErrorBounded|QSGD)",
        ):
            call(codec=codec)
    with pytest.raises(TypeError, match=r"codec: expected a codec .*, got 4 \(int\)"):
        call(codec=4)
    with pytest.raises(TypeError, match=r"dtype: expected .* for QSGD, got int32"):
        call([normal(2, 2, 8), np.zeros((2, 2), np.int32)])
    with pytest.raises(TypeError, match=r"seed: expected an integer, or .* for QSGD.*, got None"):
        call(codec=RANDOM)
    with pytest.raises(ValueError, match=r"seed: expected an integer from 0 to .*, got -1"):
        call(codec=RANDOM, seed=-1)
    with pytest.raises(ValueError, match="threads: expected"):
        call(threads=0)
    with pytest.raises(TypeError, match="axis_name: expected names of axes"):
        call(axis_name=0)
    with pytest.raises(NameError, match="other"):
        call(axis_name="other")
    with pytest.raises(TypeError, match=r"jax\.numpy\.asarray"):
        jax.vmap(lambda _: function(np.zeros(2, np.float32), "d", QSGD()), axis_name="d")(jnp.zeros(2))


def test_a_dimension_that_is_not_there_is_taken() -> None:
    def call(function: Any, *shape: int, **options: Any) -> Any:
        return on_devices(function, **options)(normal(4, *shape), QSGD())

    scatter, gather = QUANTIZED[2:]
    for options in ({"scatter_dimension": 1}, {"scatter_dimension": -2}):
        with pytest.raises(ValueError, match=r"scatter_dimension: expected an integer from -1 to 0, got (1|-2)"):
            call(scatter, 4, **options)
    for shape in ((), (5,), (8,)):
        with pytest.raises(
            ValueError,
            match=r"expected an array with dimensions, got a scalar|expected (a multiple of )?4 .* in dimension 0",
        ):
            call(scatter, *shape)
    with pytest.raises(ValueError, match="a multiple of 4"):
        call(scatter, 6, tiled=True)
    for options in ({"axis": 2}, {"axis": -3}, {"axis": 1, "tiled": True}):
        with pytest.raises(ValueError, match=r"axis: expected an integer from -[12] to [01], got"):
            call(gather, 4, **options)
    with pytest.raises(ValueError, match="axis: expected an array with dimensions, got a scalar"):
        call(gather, tiled=True)
    for function in (scatter, gather):
        with pytest.raises(TypeError, match="tiled: expected True or False, got 1"):
            call(function, 4, tiled=1)
    with pytest.raises(ValueError, match=r"axis_size: expected an integer from 1 to .*, got 0"):
        arrcomp.jax.psum_wire_nbytes(jnp.zeros(3), QSGD(), 0)
    with pytest.raises(TypeError, match="codec: expected a fixed-rate codec"):
        arrcomp.jax.psum_wire_nbytes(jnp.zeros(3), Lossless(), 2)
    with pytest.raises(TypeError, match="got int32"):
        arrcomp.jax.psum_wire_nbytes(jnp.zeros(3, jnp.int32), QSGD(), 2)


# Several devices, and several processes: JAX takes their number when it starts


def output_of(program: str, devices: int, *arguments: str) -> str:
    flags = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-W", "error", str(Path(__file__).parent / "programs" / program), *arguments]
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.full  # two processes, each with two devices, are ordinary
def test_eight_devices_differ_from_numpy_or_from_each_other() -> None:
    assert output_of("collectives_devices.py", 8) == "passed\n"


def test_two_processes_differ_from_numpy_or_from_each_other() -> None:
    assert output_of("collectives_processes.py", 2).endswith("passed\n")  # behind what Gloo says
