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
    choices = {
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
        (lambda: CompressedOptimizer(P, Lossless()), TypeError, "^optimizer is a list; a torch.optim.Optimizer"),
        (lambda: lossless(lossless(adam(P))), TypeError, "^optimizer is a CompressedOptimizer"),
        (lambda: lossless(adam(P, differentiable=True)), ValueError, "^optimizer has differentiable=True"),
        (lambda: CompressedOptimizer(adam(P), "dynamic8"), TypeError, "^codec='dynamic8' is a str; a codec, or a"),
        (lambda: CompressedOptimizer(adam(P), {}), ValueError, "^codec is an empty mapping"),
        (lambda: CompressedOptimizer(adam(P), {1: Lossless()}), TypeError, "^codec has the key 1, a int; texts"),
        (lambda: CompressedOptimizer(adam(P), {"a": 8}), TypeError, r"^codec\['a'\]=8 is a int; a codec or None"),
        (lambda: lossless(adam(P), min_size=-1), ValueError, "^min_size=-1: 0 to"),
        (lambda: lossless(adam(P), scratch=0), ValueError, "^scratch=0: 1 to"),
        (lambda: lossless(adam(P), seed=-1), ValueError, "^seed=-1: 0 to"),
        (lambda: lossless(adam(P), threads=0), ValueError, "threads"),
        (lambda: lossless(adam(P), separable=1), TypeError, "^separable=1: True or False"),
        (lambda: lossless(adam(P), compressed_state_dict=1), TypeError, "^compressed_state_dict=1: True or False"),
        (lambda: lossless(adam(P)).state_dict(compressed=1), TypeError, "^compressed=1: True or False"),
        (lambda: lossless(adam(P)).load_state_dict([]), TypeError, "^state_dict is a list; a mapping"),
        (
            lambda: lossless(adam(P)).load_state_dict({**adam(P).state_dict(), "compression": 3}),
            TypeError,
            r"^state_dict\['compression'\] is 3; a mapping of seed and step",
        ),
        (
            lambda: CompressedOptimizer.eight_bit(optim.RMSprop(P, centered=True)),
            ValueError,
            "^optimizer has centered=True",
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
    with pytest.raises(TypeError, match=r"^state 'exp_avg': dtype float8_e5m2: QSGD takes"):
        CompressedOptimizer(inner, QSGD(bits=8))
    with pytest.raises(TypeError, match=r"^codec\(parameter, 'exp_avg'\)=8 is a int"):
        CompressedOptimizer(inner, lambda p, key: 8)


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
