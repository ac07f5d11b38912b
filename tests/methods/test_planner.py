"""The planner: the fewest bytes within an error budget, as trying all choices finds them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from arrcomp._methods.planner import fewest_bytes, plan_bits

pytestmark = pytest.mark.arithmetic

LAYERS, OPTIONS = 5, 4


def all_choices(sizes: Any, costs: Any) -> Any:
    """Bytes and errors of every choice."""
    choices = np.array(list(itertools.product(range(sizes.shape[1]), repeat=len(sizes))))
    rows = np.arange(len(sizes))
    return sizes[rows, choices].sum(axis=1), costs[rows, choices].sum(axis=1)


def total(values: Any, choice: Any) -> Any:
    return values[np.arange(len(values)), choice].sum()


def quantizer_like(random: Any, layers: int = LAYERS) -> tuple[Any, Any]:
    """More bits, more bytes, a smaller error: as layers of several sizes and scales have it."""
    values = random.integers(100, 100_000, layers)
    bits = np.arange(2, 2 + OPTIONS)
    sizes = values[:, None] * bits // 8
    scales = 10.0 ** random.uniform(-3, 3, layers)
    return sizes, scales[:, None] * values[:, None] / (2.0**bits - 1) ** 2 * random.uniform(0.5, 1.5, sizes.shape)


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_the_fewest_bytes_where_errors_are_whole_parts(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(0, 1000, (LAYERS, OPTIONS))
    costs = random.integers(0, 60, (LAYERS, OPTIONS)).astype(float)
    budget = int(random.integers(40, 200))
    nbytes, errors = all_choices(sizes, costs)
    choice = fewest_bytes(sizes, costs, budget, units=budget)
    if not (errors <= budget).any():
        assert choice is None
        return
    assert choice is not None
    assert total(costs, choice) <= budget
    assert total(sizes, choice) == nbytes[errors <= budget].min()


@pytest.mark.parametrize("seed", range(20))
def test_it_misses_nothing_that_a_slightly_smaller_budget_allows(seed: int) -> None:
    sizes, costs = quantizer_like(np.random.default_rng(seed))
    budget = costs[:, 2].sum()
    nbytes, errors = all_choices(sizes, costs)
    choice = fewest_bytes(sizes, costs, budget, units=1000)
    assert choice is not None
    assert total(costs, choice) <= budget
    assert (
        nbytes[errors <= budget].min() <= total(sizes, choice) <= nbytes[errors <= budget * (1 - LAYERS / 1000)].min()
    )


@pytest.mark.parametrize("alpha", [1.0, 1.5, 4.0])
@pytest.mark.parametrize("seed", range(10))
def test_a_plan_costs_no_more_bytes_and_no_more_error_than_one_setting(seed: int, alpha: float) -> None:
    sizes, costs = quantizer_like(np.random.default_rng(seed), layers=40)
    choice = plan_bits(sizes, costs, 2, alpha)
    assert total(costs, choice) <= alpha * costs[:, 2].sum()
    assert total(sizes, choice) < sizes[:, 2].sum(), "layers of so different scales leave something to gain"


def test_one_setting_stays_where_nothing_is_better() -> None:
    sizes, costs = np.tile([[10, 20, 30]], (7, 1)), np.tile([[90.0, 30.0, 0.0]], (7, 1))
    assert plan_bits(sizes, costs, 1, 1.0).tolist() == [1] * 7


def test_a_budget_of_nothing_takes_what_loses_nothing() -> None:
    sizes, costs = [[1, 2], [1, 2], [1, 2]], [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    assert plan_bits(sizes, costs, 1, 1.0).tolist() == [0, 1, 0]
    assert plan_bits(sizes, [[0.0, 0.0]] * 3, 1, 1.0).tolist() == [0, 0, 0]


def test_the_least_error_is_taken_where_no_choice_is_within_the_budget() -> None:
    sizes, costs = [[1, 2, 3], [1, 2, 3]], [[9.0, 4.0, 3.0], [9.0, 4.0, 3.0]]
    assert plan_bits(sizes, costs, 1, 0.5).tolist() == [2, 2]


def test_errors_of_any_magnitude_are_planned() -> None:
    sizes, costs = quantizer_like(np.random.default_rng(0))
    expected = plan_bits(sizes, costs, 2).tolist()
    for scale in (1e-300, 1e-30, 1e30, 1e290):
        assert plan_bits(sizes, costs * scale, 2).tolist() == expected


def test_a_thousand_layers_are_planned() -> None:
    sizes, costs = quantizer_like(np.random.default_rng(1), layers=1000)
    choice = plan_bits(sizes, costs, 2)
    assert total(costs, choice) <= costs[:, 2].sum()
    assert total(sizes, choice) < 0.9 * sizes[:, 2].sum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], [[1.0]], 0), r"^nbytes and errors: expected one shape, \(layers, options\), got \(.*\)"),
        (([1, 2], [1.0, 2.0], 0), r"^nbytes and errors: expected one shape, \(layers, options\), got \(.*\)"),
        ((np.zeros((0, 3)), np.zeros((0, 3)), 0), r"^nbytes and errors: expected one shape, .*, got \(.*\)"),
        (([[1, 2]], [[1.0, np.nan]], 0), "^errors: expected finite numbers of at least 0, got others"),
        (([[1, 2]], [[1.0, -1.0]], 0), "^errors: expected finite numbers of at least 0, got others"),
        (([[-1, 2]], [[1.0, 1.0]], 0), "^nbytes: expected finite numbers of at least 0, got others"),
        (([[1, 2]], [[1.0, 1.0]], 2), "^uniform: expected an option from 0 to 1, got 2"),
        (([[1, 2]], [[1.0, 1.0]], 0, 0.0), r"^alpha: expected a finite number above 0, got 0\.0"),
        (([[1, 2]], [[1.0, 1.0]], 0, float("nan")), "^alpha: expected a finite number above 0, got nan"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_bits(*arguments)
    if len(arguments) == 3 and arguments[2] == 0:
        with pytest.raises(ValueError, match=message):
            fewest_bytes(arguments[0], arguments[1], budget=1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, [[1.0]], 0), "^nbytes: expected integers, got object"),
        (([[1.5]], [[1.0]], 0), "^nbytes: expected integers, got float64"),
        (([[1]], [["text"]], 0), "^errors: expected real numbers, got <U4"),
        (([[1], [1, 2]], [[1.0]], 0), "^nbytes: expected integers in an array, got list"),
        (([[1]], [[1.0]], None), "^uniform: expected an option from 0 to 0, got None"),
        (([[1]], [[1.0]], 0, "1"), r"^alpha: expected a finite number above 0, got '1' \(str\)"),
    ],
    ids=str,
)
def test_arguments_of_wrong_types_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        plan_bits(*arguments)


def test_a_wrong_budget_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^budget: expected a finite number of at least 0, got -1\.0"):
        fewest_bytes([[1]], [[1.0]], -1.0)
