"""Optimizers of Optax whose state is compressed between updates."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arrcomp import QSGD, Codebook, ErrorBounded, FloatFormat, Lossless

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

from jax import numpy as jnp

from arrcomp.jax.optim import (
    CompressedState,
    compressed_optimizer,
    decompressed_state,
    eight_bit,
    state_nbytes,
)
from ordinary import then_full

EXACT = FloatFormat("fp32")  # of float32 every bit, at a fixed rate
RANDOM = QSGD(bits=8, norm="linf", rounding="stochastic")


def params() -> dict[str, Any]:
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = ((20, 64), (64, 64), (64, 5))
    weights = [jax.random.normal(key, shape) / 8 for key, shape in zip(keys, shapes, strict=True)]
    return {"layers": weights, "bias": jnp.zeros(5)}


def data() -> tuple[Any, Any]:
    x = jax.random.normal(jax.random.key(1), (128, 20))
    return x, jnp.sin(x[:, :5]) + x[:, 5:10]


def loss_of(p: Any) -> Any:
    x, y = data()
    h = jnp.tanh(jnp.tanh(x @ p["layers"][0]) @ p["layers"][1])
    return jnp.square(h @ p["layers"][2] + p["bias"] - y).mean()


def step_of(tx: Any, **options: Any) -> Callable[[Any, Any], Any]:
    def step(p: Any, state: Any) -> Any:
        value, gradient = jax.value_and_grad(loss_of)(p)
        updates, state = tx.update(gradient, state, p)
        return optax.apply_updates(p, updates), state, value

    return jax.jit(step, **options)


def trained(tx: Any, steps: int = 20) -> tuple[Any, Any, float]:
    step, p = step_of(tx), params()
    state = tx.init(p)
    for _ in range(steps):
        p, state, value = step(p, state)
    return p, state, float(value)


def same(one: Any, other: Any) -> bool:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


MAKERS = {
    "sgd": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(0.01),
    "rmsprop": lambda: optax.rmsprop(0.01, centered=True, momentum=0.9),
    "chain": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.lion(0.001)),
    "steps": lambda: optax.MultiSteps(optax.adam(0.01), 2).gradient_transformation(),
    "injected": lambda: optax.inject_hyperparams(optax.adam)(learning_rate=0.01),
}


@pytest.mark.parametrize("name", then_full(["adam"], (name for name in MAKERS if name != "adam")))
def test_a_codec_that_keeps_every_bit_changes_none_of_training(name: str) -> None:
    plain, small = MAKERS[name](), compressed_optimizer(MAKERS[name](), EXACT, min_size=1000)
    expected, expected_state, _ = trained(plain)
    found, state, _ = trained(small)
    assert same(found, expected)
    shapes = jax.eval_shape(params)
    assert same(decompressed_state(small, state, shapes), expected_state)
    assert sum(x.dtype == jnp.uint8 for x in jax.tree.leaves(state)) >= 2
    assert type(small) is type(plain)


def test_8_bits_learn_what_float32_learns() -> None:
    for make in (lambda: optax.amsgrad(0.01), MAKERS["sgd"], lambda: optax.sm3(0.1)):
        tx = compressed_optimizer(make(), eight_bit(), min_size=1000)
        assert trained(tx, 60)[2] == pytest.approx(trained(make(), 60)[2], rel=0.1)
        assert state_nbytes(make().init(params())) / state_nbytes(tx.init(params())) > 3


def test_negative_state_becomes_zero_in_an_unsigned_codebook() -> None:
    momentum = compressed_optimizer(optax.sgd(0.1, momentum=0.9), Codebook.dynamic8(signed=False), min_size=0)
    p = jnp.zeros(300)
    update = jax.jit(momentum.update)
    _, state = update(jnp.ones(300).at[0].set(-1), momentum.init(p), p)  # in the first of two buckets
    updates, _ = update(jnp.zeros(300), state, p)
    assert np.isnan(np.asarray(updates)).tolist() == [True] * 256 + [False] * 44


def test_it_is_part_of_a_chain_and_of_a_partition() -> None:
    inside = optax.chain(optax.clip(1.0), compressed_optimizer(optax.adam(0.01), EXACT, min_size=1000))
    outside = optax.chain(optax.clip(1.0), optax.adam(0.01))
    assert same(trained(inside)[0], trained(outside)[0])
    labels = {"layers": ["a", "b", "a"], "bias": "b"}
    parts = [
        optax.partition(
            {"a": compressed_optimizer(optax.adam(0.01), codec, min_size=1000), "b": optax.sgd(0.1)}, labels
        )
        if codec
        else optax.partition({"a": optax.adam(0.01), "b": optax.sgd(0.1)}, labels)
        for codec in (EXACT, None)
    ]
    assert same(trained(parts[0])[0], trained(parts[1])[0])


def test_it_works_in_loops_in_batches_and_with_donated_state() -> None:
    tx = compressed_optimizer(optax.adam(0.01), eight_bit(), min_size=1000)
    expected, expected_state, _ = trained(tx, 5)

    def body(carry: Any, _: Any) -> Any:
        p, state = carry
        updates, state = tx.update(jax.grad(loss_of)(p), state, p)
        return (optax.apply_updates(p, updates), state), None

    (p, state), _ = jax.jit(lambda c: jax.lax.scan(body, c, length=5))((params(), tx.init(params())))
    assert same(state, expected_state)
    assert same(p, expected)
    twice = jax.tree.map(lambda x: jnp.stack([x, x]), params())
    states = jax.jit(jax.vmap(tx.init))(twice)
    together = jax.jit(jax.vmap(lambda p, s: body((p, s), None)[0]))
    for _ in range(5):
        twice, states = together(twice, states)
    np.testing.assert_allclose(twice["layers"][1][1], expected["layers"][1], rtol=0.05, atol=1e-3)
    step, p = step_of(tx, donate_argnums=(0, 1)), params()
    state = tx.init(p)
    for _ in range(5):
        p, state, _ = step(p, state)
    assert same(p, expected)


def test_shapes_are_known_without_values() -> None:
    tx = compressed_optimizer(optax.adam(0.01), eight_bit(), min_size=1000)
    shapes = jax.eval_shape(tx.init, params())
    assert jax.tree.map(lambda x: (x.shape, x.dtype), shapes) == jax.tree.map(
        lambda x: (x.shape, x.dtype), tx.init(params())
    )
    plain = jax.eval_shape(optax.adam(0.01).init, params())
    saved = 2 * (4 * 1280 - (1280 + 5 * 4 + 4)) + 2 * (4 * 4096 - (4096 + 16 * 4))
    assert state_nbytes(plain) - state_nbytes(shapes) == saved - 4


@pytest.mark.full  # the extra test-full has orbax
def test_saved_state_goes_on_to_the_bit(tmp_path: Path) -> None:
    tx = compressed_optimizer(optax.adam(0.01), {"mu": RANDOM, "nu": EXACT}, min_size=1000, seed=3)
    p, state, _ = trained(tx, 5)
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", state)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "state", jax.eval_shape(tx.init, params()))
    serialization = pytest.importorskip("flax.serialization")
    packed = serialization.from_bytes(tx.init(params()), serialization.to_bytes(state))
    step = step_of(tx)
    expected = step(p, state)
    for twin in (restored, packed, pickle.loads(pickle.dumps(state))):  # noqa: S301
        assert same(step(p, jax.tree.map(jnp.asarray, twin)), expected)


def test_random_rounding_follows_from_the_seed_and_differs_between_steps_and_arrays() -> None:
    p = [jnp.zeros(500), jnp.zeros(500)]
    gradient = [jnp.linspace(-1, 1, 500)] * 2

    def payloads(seed: int, steps: int) -> list[bytes]:
        tx = compressed_optimizer(optax.sgd(0.0, momentum=0.0), {"trace": RANDOM}, min_size=0, seed=seed)
        state = tx.init(p)
        for _ in range(steps):
            _, state = tx.update(gradient, state, p)
        return [np.asarray(x).tobytes() for x in jax.tree.leaves(state) if x.dtype == jnp.uint8]

    assert payloads(1, 2) == payloads(1, 2)
    seen = [*payloads(1, 1), *payloads(1, 2), *payloads(2, 1)]
    assert len(set(seen)) == len(seen) == 6


def test_codecs_are_chosen_by_key_pattern_and_function() -> None:
    def shapes(codec: Any, p: Any) -> list[Any]:
        state = compressed_optimizer(optax.adam(0.01), codec, min_size=100).init(p).inner_state[0]
        return [jax.tree.map(lambda x: str(x.dtype), part) for part in (state.mu, state.nu)]

    # A parameter's own name is no key of the optimizer, whose keys come first.
    p = {"mu": jnp.zeros(200), "small": jnp.zeros(99)}
    packed, plain = {"mu": "uint8", "small": "float32"}, {"mu": "float32", "small": "float32"}
    assert shapes(Codebook.dynamic8(), p) == [packed, packed]
    assert shapes({"nu": None, "mu": Codebook.dynamic8()}, p) == [packed, plain]
    assert shapes({"?u": Codebook.dynamic8()}, p) == [packed, packed]
    assert shapes({"ScaleByAdamState.mu": None, "?u": Codebook.dynamic8()}, p) == [plain, packed]
    assert shapes(lambda keys, x: EXACT if keys == ("0", "nu", "mu") and x.size == 200 else None, p) == [plain, packed]
    tx = compressed_optimizer(optax.adam(0.01), eight_bit(), min_size=0)
    assert shapes(eight_bit(), p) == [packed, packed]
    assert tx.init({"a": jnp.zeros(10)}).inner_state[0].count.dtype == jnp.int32


def test_other_types_of_parameters_work() -> None:
    narrow = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params())
    found = []
    for tx in (optax.adam(0.01), compressed_optimizer(optax.adam(0.01), FloatFormat("bf16"), min_size=1000)):
        step, p, state = step_of(tx), narrow, tx.init(narrow)
        for _ in range(3):
            p, state, _ = step(p, state)
        found.append(p)
    assert same(*found)
    assert isinstance(state, CompressedState)


def test_small_arrays_go_into_one_call_and_random_ones_each_into_its_own(monkeypatch: Any) -> None:
    from arrcomp.jax import _ops, optim

    monkeypatch.setattr(optim, "_MAX_NBYTES", 800)
    encode, calls = _ops.encode, []
    monkeypatch.setattr(_ops, "encode", lambda xs, *rest: calls.append(len(xs)) or encode(xs, *rest))  # type: ignore[func-returns-value]
    p = [jnp.ones(size) for size in (100, 100, 100, 300, 10)]
    tx = compressed_optimizer(optax.adam(0.01), {"mu": EXACT, "nu": RANDOM}, min_size=100)
    tx.init(p)
    assert sorted(calls) == [1, 1, 1, 1, 1, 1, 2]


ADAM = optax.adam(0.01)
SMALL = compressed_optimizer(ADAM, EXACT, min_size=0)
P = jnp.ones(64)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: compressed_optimizer(ADAM.update, EXACT),
            TypeError,
            r"^tx: expected an optax\.GradientTransformation, got function",
        ),
        (
            lambda: compressed_optimizer(ADAM, "dynamic8"),  # type: ignore[arg-type]
            TypeError,
            "^codec: expected a codec, a mapping of codecs, or a function of keys and an array, got 'dynamic8'",
        ),
        (
            lambda: compressed_optimizer(ADAM, {"mu": 8}),  # type: ignore[dict-item]
            TypeError,
            r"^codec\['mu'\]: expected a codec or None, got 8 \(int\)",
        ),
        (
            lambda: compressed_optimizer(ADAM, Lossless()),
            ValueError,
            r"^codec: expected a fixed-rate codec, such as in eight_bit\(\), got Lossless\(\)",
        ),
        (
            lambda: compressed_optimizer(ADAM, {"mu": ErrorBounded(abs=1)}),
            ValueError,
            r"^codec: expected a fixed-rate codec, such as in eight_bit\(\), got ErrorBounded\(abs=1\.0\)",
        ),
        (
            lambda: compressed_optimizer(ADAM, lambda keys, x: Lossless(), min_size=0).init(P),
            ValueError,
            r"codec: expected a fixed-rate codec, such as in eight_bit\(\), got Lossless\(\)",
        ),
        (
            lambda: compressed_optimizer(ADAM, lambda keys, x: 8, min_size=0).init(P),  # type: ignore[arg-type, return-value]
            TypeError,
            r"codec\(\('0', 'mu'\), x\): expected a codec or None, got 8 \(int\)",
        ),
        (
            lambda: compressed_optimizer(ADAM, EXACT, min_size=-1),
            ValueError,
            "^min_size: expected an integer from 0 to .*, got -1",
        ),
        (
            lambda: compressed_optimizer(ADAM, EXACT, seed=1 << 64),
            ValueError,
            "^seed: expected an integer from 0 to .*, got 18446744073709551616",
        ),
        (lambda: compressed_optimizer(ADAM, EXACT, threads=0), ValueError, "threads"),
        (
            lambda: SMALL.update(P, SMALL.init(P)),
            ValueError,
            "^params: expected the parameters, which determine the shapes of the state, got None",
        ),
        (
            lambda: SMALL.update(P, ADAM.init(P), P),
            TypeError,
            "^state: expected a CompressedState, as init returns it, got tuple",
        ),
        (
            lambda: SMALL.update([P], SMALL.init(P), [P]),
            ValueError,
            r"^state: expected the structure of init, PyTreeDef\(\(CustomNode\(namedtuple\[ScaleByAdamState\],",
        ),
        (
            lambda: SMALL.update(P[:9], SMALL.init(P), P[:9]),
            ValueError,
            r"^state: expected uint8\[128\] for float32\[9\], got uint8\[256\]",
        ),
        (
            lambda: decompressed_state(ADAM, SMALL.init(P), P),
            TypeError,
            "^tx: expected an optimizer of compressed_optimizer, got",
        ),
    ],
)
def test_bad_arguments_get_typed_errors(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_codecs_that_do_not_take_a_type_are_errors_that_name_the_state() -> None:
    tx = compressed_optimizer(optax.sgd(0.1, momentum=0.9, accumulator_dtype=jnp.float8_e5m2), QSGD(), min_size=0)
    with pytest.raises(
        TypeError,
        match=r"^state '0\.trace\.w': dtype: expected float16, bfloat16, float32, float64 for QSGD, got float8_e5m2",
    ):
        tx.init({"w": jnp.zeros(100)})
