"""Weights that stay compressed: the outputs, the memory, every transformation around it, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, Compressed, ErrorBounded, FloatFormat, Lossless, Rule, model_rules
from ordinary import then_full

jax = pytest.importorskip("jax")

from jax import numpy as jnp

import arrcomp.jax
from arrcomp.jax import compress_weights, decompress_weights, weight_memory

LAYERS, WIDTH, HIDDEN, WORDS = 6, 64, 128, 100
RNG = np.random.default_rng(5)
LAYER_NBYTES = 2 * WIDTH * HIDDEN * 4  # of the matrices, in float32
TOKENS = RNG.integers(0, WORDS, (2, 5))
PROGRAMS = Path(__file__).parent / "programs"


def normal(*shape: int) -> Any:
    return RNG.normal(0, 0.1, shape).astype(np.float32)


PARAMS = {
    "embedding": normal(WORDS, WIDTH),
    "layers": {
        "scale": normal(LAYERS, WIDTH),
        "up": normal(LAYERS, WIDTH, HIDDEN),
        "down": normal(LAYERS, HIDDEN, WIDTH),
    },
    "steps": 7,
}


def cast(params: Any, dtype: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(jnp.dtype(dtype)) if isinstance(x, np.ndarray) else x, params)


def block(layer: Any, x: Any) -> Any:
    hidden = jax.nn.relu((x * layer["scale"]) @ layer["up"])
    return x + hidden @ layer["down"]


def body(x: Any, layer: Any) -> tuple[Any, None]:
    return block(decompress_weights(layer), x), None


def run(weights: Any, x: Any, body: Callable[..., Any] = body) -> Any:
    """The layers, over an embedding."""
    return jax.lax.scan(body, x, weights["layers"])[0]


def forward(weights: Any, tokens: Any) -> Any:
    embedding = decompress_weights(weights["embedding"])
    return run(weights, embedding[tokens]) @ embedding.T


def loss(weights: Any, x: Any, body: Callable[..., Any] = body) -> Any:
    return (run(weights, x, body) ** 2).sum()


def assert_same(actual: Any, expected: Any) -> None:
    """Structures, dtypes, shapes and all bits are the same."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for mine, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        checks.check_same_bits(np.asarray(jnp.asarray(mine)), np.asarray(jnp.asarray(other)))


def temporary_nbytes(function: Any, *args: Any) -> int:
    """Bytes that a compiled program needs besides its arguments and results."""
    return int(jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes)


WEIGHTS = compress_weights(PARAMS, layers="layers.*")
X = PARAMS["embedding"][TOKENS]


# Outputs


