"""Tensors saved for the backward pass, compressed: which, how often, what comes back, and that memory is freed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from arrcomp import QSGD, ErrorBounded, Lossless, Rule

torch = pytest.importorskip("torch")

from arrcomp.torch import activations
from arrcomp.torch.activations import CompressedTensor, KeptTensor, compressed_activations

LOSSLESS = Lossless()


def saved(y: Any, name: str) -> Any:
    """What the node of a tensor keeps."""
    data = getattr(y.grad_fn, f"_raw_saved_{name}").data
    assert isinstance(data, (CompressedTensor, KeptTensor))
    return data


def leaf(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


# What comes back


def test_an_error_bound_bounds_the_gradient() -> None:
    x, weight, upstream = torch.randn(64, 96), leaf(96, 80), torch.randn(64, 80)
    bound = 1e-2
    with compressed_activations(ErrorBounded(abs=bound)) as statistics:
        y = x @ weight
    y.backward(upstream)
    assert statistics.tensors == 1
    exact = x.double().T @ upstream.double()
    allowed = bound * upstream.double().abs().sum(0) + 1e-5 * (x.double().abs().T @ upstream.double().abs())
    error = (weight.grad.double() - exact).abs()
    assert (error <= allowed).all()
    assert error.max() > 1e-3  # or nothing was lost at all


def test_the_default_is_unbiased() -> None:
    x, weight = torch.randn(64, 96), leaf(96, 80)
    upstream = torch.randn(64, 80)
    exact, errors, total = x.T @ upstream, [], torch.zeros(96, 80)
    for _ in range(100):
        with compressed_activations():
            y = x @ weight
        (gradient,) = torch.autograd.grad(y, weight, upstream)
        errors.append(float((gradient - exact).norm()))
        total += gradient
    assert min(errors) > 0
    assert float((total / 100 - exact).norm()) < 0.15 * sum(errors) / 100  # 0.1 is what 100 independent draws leave


def test_a_seed_repeats_and_a_context_without_one_does_not_draw() -> None:
    x, weight = torch.randn(64, 96), leaf(96, 8)

    def gradient(seed: int | None) -> Any:
        with compressed_activations(seed=seed):
            y = (x @ weight).sum()
        return torch.autograd.grad(y, weight)[0]

    state = torch.random.get_rng_state()
    assert torch.equal(gradient(3), gradient(3))
    assert not torch.equal(gradient(3), gradient(4))
    assert not torch.equal(gradient(None), gradient(None))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.t(),
        lambda x: x[::2, 3:70],
        lambda x: x[:, 5:6],
        lambda x: x.flip(0)[None, :, None],
        lambda x: x.reshape(2, 32, 4, 24).permute(0, 3, 1, 2),
        lambda x: x.reshape(-1)[::3],
    ],
    ids=["transposed", "gaps", "column", "ones", "channels last", "every third"],
)
def test_values_and_strides_come_back(layout: Any) -> None:
    x = layout(torch.randn(64, 96))
    weight = torch.ones(x.shape, requires_grad=True)
    with compressed_activations(LOSSLESS, min_size=1):
        y = weight * x
    kept = saved(y, "other")
    assert isinstance(kept, CompressedTensor)
    assert torch.equal(kept.restored(), x)
    assert kept.restored().stride() == x.stride()
    assert (y.grad_fn._saved_other.shape, y.grad_fn._saved_other.dtype) == (x.shape, x.dtype)


def test_masks_take_a_bit_and_come_back_exactly() -> None:
    x = leaf(300, 1000)
    mask = torch.rand(300, 1000) < 0.3
    with compressed_activations() as statistics:
        y = x.masked_fill(mask, 0.0)
    kept = saved(y, "mask")
    assert torch.equal(kept.restored(), mask)
    assert kept.nbytes < 1.03 * mask.numel() / 8
    assert statistics.ratio > 7.7
    for constant in (torch.zeros_like(mask), torch.ones_like(mask)):
        with compressed_activations():
            y = x.masked_fill(constant, 0.0)
        assert torch.equal(saved(y, "mask").restored(), constant)


def test_integers_are_left_alone_unless_the_codec_takes_them() -> None:
    x, index = leaf(100, 100), torch.randint(0, 100, (100, 100))
    with compressed_activations():
        y = x.gather(0, index)
    assert isinstance(saved(y, "index"), KeptTensor)
    rules = [Rule(LOSSLESS, dtypes="int64"), Rule(QSGD(bits=4))]
    for codec in (LOSSLESS, rules):
        with compressed_activations(codec):
            y = x.gather(0, index)
        assert saved(y, "index").nbytes < index.nbytes / 3
        assert torch.equal(saved(y, "index").restored(), index)


def test_values_that_are_not_finite_do_not_become_finite() -> None:
    x, weight = torch.randn(64, 96), leaf(96, 8)
    x[3, 5] = torch.inf
    with compressed_activations():
        y = x @ weight
    y.sum().backward()
    assert not weight.grad[5].isfinite().any()


# Which


def test_parameters_and_what_is_theirs_are_left_alone() -> None:
    layer = torch.nn.Linear(96, 80)
    frozen = torch.nn.Parameter(torch.randn(96, 80), requires_grad=False)
    x = leaf(64, 96) * 1.0
    with compressed_activations(min_size=0) as statistics:
        plain, transposed, also = x @ layer.weight.t(), layer(x), x @ frozen
        half = x @ layer.weight.to(torch.bfloat16).float().t()
    for y in (plain, transposed, half):
        assert isinstance(saved(y, "mat2"), KeptTensor)
    assert isinstance(saved(also, "mat2"), KeptTensor)
    assert (statistics.tensors, statistics.shared, statistics.kept_tensors) == (1, 2, 0)
    with compressed_activations():
        y = x @ (layer.weight * 2).t()
    assert isinstance(saved(y, "mat2"), CompressedTensor)


def test_leaves_and_small_tensors_are_left_alone() -> None:
    x, small = leaf(64, 96), torch.randn(10, 10)
    with compressed_activations() as statistics:
        y, z = x.sin(), leaf(10, 10) * small
    assert isinstance(saved(y, "self"), KeptTensor)
    assert isinstance(saved(z, "other"), KeptTensor)
    assert (statistics.tensors, statistics.kept_tensors, statistics.kept_nbytes) == (0, 1, 400)
    assert "400 bytes, left alone" in str(statistics)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(1, 96).expand(64, 96),
        torch.randn(200).as_strided((64, 96), (1, 1)),
        torch.randn(64, 96, dtype=torch.complex64).conj(),
        torch.randn(64, 96).as_subclass(type("Named", (torch.Tensor,), {})),
        torch.empty(64, 96, device="meta"),
    ],
    ids=["expanded", "overlapping", "conjugated", "subclass", "meta"],
)
def test_what_is_more_or_less_than_its_memory_is_left_alone(x: Any) -> None:
    weight = torch.ones(x.shape, requires_grad=True, device=x.device)
    with compressed_activations(LOSSLESS, min_size=0), torch._C.DisableTorchFunctionSubclass():
        y = weight * x
    assert isinstance(saved(y, "other"), KeptTensor)


def test_skip_leaves_alone_what_it_names() -> None:
    first, second = torch.nn.Linear(96, 96), torch.nn.Linear(96, 96)
    x = torch.randn(64, 96)

    def compressed(skip: Any) -> tuple[bool, bool]:
        with compressed_activations(skip=skip):
            y = first(x)
            z = second(y)
        kept = z.grad_fn._raw_saved_mat1.data, y.grad_fn._raw_saved_mat1.data
        return isinstance(kept[0], CompressedTensor), isinstance(kept[1], CompressedTensor)

    assert compressed(()) == (True, True)
    assert compressed(second) == (False, True)
    assert compressed([x.t()]) == (True, False)
    assert compressed(lambda saved: saved.grad_fn is None) == (True, False)
    assert compressed([first, second]) == (False, False)
    assert not second._forward_hooks
    assert not second._forward_pre_hooks


def test_skipped_modules_that_fail_do_not_stay_skipped() -> None:
    class Failing(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def forward(self) -> None:
            raise KeyError("inside")

    failing, x = Failing(), torch.randn(64, 96)
    with compressed_activations(skip=failing) as statistics:
        with pytest.raises(KeyError):
            failing()
        leaf(96, 8).t() @ x.t()
    assert statistics.tensors == 1


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
            assert storage() is None
            stored = weakref.ref(y.grad_fn.next_functions[0][0]._raw_saved_result.data.stored)
            assert stored() is not None
        del y
        assert stored() is None
        assert statistics.tensors == 2
    finally:
        gc.enable()


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
        ({"codec": "qsgd"}, TypeError, "codec='qsgd' is a str"),
        ({"min_size": -1}, ValueError, "min_size=-1"),
        ({"min_size": 1.5}, TypeError, r"min_size=1\.5"),
        ({"skip": 3}, TypeError, "skip has 3"),
        ({"skip": ["layer"]}, TypeError, "skip has 'layer'"),
        ({"skip": torch.nn.Linear}, TypeError, "skip has <class"),
        ({"skip": None}, TypeError, "skip has None"),
        ({"seed": -1}, ValueError, "seed=-1"),
        ({"seed": 1 << 64}, ValueError, "seed=18446744073709551616"),
        ({"seed": 1.0}, TypeError, r"seed=1\.0"),
    ],
)
def test_arguments_are_checked_before_anything(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compressed_activations(**options)


def test_the_default_is_what_the_documentation_says() -> None:
    documented = " ".join((compressed_activations.__doc__ or "").split()).replace('"', "'")
    assert repr(activations.DEFAULT_CODEC) in documented
