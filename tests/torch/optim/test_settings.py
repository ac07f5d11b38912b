"""What can be said to an optimizer whose state is compressed, and what it tells."""

from __future__ import annotations

from typing import Any

import pytest

from arrcomp import QSGD, Codebook, ErrorBounded, Lossless

torch = pytest.importorskip("torch")

from torch import nn, optim

from arrcomp.torch.optim import CompressedOptimizer, eight_bit

from .optimizer_models import adam, compressed_keys, lossless, pair, set_gradients


def test_payloads_stay_where_they_are() -> None:
    parameters = pair()
    optimizer = CompressedOptimizer.eight_bit(adam(parameters))
    places = set()
    for step in range(3):
        set_gradients(parameters, step)
        optimizer.step()
        places.add(tuple(optimizer.state[p]["exp_avg"].payload.buffer.data_ptr() for p in parameters))
    assert len(places) == 1


def test_scratch_bounds_what_is_decompressed_at_a_time() -> None:
    parameters = [nn.Parameter(torch.zeros(1000)) for _ in range(6)]
    sizes = {}
    for scratch in (1, 16_000, None):
        optimizer = lossless(adam(parameters), scratch=scratch)
        for step in range(2):
            set_gradients(parameters, step)
            optimizer.step()
        sizes[scratch] = optimizer.memory().scratch_nbytes
    assert sizes == {1: 8000, 16_000: 16_000, None: 48_000}


def test_memory_counts_what_is_held() -> None:
    parameters = pair(25_600)
    optimizer = CompressedOptimizer.eight_bit(adam(parameters))
    set_gradients(parameters, 0)
    optimizer.step()
    memory = optimizer.memory()
    counters = 2 * 4
    assert memory.original_nbytes == optimizer.original_nbytes == 2 * 2 * 4 * 25_600 + counters
    assert memory.nbytes == optimizer.nbytes == 2 * 2 * (25_600 + 100 * 4) + counters
    assert memory.ratio == memory.original_nbytes / memory.nbytes


def test_codecs_are_chosen_by_key_pattern_and_function() -> None:
    codec = Codebook.dynamic8()
    choices: dict[str, tuple[Any, set[str]]] = {
        "all": (codec, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}),
        "one": ({"exp_avg": codec}, {"exp_avg"}),
        "pattern": ({"exp_avg_sq": None, "*exp*": codec}, {"exp_avg", "max_exp_avg_sq"}),
        "function": (lambda p, key: codec if p.numel() > 4999 and "max" in key else None, {"max_exp_avg_sq"}),
    }
    for choice, keys in choices.values():
        large, small = nn.Parameter(torch.zeros(5000)), nn.Parameter(torch.zeros(4000))
        optimizer = CompressedOptimizer(adam([large, small], amsgrad=True), choice)
        set_gradients([large, small], 0)
        optimizer.step()
        assert compressed_keys(optimizer, large) == keys
        assert compressed_keys(optimizer, small) == set()


