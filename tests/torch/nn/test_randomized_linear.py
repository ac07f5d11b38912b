"""PyTorch's RandomizedLinear: its gradients, what it keeps, its seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from arrcomp._methods.projections import KINDS
from ordinary import then_full, then_slow
from reference_projections import weight_gradient

torch = pytest.importorskip("torch")

from arrcomp._methods import seeds
from arrcomp.torch import _projections
from arrcomp.torch import _seeds as torch_seeds
from arrcomp.torch.functional import randomized_linear
from arrcomp.torch.nn import RandomizedLinear

from .randomized_linear_checks import IN, OUT, QUICK, ROWS, compiled_by, kept_by, steps, tensor

# PyTorch's own, from what torch.compile needs and from what it does.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]

SHORT, LONG = ("rows", "rademacher", "gaussian"), ("dct", "dft")  # kinds, by what their statistics take
SIZES = [(ROWS, 12), (ROWS, 13), (61, 17), (61, 60), (130, 1)]


def uneven(rows: int, columns: int) -> Any:
    """Rows of which some are much larger than others, and which have a mean."""
    return (tensor(rows, columns) + 0.5) * torch.linspace(0.1, 3, rows, dtype=torch.float64)[:, None]


def gradient_of(x: Any, y: Any, **options: Any) -> Any:
    """The weight gradient for a gradient `y` of the output."""
    weight = torch.zeros(y.shape[-1], x.shape[-1], dtype=x.dtype, requires_grad=True)
    randomized_linear(x, weight, **options).backward(y)
    return weight.grad


# The estimate


def test_numbers_are_drawn_otherwise_than_by_the_package() -> None:
    numbers = [0, 5, 2**63 - 1, 2**63, 2**64 - 1]
    given = torch.tensor([torch_seeds.signed(number) for number in numbers])
    made = torch_seeds.derived(given, 3, torch.arange(5))
    assert [int(value) % 2**64 for value in made] == [seeds.derived(number, 3, i) for i, number in enumerate(numbers)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "dim"), SIZES)
def test_the_gradient_is_not_that_of_the_projection_from_the_seed(kind: str, rows: int, dim: int) -> None:
    x, y = uneven(rows, IN), tensor(rows, OUT, seed=4)
    for seed in (0, 2**64 - 1):
        made = gradient_of(x, y, projection=kind, proj_dim=dim, seed=seed)
        expected = weight_gradient(kind, x.numpy(), y.numpy(), dim, seed)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_blocks_are_other_rows_than_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    x, seed = tensor(ROWS, 40), torch.tensor(5)
    for kind in KINDS:
        whole = _projections.project(x, seed, kind, 17, True)
        with monkeypatch.context() as patch:
            patch.setattr(_projections, "_BLOCK", 4 * ROWS)
            torch.testing.assert_close(_projections.project(x, seed, kind, 17, True), whole)


@pytest.mark.parametrize("kind", then_full(SHORT, LONG))
@pytest.mark.parametrize("dim", [12, 25])
def test_the_gradient_is_wrong_on_average(kind: str, dim: int) -> None:
    x, y = uneven(ROWS, IN), uneven(ROWS, OUT)
    exact = y.T @ x
    made = torch.stack([gradient_of(x, y, projection=kind, proj_dim=dim, seed=seed) for seed in range(500)])
    error = made.std(0) / len(made) ** 0.5
    z = (made.mean(0) - exact) / error
    assert z.abs().max() < 4.5  # 35 numbers, nearly normal: once in 4000 runs
    scale = (made * exact).sum((1, 2)) / exact.square().sum()
    assert scale.std() / len(made) ** 0.5 < 0.025  # so that a factor of 1.12 would be seen
    assert abs(scale.mean() - 1) < 4.5 * scale.std() / len(made) ** 0.5


@pytest.mark.parametrize("kind", then_slow(SHORT[:1], SHORT[1:], LONG))
def test_the_variance_does_not_fall_as_the_projection_grows(kind: str) -> None:
    rows = 256
    x, y = tensor(rows, IN), tensor(rows, OUT, seed=4)

    def variance(dim: int) -> float:
        made = [gradient_of(x, y, projection=kind, proj_dim=dim, seed=seed) for seed in range(300)]
        return float((torch.stack(made) - y.T @ x).square().sum((1, 2)).mean())

    # 1 / dim; of samples without replacement, less the variance of all rows, which is none.
    rest = 0 if kind in ("gaussian", "rademacher") else 1 / rows
    for small, large in ((8, 32), (32, 128)):
        expected = (1 / small - rest) / (1 / large - rest)
        assert variance(small) / variance(large) == pytest.approx(expected, rel=0.25)


# What is exact, and what is kept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_dtype_has_another_output_or_gradient(kind: str, dtype: Any) -> None:
    x, weight, bias, y = (tensor(*shape, dtype=dtype) for shape in [(6, 10, IN), (OUT, IN), (OUT,), (6, 10, OUT)])
    for each in (x, weight, bias):
        each.requires_grad_()
    made = randomized_linear(x, weight, bias, projection=kind, proj_dim=16, seed=9)
    assert torch.equal(made, torch.nn.functional.linear(x, weight, bias))
    made.backward(y)
    wide = [each.detach().double().flatten(0, -2).numpy() for each in (x, weight, y)]
    error = 30 * max(torch.finfo(dtype).eps, 1e-7)
    np.testing.assert_allclose(x.grad.double().flatten(0, 1), wide[2] @ wide[1], rtol=error, atol=error)
    np.testing.assert_allclose(bias.grad.double(), wide[2].sum(0), rtol=error, atol=10 * error)
    expected = weight_gradient(kind, wide[0], wide[2], 16, 9)
    np.testing.assert_allclose(weight.grad.double(), expected, atol=error * np.abs(expected).max())
    assert {each.grad.dtype for each in (x, weight, bias)} == {dtype}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", [None, QUICK])
def test_more_is_kept_than_the_projection_and_a_seed(kind: str, backend: str | None) -> None:
    layer = RandomizedLinear(IN, OUT, projection=kind, proj_dim_ratio=0.2)
    function = compiled_by(backend, layer)
    for inner in (False, True):
        x = tensor(5, 12, IN, dtype=torch.float32).requires_grad_(inner)
        kept = {(tuple(each.shape), each.dtype) for each in kept_by(function, x)}
        weight = {((OUT, IN), torch.float32)} if inner else set()
        # Where the compiler transposes the weight, it may keep it so: a view.
        kept = {((OUT, IN), dtype) if shape == (IN, OUT) else (shape, dtype) for shape, dtype in kept}
        assert kept == weight | {((12, IN), torch.float32), ((), torch.int64)}


def test_something_is_kept_where_no_weight_gradient_is_asked_for() -> None:
    layer = RandomizedLinear(IN, OUT)
    x = tensor(ROWS, IN, dtype=torch.float32)
    with torch.no_grad():
        assert kept_by(layer, x) == []
    layer.requires_grad_(False)
    assert kept_by(layer, x) == []
    assert [each.numel() for each in kept_by(layer, x.requires_grad_())] == [OUT * IN]


def test_evaluation_is_random() -> None:
    layer = RandomizedLinear(IN, OUT, proj_dim=1, dtype=torch.float64).eval()
    x, y = tensor(ROWS, IN), tensor(ROWS, OUT)
    layer(x).backward(y)
    torch.testing.assert_close(layer.weight.grad, y.T @ x)


@pytest.mark.parametrize("shape", [(IN,), (1, IN), (0, IN), (3, 0, IN), (4, 2, IN), (8, IN)])
@pytest.mark.parametrize("options", [{"proj_dim_ratio": 1.0}, {"proj_dim_min": 8}])
def test_a_batch_as_small_as_its_projection_is_not_exact(shape: tuple[int, ...], options: Any) -> None:
    x, weight = tensor(*shape), tensor(OUT, IN)
    made, expected = (each.requires_grad_() for each in (weight, weight.clone()))
    randomized_linear(x, made, **options).square().sum().backward()
    torch.nn.functional.linear(x, expected).square().sum().backward()
    assert torch.equal(made.grad, expected.grad)


def test_a_transposed_input_or_an_expanded_gradient_is_read_wrongly() -> None:
    x = tensor(IN, ROWS).T
    expected = weight_gradient("rows", x.numpy(), np.ones((ROWS, OUT)), 12, 1)
    weight = torch.zeros(OUT, IN, dtype=torch.float64, requires_grad=True)
    randomized_linear(x, weight, proj_dim=12, seed=1).sum().backward()
    np.testing.assert_allclose(weight.grad, expected)


# Seeds


def test_a_run_cannot_be_repeated() -> None:
    layer = RandomizedLinear(IN, OUT, dtype=torch.float64)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(steps(layer))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_a_seed_of_its_own_depends_on_the_generator() -> None:
    makes = [steps(RandomizedLinear(IN, OUT, seed=seed, dtype=torch.float64)) for seed in (5, 5, 6)]
    assert torch.equal(makes[0], makes[1])
    assert not torch.equal(makes[0], makes[2])
    layer = RandomizedLinear(IN, OUT, seed=5)
    before = torch.get_rng_state()
    layer(tensor(ROWS, IN, dtype=torch.float32))
    assert torch.equal(torch.get_rng_state(), before)
    assert list(layer.state_dict()) == ["weight", "bias"]


# Modes
