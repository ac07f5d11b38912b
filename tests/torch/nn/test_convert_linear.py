"""convert_linear, the sizes of projections, and what RandomizedLinear refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from arrcomp._methods.projections import Projection
from arrcomp.torch.functional import randomized_linear
from arrcomp.torch.nn import RandomizedLinear, convert_linear


def model() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 6), nn.Sequential(nn.ReLU(), nn.Linear(6, 6, bias=False)), nn.Linear(6, 3))


def kinds(model: Any) -> list[str]:
    return [type(module).__name__ for module in model.modules() if isinstance(module, nn.Linear)]


# Conversion


def test_parameters_are_others_after_conversion() -> None:
    net = model()
    before = list(net.named_parameters())
    assert convert_linear(net, proj_dim_ratio=0.2) is net
    assert kinds(net) == ["RandomizedLinear"] * 3
    after = list(net.named_parameters())
    assert [name for name, _ in before] == [name for name, _ in after]
    assert all(a is b for (_, a), (_, b) in zip(before, after, strict=True))
    net.load_state_dict(model().state_dict())


def test_the_arguments_are_lost() -> None:
    options: dict[str, Any] = {"proj_dim_ratio": 0.3, "proj_dim_min": 4, "proj_dim_max": 9, "projection": "dct"}
    layer = convert_linear(nn.Linear(8, 6), **options)
    made = RandomizedLinear(8, 6, **options)
    assert repr(layer) == repr(made)
    assert "projection='dct', proj_dim_ratio=0.3, proj_dim_min=4, proj_dim_max=9" in repr(layer)
    assert "proj_dim=5, seed=3" in repr(RandomizedLinear(8, 6, proj_dim=5, seed=3))


def test_layers_draw_the_same_from_one_seed() -> None:
    net: Any = convert_linear(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), seed=5)
    assert net[0].seed != net[1].seed
    again: Any = convert_linear(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), seed=5)
    assert [layer.seed for layer in net] == [layer.seed for layer in again]


def test_modes_hooks_or_frozen_parameters_are_lost() -> None:
    net, calls = model(), []
    net[0].eval()
    net[0].weight.requires_grad_(False)
    net[2].register_forward_hook(lambda *_: calls.append("called"))
    convert_linear(net)
    assert not net[0].training
    assert net[2].training
    assert not net[0].weight.requires_grad
    net(torch.ones(4, 8))
    assert calls == ["called"]


def test_a_converted_layer_alters_the_one_it_came_from() -> None:
    plain = nn.Linear(8, 6)
    layer = convert_linear(plain)
    layer.register_forward_hook(lambda *_: None)
    layer.register_buffer("more", torch.ones(1))
    assert layer.weight is plain.weight
    assert not plain._forward_hooks
    assert list(plain.state_dict()) == ["weight", "bias"]


def test_shared_layers_come_apart() -> None:
    shared = nn.Linear(4, 4)
    net: Any = convert_linear(nn.ModuleList([shared, shared, nn.Linear(4, 4)]))
    assert net[0] is net[1]
    assert net[0] is not net[2]
    tied = nn.ModuleList([nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)])
    tied[1].weight = tied[0].weight
    converted: Any = convert_linear(tied)
    assert converted[1].weight is tied[0].weight


@pytest.mark.parametrize("pattern", ["1.*", re.compile(r"1\.\d+")])
def test_the_pattern_is_not_minded(pattern: Any) -> None:
    assert kinds(convert_linear(model(), pattern=pattern)) == ["Linear", "RandomizedLinear", "Linear"]


@pytest.mark.full
def test_a_transformer_does_not_train() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), nn.Linear(16, 4))
    convert_linear(net, proj_dim_ratio=0.5)
    assert kinds(net) == ["NonDynamicallyQuantizableLinear", *["RandomizedLinear"] * 3]
    x = torch.randn(32, 5, 16)
    y = x[..., :4].cumsum(1)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]


# Errors


@pytest.mark.parametrize(
    ("net", "pattern", "message"),
    [
        (
            nn.Sequential(nn.ReLU(), nn.Conv2d(1, 1, 1)),
            None,
            r"model: expected a torch\.nn\.Linear, got Conv2d, ReLU, Sequential \(subclasses are not replaced:",
        ),
        (
            nn.MultiheadAttention(4, 2),
            None,
            r"model: expected a torch\.nn\.Linear, got MultiheadAttention, NonDynamicallyQuantizableLinear",
        ),
        (model(), "head.*", r"pattern: expected one that matches a torch\.nn\.Linear \(0, 1\.1, 2\), got 'head\.\*'"),
        (
            nn.Sequential(*[nn.Linear(1, 1) for _ in range(10)]),
            "x",
            r"pattern: expected one that matches a torch\.nn\.Linear \(0, 1, 2, 3, 4, 5, 6, 7 and 2 more\),",
        ),
        (nn.Linear(2, 2), "x", r"pattern: expected one that matches a torch\.nn\.Linear \(the model itself\), got 'x'"),
    ],
)
def test_nothing_is_converted_silently(net: Any, pattern: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert_linear(net, pattern=pattern)


WRONG = [
    (
        {"projection": "fft"},
        ValueError,
        "projection: expected 'rows' or 'dct' or 'dft' or 'rademacher' or 'gaussian', got 'fft'",
    ),
    (
        {"projection": 3},
        TypeError,
        r"projection: expected 'rows' or 'dct' or 'dft' or 'rademacher' or 'gaussian', got 3 \(int\)",
    ),
    ({"proj_dim": 0}, ValueError, "proj_dim: expected an integer from 1 to .*, got 0"),
    ({"proj_dim": 2.5}, TypeError, r"proj_dim: expected an integer from 1 to .*, got 2\.5 \(float\)"),
    ({"proj_dim": True}, TypeError, r"proj_dim: expected an integer from 1 to .*, got True \(bool\)"),
    ({"proj_dim_ratio": 0.0}, ValueError, r"proj_dim_ratio: expected a number above 0 and at most 1, got 0\.0"),
    ({"proj_dim_ratio": 1.5}, ValueError, r"proj_dim_ratio: expected a number above 0 and at most 1, got 1\.5"),
    ({"proj_dim_ratio": float("nan")}, ValueError, "proj_dim_ratio: expected a number above 0 and at most 1, got nan"),
    (
        {"proj_dim_ratio": "half"},
        TypeError,
        r"proj_dim_ratio: expected a number above 0 and at most 1, got 'half' \(str\)",
    ),
    ({"proj_dim_min": -1}, ValueError, "proj_dim_min: expected an integer from 1 to .*, got -1"),
    ({"proj_dim_min": 5, "proj_dim_max": 4}, ValueError, "proj_dim_min: expected at most proj_dim_max=4, got 5"),
    (
        {"proj_dim": 4, "proj_dim_ratio": 0.5},
        ValueError,
        "proj_dim: expected proj_dim alone, or proj_dim_ratio with proj_dim_min and proj_dim_max, got",
    ),
    (
        {"proj_dim": 4, "proj_dim_max": 5},
        ValueError,
        "proj_dim: expected proj_dim alone, or proj_dim_ratio with proj_dim_min and proj_dim_max, got",
    ),
    ({"seed": -1}, ValueError, "seed: expected an integer from 0 to .*, got -1"),
    ({"seed": 2**64}, ValueError, "seed: expected an integer from 0 to .*, got 18446744073709551616"),
    ({"seed": 1.0}, TypeError, r"seed: expected an integer from 0 to .*, got 1\.0 \(float\)"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG)
def test_wrong_arguments_are_taken(options: Any, error: type[Exception], message: str) -> None:
    x, weight = torch.ones(9, 4), torch.ones(3, 4, requires_grad=True)
    with pytest.raises(error, match=message):
        randomized_linear(x, weight, **options)
    with pytest.raises(error, match=message):
        RandomizedLinear(4, 3, **options)
    with pytest.raises(error, match=message):
        convert_linear(nn.Linear(4, 3), **options)


def test_a_size_is_taken_for_the_bias() -> None:
    with pytest.raises(TypeError, match=r"bias: expected True or False, got 64 \(int\)"):
        RandomizedLinear(4, 3, 64)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        RandomizedLinear(4, 3, True, "rows", 64)  # type: ignore[call-arg]


def test_a_projection_larger_than_the_batch_is_taken() -> None:
    layer = RandomizedLinear(4, 3, proj_dim=64)
    with pytest.raises(
        ValueError,
        match=r"proj_dim: expected at most 30, the rows of the batch \(the product of all dimensions of x but",
    ):
        layer(torch.ones(5, 6, 4))
    assert layer(torch.ones(8, 8, 4)).shape == (8, 8, 3)


@pytest.mark.parametrize(
    ("x", "weight", "error", "message"),
    [
        ([1.0], torch.ones(3, 4), TypeError, r"x: expected a torch\.Tensor, got list"),
        (
            torch.ones(9, 4, dtype=torch.int64),
            torch.ones(3, 4),
            TypeError,
            "x: expected float16, bfloat16, float32 or float64, got int64",
        ),
        (torch.ones(9, 4, dtype=torch.complex64), torch.ones(3, 4), TypeError, "complex64"),
        (
            torch.ones(9, 5),
            torch.ones(3, 4),
            ValueError,
            r"x and weight: expected shapes \[\.\.\., in_features\] and \[out_features, in_features\], got",
        ),
        (
            torch.ones(()),
            torch.ones(3, 4),
            ValueError,
            r"x and weight: expected shapes \[\.\.\., in_features\] and \[out_features, in_features\], got",
        ),
    ],
)
def test_a_wrong_input_is_taken(x: Any, weight: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        randomized_linear(x, weight.requires_grad_())


def test_weights_that_are_no_tensors_are_taken() -> None:
    x, weight = torch.ones(9, 4), torch.ones(3, 4, requires_grad=True)
    with pytest.raises(TypeError, match=r"weight: expected a torch\.Tensor, got list"):
        randomized_linear(x, [[1.0]])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"bias: expected a torch\.Tensor, got 1\.0 \(float\)"):
        randomized_linear(x, weight, 1.0)  # type: ignore[arg-type]


def test_a_seed_of_numpy_is_none() -> None:
    x = torch.randn(9, 8)

    def gradient(layer: Any) -> Any:
        layer(x).square().sum().backward()
        return layer.weight.grad

    layers: list[Any] = []
    seeds: list[Any] = [3, np.int32(3)]
    for seed in seeds:
        torch.manual_seed(0)
        layers += [RandomizedLinear(8, 5, proj_dim_ratio=0.5, seed=seed)]
        layers += [convert_linear(torch.nn.Linear(8, 5), proj_dim_ratio=0.5, seed=seed)]
    one, two, three, four = map(gradient, layers)
    assert torch.equal(one, three)
    assert torch.equal(two, four)


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (torch.tensor(1.5), r"seed: expected a tensor of one integer, got torch\.float32"),
        (torch.ones(2, dtype=torch.int64), r"\[2\]"),
    ],
)
def test_a_wrong_seed_is_taken(seed: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        randomized_linear(torch.ones(9, 4), torch.ones(3, 4, requires_grad=True), seed=seed)


def test_second_derivatives_are_wrong_without_a_word() -> None:
    x = torch.randn(9, 4, requires_grad=True)
    layer = RandomizedLinear(4, 3)
    for of in (layer.weight, x, layer.bias):
        (gradient,) = torch.autograd.grad(layer(x).square().sum(), of, create_graph=True)
        for through in (x, layer.weight):
            with pytest.raises(RuntimeError, match=r"no second derivatives.* torch\.nn\.functional\.linear"):
                torch.autograd.grad(gradient.sum(), through, retain_graph=True)
    (of_x,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        of_x.sum().backward()


def test_function_transforms_have_another_gradient() -> None:
    x, weight = torch.randn(9, 4), torch.randn(3, 4)
    found = torch.func.grad(lambda weight: randomized_linear(x, weight, seed=3).square().sum())(weight)
    randomized_linear(x, weight.requires_grad_(), seed=3).square().sum().backward()
    torch.testing.assert_close(found, weight.grad)


# Sizes


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, {0: 0, 1: 1, 2: 1, 3: 2, 100: 50}),
        ({"ratio": 0.2}, {1: 1, 4: 1, 5: 1, 6: 2, 10: 2, 1000: 200, 10**9: 2 * 10**8}),
        ({"ratio": 1 / 3}, {3: 1, 4: 2, 300: 100}),
        ({"ratio": 1.0}, {7: 7}),
        ({"ratio": 1e-9}, {10: 1}),
        ({"ratio": 0.1, "least": 8, "most": 20}, {5: 5, 8: 8, 50: 8, 100: 10, 1000: 20}),
        ({"most": 1}, {10: 1}),
        ({"dim": 6}, {6: 6, 100: 6}),
    ],
)
def test_a_batch_gets_another_number_of_rows(options: Any, sizes: dict[int, int]) -> None:
    how = Projection(**options)
    assert {batch: how.rows_of(batch) for batch in sizes} == sizes