P = [nn.Parameter(torch.zeros(5000))]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: CompressedOptimizer(P, Lossless()),  # type: ignore[arg-type]
            TypeError,
            r"^optimizer: expected a torch\.optim\.Optimizer, got list",
        ),
        (
            lambda: lossless(lossless(adam(P))),
            TypeError,
            "^optimizer: expected one that is not compressed, got a CompressedOptimizer",
        ),
        (
            lambda: lossless(adam(P, differentiable=True)),
            ValueError,
            "^optimizer: expected differentiable=False, got True",
        ),
        (
            lambda: CompressedOptimizer(adam(P), "dynamic8"),  # type: ignore[arg-type]
            TypeError,
            "^codec: expected a codec, a mapping of codecs, or a function of a parameter and a key, got",
        ),
        (lambda: CompressedOptimizer(adam(P), {}), ValueError, r"^codec: expected at least one key, got \{\}"),
        (
            lambda: CompressedOptimizer(adam(P), {1: Lossless()}),  # type: ignore[dict-item]
            TypeError,
            r"^codec: expected strings as keys, got 1 \(int\)",
        ),
        (
            lambda: CompressedOptimizer(adam(P), {"a": 8}),  # type: ignore[dict-item]
            TypeError,
            r"^codec\['a'\]: expected a codec or None, got 8 \(int\)",
        ),
        (lambda: lossless(adam(P), min_size=-1), ValueError, "^min_size: expected an integer from 0 to .*, got -1"),
        (lambda: lossless(adam(P), scratch=0), ValueError, "^scratch: expected an integer from 1 to .*, got 0"),
        (lambda: lossless(adam(P), seed=-1), ValueError, "^seed: expected an integer from 0 to .*, got -1"),
        (lambda: lossless(adam(P), threads=0), ValueError, "threads"),
        (lambda: lossless(adam(P), separable=1), TypeError, r"^separable: expected True or False, got 1 \(int\)"),
        (
            lambda: lossless(adam(P), compressed_state_dict=1),
            TypeError,
            r"^compressed_state_dict: expected True or False, got 1 \(int\)",
        ),
        (
            lambda: lossless(adam(P)).state_dict(compressed=1),  # type: ignore[arg-type]
            TypeError,
            r"^compressed: expected True or False, got 1 \(int\)",
        ),
        (lambda: lossless(adam(P)).load_state_dict([]), TypeError, "^state_dict: expected a mapping, got list"),  # type: ignore[arg-type]
        (
            lambda: lossless(adam(P)).load_state_dict({**adam(P).state_dict(), "compression": 3}),
            TypeError,
            r"^state_dict\['compression'\]: expected a mapping with seed and step, got 3",
        ),
        (
            lambda: CompressedOptimizer.eight_bit(optim.RMSprop(P, centered=True)),
            ValueError,
            "^optimizer: expected centered=False, got True",
        ),
    ],
)
def test_bad_arguments_get_typed_errors(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_codecs_that_do_not_fit_a_state_are_errors_that_name_it() -> None:
    p = nn.Parameter(torch.zeros(5000))
    p.grad = torch.ones(5000)
    inner = adam([p])
    inner.step()
    inner.state[p]["exp_avg"] = inner.state[p]["exp_avg"].to(torch.float8_e5m2)
    with pytest.raises(
        TypeError,
        match=r"^state 'exp_avg': dtype: expected float16, bfloat16, float32, float64 for QSGD, got float8_e5m2",
    ):
        CompressedOptimizer(inner, QSGD(bits=8))
    with pytest.raises(TypeError, match=r"^codec\(parameter, 'exp_avg'\): expected a codec or None, got 8 \(int\)"):
        CompressedOptimizer(inner, lambda p, key: 8)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("separable", "calls"), [(None, 1), (False, 1), (True, 2)])
def test_an_unknown_optimizer_is_stepped_in_parts_where_one_says_so(separable: bool | None, calls: int) -> None:
    class Counting(optim.Adam):
        calls = 0

        def step(self, closure: Any = None) -> Any:
            self.calls += 1
            return super().step(closure)

    parameters = pair()
    inner = Counting(parameters)
    optimizer = lossless(inner, scratch=1, separable=separable)
    set_gradients(parameters, 0)
    optimizer.step()
    assert inner.calls == calls
    assert optimizer.memory().scratch_nbytes == 4 * 20_000 // calls


def test_the_8_bit_table_can_be_changed() -> None:
    p = nn.Parameter(torch.zeros(5000))
    p.grad = torch.ones(5000)
    optimizer = CompressedOptimizer(adam([p]), {**eight_bit(), "exp_avg_sq": ErrorBounded(rel=1e-4)})
    optimizer.step()
    assert optimizer.state[p]["exp_avg_sq"].codec == ErrorBounded(rel=1e-4)
    assert optimizer.state[p]["exp_avg"].codec == Codebook.dynamic8()
