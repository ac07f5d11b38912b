"""Tensors saved for the backward pass, compressed: how often, for how long, and what is not allowed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from arrcomp import Codebook, Lossless

torch = pytest.importorskip("torch")

from arrcomp.torch import _saved_activations
from arrcomp.torch._saved_activations import compressed_activations

from .saved_tensors import leaf, saved

LOSSLESS = Lossless()


# How often, and for how long


def test_equal_places_are_compressed_once() -> None:
    x, weight = leaf(64, 96) * 1.0, leaf(96, 96)
    with compressed_activations(LOSSLESS) as statistics:
        ys = [x.sin(), x @ weight, x.t().exp(), (x.view(-1).cos())]
    assert (statistics.tensors, statistics.shared) == (2, 2)  # exp saves its result
    assert saved(ys[0], "self").stored is saved(ys[1], "self").stored is saved(ys[3], "self").stored
    torch.autograd.grad(sum(y.sum() for y in ys), weight)
    with compressed_activations(LOSSLESS, min_size=1) as statistics:
        _parts = x[:32].sin(), x[32:].sin(), x.sin()
    assert (statistics.tensors, statistics.shared) == (3, 0)


def test_other_values_at_the_same_place_are_compressed_again() -> None:
    x, weight = torch.randn(64, 96), torch.ones(64, 96, requires_grad=True)
    with compressed_activations(LOSSLESS) as statistics:
        first = weight * x
        before = x.clone()
        x.mul_(2)
        second = weight * x
    assert statistics.tensors == 2
    assert torch.equal(saved(first, "other").restored(), before)
    assert torch.equal(saved(second, "other").restored(), x)


def test_a_new_tensor_at_an_old_address_is_another() -> None:
    weight, kept, addresses = torch.ones(64, 96, requires_grad=True), [], set()
    with compressed_activations(LOSSLESS):
        for value in range(30):
            x = torch.full((64, 96), float(value))
            addresses.add((x.data_ptr(), id(x.untyped_storage())))
            kept.append(weight * x)
            del x
    assert len(addresses) < 30  # or the test shows nothing
    for value, y in enumerate(kept):
        assert (saved(y, "other").restored() == value).all()


def test_memory_is_freed_with_nothing_to_collect() -> None:
    weight = leaf(64, 96)
    gc.disable()
    try:
        with compressed_activations() as statistics:
            x = torch.randn(64, 96)
            y = (weight * x).exp().sum()
            storage = weakref.ref(x.untyped_storage())
            del x
            assert storage() is None  # and with it its memory
            stored = weakref.ref(y.grad_fn.next_functions[0][0]._raw_saved_result.data.stored)
            assert stored() is not None
        del y
        assert stored() is None
        assert statistics.tensors == 2
    finally:
        gc.enable()


def test_contexts_leave_nothing_behind() -> None:
    weight = leaf(64, 96)

    def step() -> Any:
        with compressed_activations() as statistics:
            y = (weight * torch.randn(64, 96)).sum()
        y.backward()
        return weakref.ref(y), weakref.ref(statistics)

    gc.disable()
    try:
        y, statistics = step()
        assert y() is None
        gc.collect()
        assert statistics() is None
    finally:
        gc.enable()


def test_codecs_need_no_hash() -> None:
    codec = Codebook([0.0], [-1.0, 1.0])
    x = torch.randn(64, 96)
    with compressed_activations(codec) as statistics:
        y = leaf(96, 8).t() @ x.t()
        z = x @ leaf(96, 8)
    assert (statistics.tensors, statistics.shared) == (1, 1)
    assert torch.equal(saved(z, "self").restored(), torch.where(x < 0, -1.0, 1.0))
    assert y.requires_grad


def test_left_alone_tensors_do_not_keep_their_nodes() -> None:
    gc.disable()
    try:
        with compressed_activations():
            y = leaf(5).exp()
        result = weakref.ref(y.untyped_storage())
        del y
        assert result() is None
    finally:
        gc.enable()


def test_compressed_tensors_may_change_in_place_and_others_may_not() -> None:
    x, weight = torch.randn(64, 96), torch.ones(64, 96, requires_grad=True)
    before = x.clone()
    with compressed_activations(LOSSLESS, min_size=100):
        y = (weight * x).sum()
        small = torch.randn(3)
        z = (leaf(3) * small).sum()
    x.zero_()
    y.backward()
    assert torch.equal(weight.grad, before)
    small.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


# Arguments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"codec": "qsgd"}, TypeError, r"codec: expected a codec, a list of Rule, or None, got 'qsgd' \(str\)"),
        ({"min_size": -1}, ValueError, "min_size: expected an integer from 0 to .*, got -1"),
        ({"min_size": 1.5}, TypeError, r"min_size: expected an integer from 0 to .*, got 1\.5 \(float\)"),
        ({"skip": 3}, TypeError, "skip: expected modules, tensors or functions of a tensor, got 3"),
        ({"skip": ["layer"]}, TypeError, "skip: expected modules, tensors or functions of a tensor, got 'layer'"),
        ({"skip": torch.nn.Linear}, TypeError, "skip: expected modules, tensors or functions of a tensor, got <class"),
        ({"skip": None}, TypeError, "skip: expected modules, tensors or functions of a tensor, got None"),
        ({"seed": -1}, ValueError, "seed: expected an integer from 0 to .*, got -1"),
        ({"seed": 1 << 64}, ValueError, "seed: expected an integer from 0 to .*, got 18446744073709551616"),
        ({"seed": 1.0}, TypeError, r"seed: expected an integer from 0 to .*, got 1\.0 \(float\)"),
    ],
)
def test_arguments_are_checked_before_anything(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compressed_activations(**options)


def test_the_default_is_what_the_documentation_says() -> None:
    documented = " ".join((compressed_activations.__doc__ or "").split()).replace('"', "'")
    assert repr(_saved_activations.DEFAULT_CODEC) in documented