@pytest.mark.parametrize("codec", then_full([Lossless(), Lossless(speed="fast")], [FloatFormat("fp32")]), ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_lossless_model_gives_the_bits_of_the_plain_one(dtype: str, codec: Any) -> None:
    params = cast(PARAMS, dtype)
    weights = compress_weights(params, codec, layers="layers.*")
    assert_same(jax.jit(forward)(weights, TOKENS), jax.jit(forward)(params, TOKENS))
    assert_same(decompress_weights(weights), params)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int8", "int4", "uint16", "int32", "bool"])
def test_every_dtype_comes_back(dtype: str) -> None:
    x = RNG.integers(0, 2, (3, 64, 64)).astype(jnp.dtype(dtype))
    weights = compress_weights({"w": x}, layers="w")
    assert isinstance(weights["w"], Compressed)
    made = jax.jit(decompress_weights)(weights)["w"]
    assert made.dtype == x.dtype
    assert bool((made == x).all())


@pytest.mark.parametrize(
    "codec",
    [ErrorBounded(abs=1e-3), FloatFormat("fp8_e4m3"), QSGD(bits=8), QSGD(bits=4, rounding="stochastic")],
    ids=repr,
)
def test_each_layer_is_compressed_by_itself(codec: Any) -> None:
    weights = compress_weights(PARAMS, codec, layers="layers.*", seed=3)
    _, made = jax.lax.scan(lambda _, layer: (None, decompress_weights(layer)["up"]), None, weights["layers"])
    expected = [arrcomp.decompress(arrcomp.compress(x, codec, seed=3)) for x in PARAMS["layers"]["up"]]
    assert_same(made, jnp.stack(expected))
    assert_same(decompress_weights(weights)["layers"]["up"], made)


def test_a_plain_model_runs_the_same_function() -> None:
    assert decompress_weights(PARAMS) == PARAMS
    assert decompress_weights(None) is None


# Memory


def test_a_scan_has_one_layer_decompressed_at_a_time() -> None:
    weights = compress_weights(PARAMS, layers="layers.*")
    in_scan = temporary_nbytes(run, weights, X)
    at_once = temporary_nbytes(lambda weights, x: run(decompress_weights(weights), x), weights, X)
    assert LAYER_NBYTES <= in_scan < 2 * LAYER_NBYTES
    assert at_once >= LAYERS * LAYER_NBYTES


def test_a_checkpointed_body_decompresses_again_for_the_backward_pass() -> None:
    again = jax.checkpoint(body)
    gradient = jax.grad(loss, argnums=1)
    in_scan = temporary_nbytes(lambda weights, x: gradient(weights, x, again), WEIGHTS, X)
    kept = temporary_nbytes(gradient, WEIGHTS, X)
    assert in_scan < 3 * LAYER_NBYTES
    assert kept >= LAYERS * LAYER_NBYTES


def test_the_bytes_are_counted() -> None:
    plain, memory = weight_memory(PARAMS), weight_memory(WEIGHTS)
    assert plain.nbytes == plain.plain_nbytes == memory.plain_nbytes
    assert plain.nbytes == sum(jnp.asarray(leaf).nbytes for leaf in jax.tree.leaves(PARAMS))
    assert memory.nbytes == sum(jnp.asarray(leaf).nbytes for leaf in jax.tree.leaves(WEIGHTS)) < 0.9 * plain.nbytes
    assert (plain.compressed, memory.compressed) == (0, 3)
    layer = jax.tree.map(lambda leaf: leaf[0], WEIGHTS["layers"])
    assert weight_memory(layer).plain_nbytes == weight_memory(PARAMS["layers"]).nbytes / LAYERS
    assert weight_memory(jax.eval_shape(lambda: WEIGHTS)) == memory
    assert str(memory).startswith(f"{memory.nbytes:,} bytes instead of {plain.nbytes:,} (")


# Transformations


def test_gradients_with_respect_to_inputs_are_the_plain_ones() -> None:
    gradient = jax.jit(jax.grad(loss, argnums=1), static_argnums=2)
    expected = gradient(PARAMS, X, body)
    for each in (body, jax.checkpoint(body)):
        assert_same(gradient(WEIGHTS, X, each), expected)


def test_adapters_of_frozen_weights_have_the_plain_gradients() -> None:
    adapters = {"a": normal(LAYERS, WIDTH, 4), "b": normal(LAYERS, 4, WIDTH)}

    def adapted(x: Any, both: Any) -> tuple[Any, None]:
        layer, adapter = both
        return body(x, layer)[0] + x @ adapter["a"] @ adapter["b"], None

    @jax.jit
    def gradient(layers: Any) -> Any:
        function = jax.checkpoint(adapted)
        return jax.grad(lambda own: (jax.lax.scan(function, X, (layers, own))[0] ** 2).sum())(adapters)

    assert_same(gradient(WEIGHTS["layers"]), gradient(PARAMS["layers"]))


def test_weights_have_no_gradient() -> None:
    with pytest.raises(TypeError, match="uint8"):
        jax.grad(loss)({"layers": WEIGHTS["layers"]}, X)


def test_it_works_under_vmap() -> None:
    one = jax.jit(forward)
    many = jax.jit(jax.vmap(forward, in_axes=(None, 0)))(WEIGHTS, TOKENS)
    np.testing.assert_allclose(many, jnp.stack([one(WEIGHTS, tokens) for tokens in TOKENS]), rtol=1e-5, atol=1e-5)


def test_donated_weights_are_those_that_are_returned() -> None:
    weights = jax.tree.map(jnp.copy, WEIGHTS)
    made, after = jax.jit(lambda weights, tokens: (forward(weights, tokens), weights), donate_argnums=0)(
        weights, TOKENS
    )
    assert weights["layers"]["up"].payload.buffer.is_deleted()
    assert_same(made, jax.jit(forward)(PARAMS, TOKENS))
    assert_same(decompress_weights(after), PARAMS)


def test_weights_move_as_any_pytree() -> None:
    on_host = jax.device_get(WEIGHTS)
    assert all(isinstance(leaf, (np.ndarray, int)) for leaf in jax.tree.leaves(on_host))
    moved = jax.device_put(on_host, jax.devices()[0])
    assert_same(jax.jit(forward)(moved, TOKENS), jax.jit(forward)(PARAMS, TOKENS))


@pytest.mark.parametrize("place", [None, jax.devices()[0]], ids=["anywhere", "committed"])
def test_weights_are_committed_to_a_device_if_the_arrays_are(place: Any) -> None:
    leaf = compress_weights(jax.device_put(PARAMS["embedding"], place))
    assert {part.committed for part in jax.tree.leaves(leaf)} == {place is not None}


@pytest.mark.full
def test_several_devices() -> None:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    program = [sys.executable, "-P", str(PROGRAMS / "weights_on_devices.py")]
    result = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# Which leaves, and how


def test_some_leaves_stay_plain() -> None:
    tree = {
        "small": normal(4095),
        "rows": normal(2, 4000),
        "noise": RNG.integers(0, 256, 10_000, np.uint8),
        "wide": np.ones(5000),  # float64, which JAX does not have here
        "key": jax.random.key(0),
        "empty": jnp.zeros((0, 5000)),
        "number": 2.5,
        "none": None,
        "chosen": normal(100, 100),
    }
    made = compress_weights(tree, layers=["rows", "empty"], skip="chos*", min_size=4096)
    assert all(made[name] is leaf for name, leaf in tree.items())
    assert isinstance(compress_weights(tree, layers="rows", min_size=4000)["rows"], Compressed)
    assert isinstance(compress_weights(tree)["rows"], Compressed)


def test_rules_choose_codecs_by_the_names_and_shapes_of_layers() -> None:
    bounded, eight = ErrorBounded(abs=1e-3), QSGD(bits=8)
    rules = [Rule(eight, "layers.up", max_ndim=2), *model_rules(bounded)]
    tree = {"layers": PARAMS["layers"] | {"flat": PARAMS["layers"]["up"].reshape(LAYERS, -1)}, "top": normal(70, 70)}
    weights = compress_weights(tree, rules, layers="layers.*")
    codecs = {name: weights["layers"][name].codec for name in ("up", "down", "flat")}
    assert codecs == {"up": eight, "down": bounded, "flat": Lossless()}
    assert weights["top"].codec == bounded


def test_numpy_arrays_and_jax_arrays_give_the_same_weights() -> None:
    assert_same(compress_weights(jax.tree.map(jnp.asarray, PARAMS), layers="layers.*"), WEIGHTS)


def test_what_a_file_holds_compressed_stays_compressed(tmp_path: Path) -> None:
    arrcomp.jax.save(PARAMS["embedding"], tmp_path / "a.safetensors")
    with arrcomp.open_file(tmp_path / "a.safetensors") as file:
        weights = compress_weights({"w": file.compressed("")})
    assert_same(weights, compress_weights({"w": PARAMS["embedding"]}))


def test_layers_in_a_list_share_a_program() -> None:
    arrays = [*(normal(64, 64) * np.float32(10**power) for power in range(4)), np.zeros((64, 64), np.float32)]
    programs = []

    @jax.jit
    def product(layer: Any, x: Any) -> Any:
        programs.append(layer)
        return x @ decompress_weights(layer)

    weights = compress_weights(arrays)
    made = [product(layer, jnp.eye(64)) for layer in weights]
    assert len(programs) == 1
    assert_same(made, [jnp.eye(64) @ x for x in arrays])
    buffers = [leaf for leaf in jax.tree.leaves(weights) if leaf.dtype == np.uint8]
    assert {buffer.size % 8 for buffer in buffers} == {0}


# Errors


@pytest.mark.parametrize(
    ("tree", "options", "error", "text"),
    [
        ({"w": "x"}, {}, TypeError, "tree: expected a JAX or NumPy array or a number in leaf 'w', got str"),
        ({"w": [object()]}, {}, TypeError, "in leaf 'w.0', got object"),
        (PARAMS, {"codec": "lossless"}, TypeError, "codec"),
        (PARAMS, {"codec": QSGD(bits=4, rounding="stochastic")}, TypeError, "seed"),
        (PARAMS, {"layers": 3}, TypeError, r"layers: expected a pattern of names, or several, got 3 \(int\)"),
        (PARAMS, {"layers": "layer.*"}, ValueError, "layers: expected patterns of names such as .* got 'layer.*'"),
        (PARAMS, {"skip": ["embedding", "x"]}, ValueError, "skip: expected patterns of names such as .* got 'x'"),
        (PARAMS, {"layers": "*"}, ValueError, r"an axis of layers, got shape \(\) in leaf 'steps'"),
        (PARAMS, {"min_size": -1}, ValueError, "min_size"),
        (PARAMS, {"threads": 0}, ValueError, "threads"),
        ({"w": arrcomp.compress(np.ones(5))}, {"layers": "w"}, TypeError, "got a Compressed in leaf 'w'"),
        ({"w": arrcomp.compress(np.ones(5))}, {}, TypeError, "jax_enable_x64"),
        (WEIGHTS, {}, ValueError, "expected a single array, got a batch of shape .* of layers in compress_weights"),
        (PARAMS, {"codec": Lossless(predictor="reference")}, ValueError, "codec: expected a codec that needs no ref"),
        ({"w": arrcomp.compress(X, reference=X)}, {}, TypeError, "without a reference"),
    ],
)
def test_wrong_arguments_are_named(tree: Any, options: dict[str, Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        compress_weights(tree, **options)


def test_traced_weights_are_refused() -> None:
    with pytest.raises(jax.errors.ConcretizationTypeError, match="leaf 'w' is traced"):
        jax.jit(lambda w: compress_weights({"w": w}))(X)


def test_layers_are_not_saved_compressed(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"tree: expected a single Compressed in leaf 'layers\.\w+', got a batch; save"):
        arrcomp.jax.save(WEIGHTS, tmp_path / "w.safetensors")
    assert not list(tmp_path.iterdir())


def test_leaves_without_bytes_are_told() -> None:
    with pytest.raises(TypeError, match="tree: expected arrays and numbers, got str in a leaf"):
        weight_memory({"w": X, "name": "x"})


def test_threads_to_decompress_with_are_checked() -> None:
    with pytest.raises(ValueError, match="threads"):
        decompress_weights(PARAMS, threads=0)
    assert_same(decompress_weights(WEIGHTS, threads=1), PARAMS)
