"""Tensors saved for the backward pass, compressed: what comes back, and which are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from arrcomp import QSGD, ErrorBounded, Lossless, Rule

torch = pytest.importorskip("torch")

from arrcomp.torch._saved_activations import CompressedTensor, KeptTensor, compressed_activations

from .saved_tensors import leaf, saved

LOSSLESS = Lossless()


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


@pytest.mark.parametrize("in_place", [False, True])
def test_what_a_relu_made_zero_stays_so_and_nothing_else_becomes_zero(in_place: bool) -> None:
    x = torch.randn(64, 96) * torch.logspace(-6, 0, 96)
    weight = torch.ones(64, 96, requires_grad=True)
    with compressed_activations(QSGD(bits=1, bucket_size=96)) as statistics:
        y = (torch.relu_ if in_place else torch.relu)(weight * x)
        z = y @ torch.ones(96, 1, requires_grad=True)
    restored = saved(y, "result").restored()
    assert torch.equal(restored > 0, y > 0)
    assert (restored >= 0).all()
    assert saved(z, "self").stored is saved(y, "result").stored
    assert (
        statistics.compressed_nbytes
        == saved(y, "result").nbytes + saved(y.grad_fn.next_functions[0][0], "other").nbytes
    )
    (gradient,) = torch.autograd.grad(z.sum(), y)
    y.backward(gradient)
    assert torch.equal(weight.grad != 0, y > 0)
    x[0, 0] = torch.nan
    with compressed_activations():
        y = torch.relu(weight * x)
    assert saved(y, "result").restored()[0, 0].isnan()


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
    assert "400 bytes, uncompressed" in str(statistics)


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
