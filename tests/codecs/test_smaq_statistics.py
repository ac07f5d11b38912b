"""SmaQ's statistics against NumPy's, and its parameters."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import checks
from arrcomp import SmaQ, _core
from arrcomp._cli.guarantees import compare
from checks import FLOATS, Array, numpy_dtype
from reference_philox import philox

from .test_qsgd import normal
from .test_smaq import BLOCK_SIZES, blocks_of, written

pytestmark = pytest.mark.arithmetic


@pytest.mark.parametrize("statistics", ["exact", "range"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_statistics_are_those_of_the_definition(dtype: str, statistics: Any) -> None:
    rng = np.random.default_rng(8)
    relu = np.maximum(rng.normal(-1, 1, 20_000), 0)
    for values in (normal("float64", 20_000), normal("float64", 20_000, 1, 50), relu, rng.standard_t(3, 20_000)):
        array = values.astype(numpy_dtype(dtype))
        for block_size in BLOCK_SIZES:
            codec = SmaQ(statistics=statistics, block_size=block_size, rounding="nearest")
            each, start = written(checks.stream_of(array, codec), codec).each, 0
            for block in np.split(array.astype(np.float64), np.flatnonzero(np.diff(blocks_of(codec, array.size))) + 1):
                if np.ptp(block) > 0:
                    std = block.std() if statistics == "exact" else np.ptp(block) / expected_range(block.size)
                    mean, largest = block.mean(), np.abs(block - block.mean()).max()
                    assert each[start, 0] == pytest.approx(mean, abs=1e-5 * np.ptp(block) + 1e-6 * abs(mean))
                    assert each[start, 1] == pytest.approx(std, rel=1e-4 if statistics == "exact" else 0.012)
                    assert each[start, 2] == pytest.approx(largest / each[start, 1], rel=2e-4)
                start += block.size


@functools.cache
def expected_range(count: int) -> float:
    """Of normal values, by numerical integration in float64 (Tippett, 1925)."""
    x = np.linspace(-12, 12, 20_001)
    below = np.array([0.5 * math.erfc(-v / 2**0.5) for v in x])
    spread = 1 - below**count - (1 - below) ** count
    return float(spread.sum() * (x[1] - x[0]))


@pytest.mark.parametrize("count", [8, 9, 12, 23, 32, 47, 100, 1000, 3000])
def test_the_range_estimates_the_deviation(count: int) -> None:
    arrays = np.random.default_rng(count).normal(5, 3, (600, count))
    codec = SmaQ(statistics="range", block_size=None, rounding="nearest")
    found = [written(checks.stream_of(array, codec), codec).each[0, 1] for array in arrays]
    assert np.mean(found) == pytest.approx(3, rel=0.012 + 4 * np.std(found) / 3 / len(found) ** 0.5)


def sampled_statistics(block: Array, first: int, samples: int, seed: int) -> tuple[float, float]:
    """Mean and standard deviation of the samples of a block (FORMAT.md, section 5.2)."""
    j = np.arange(samples, dtype=np.uint64)
    counter = [j, np.full_like(j, 1 << 31), np.full_like(j, first % 2**32), np.full_like(j, first >> 32)]
    low, high, *_ = philox(counter, (seed % 2**32, seed >> 32))
    places = [(int(h) << 32 | int(w)) * block.size >> 64 for h, w in zip(high, low, strict=True)]
    chosen = block[places]
    return float(chosen.mean()), float(chosen.std(ddof=1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_samples_are_drawn_as_the_format_says(dtype: str) -> None:
    array, seed = normal(dtype, 9001, 1, 3), 2**40 + 5
    for block_size, samples in itertools.product((None, 100, 5000), (2, 16, 33, 90)):
        codec = SmaQ(statistics="sampled", num_samples=samples, block_size=block_size, rounding="nearest")
        each = written(checks.stream_of(array, codec, seed=seed), codec).each
        size = block_size or array.size
        for first in range(0, array.size, size):
            block = array[first : first + size].astype(np.float64)
            mean, std = sampled_statistics(block, first, samples, seed)
            if block.size <= samples or std == 0:
                mean, std = block.mean(), block.std()
            assert each[first, 0] == pytest.approx(mean, rel=1e-5, abs=1e-6)
            assert each[first, 1] == pytest.approx(std, rel=1e-4, abs=1e-6)


def test_samples_that_are_all_zero_are_not_believed() -> None:
    array = np.zeros(20 * 1024, np.float32)
    array[::20] = np.random.default_rng(1).normal(0, 1, 1024)
    codec, exact = SmaQ(statistics="sampled", rounding="nearest"), SmaQ(rounding="nearest")
    of_all = written(checks.stream_of(array, exact), exact).each[::1024, 1]
    found = np.concatenate([written(checks.stream_of(array, codec, seed=s), codec).each[::1024, 1] for s in range(20)])
    fallen_back = np.isin(found, of_all)
    assert 0.35 < fallen_back.mean() < 0.55  # 0.95^16 = 0.44 of the draws see zeros alone
    assert found.min() > 1e-5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"main_bits": 2}, ValueError, "^main_bits: expected an integer from 3 to 8, got 2"),
        ({"main_bits": 9}, ValueError, "^main_bits: expected an integer from 3 to 8, got 9"),
        ({"main_bits": 6.0}, TypeError, r"^main_bits: expected an integer from 3 to 8, got 6\.0 \(float\)"),
        ({"outlier_bits": 5}, ValueError, "^outlier_bits: expected an integer from 6 to 12, got 5"),
        ({"outlier_bits": 13}, ValueError, "^outlier_bits: expected an integer from 6 to 12, got 13"),
        ({"main_threshold": 0}, ValueError, r"^main_threshold: expected a number from 0\.0009765625 to 1024\.0, got 0"),
        ({"main_threshold": 2.5}, ValueError, r"^outlier_threshold: expected a number .*, got 2\.5"),
        ({"main_threshold": "1"}, TypeError, r"^main_threshold: expected a number .*, got '1' \(str\)"),
        ({"outlier_threshold": 2000}, ValueError, r"^outlier_threshold: expected a number .*, got 2000\.0"),
        ({"outlier_threshold": float("nan")}, ValueError, r"^outlier_threshold: expected a number .*, got nan"),
        ({"overflow": "wrap"}, ValueError, "^overflow: expected 'clamp' or 'extend', got 'wrap'"),
        ({"statistics": "mean"}, ValueError, "^statistics: expected 'exact' or .*, got 'mean'"),
        ({"statistics": "given"}, TypeError, "^mean: expected a finite number with statistics='given', got None"),
        ({"statistics": "given", "mean": 0}, TypeError, "^std: expected a finite .*, got None"),
        ({"statistics": "given", "mean": 0, "std": 0}, ValueError, "^std: expected a finite .*, got 0"),
        ({"statistics": "given", "mean": float("inf"), "std": 1}, ValueError, "^mean: expected a finite .*, got inf"),
        ({"statistics": "given", "mean": True, "std": 1}, TypeError, r"^mean: expected a finite .*, got True \(bool\)"),
        ({"mean": 0.0}, ValueError, r"^mean: expected None with statistics='exact', got 0\.0"),
        ({"std": 1.0, "statistics": "range"}, ValueError, r"^std: expected None with statistics='range', got 1\.0"),
        ({"num_samples": 1}, ValueError, "^num_samples: expected an integer from 2 to 4096, got 1"),
        ({"num_samples": None}, TypeError, "^num_samples: expected an integer from 2 to 4096, got None"),
        ({"block_size": 31}, ValueError, "^block_size: expected an integer from 32 to 1099511627776, got 31"),
        ({"block_size": 2**40 + 1}, ValueError, "^block_size: expected an integer .*, got 1099511627777"),
        ({"block_size": 64.0}, TypeError, r"^block_size: expected an integer .*, got 64\.0 \(float\)"),
        ({"rounding": "up"}, ValueError, "^rounding: expected 'nearest' or 'stochastic' or 'truncate', got 'up'"),
        ({"preserve_zeros": 1}, TypeError, r"^preserve_zeros: expected True or False, got 1 \(int\)"),
        ({"all_positive": None}, TypeError, "^all_positive: expected True or False, got None"),
        ({"min_size": -1}, ValueError, "^min_size: expected an integer from 0 to 1099511627776, got -1"),
    ],
)
def test_wrong_parameters_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SmaQ(**arguments)


def test_the_core_refuses_what_the_class_refuses() -> None:
    good = SmaQ().core_parameters()
    assert _core.capacity(4, good, 12, 10) > 0
    for index, value in ((0, 2), (1, 5), (2, 0), (3, 1), (4, 2), (5, 4), (7, 0), (8, 1), (9, 31), (10, 3), (13, -1)):
        with pytest.raises(ValueError, match=r"^parameters: expected main_bits, .* as smaq takes them, got"):
            _core.capacity(4, (*good[:index], value, *good[index + 1 :]), 12, 10)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_promise_is_checked(dtype: str) -> None:
    rng = np.random.default_rng(0)
    relu = np.maximum(rng.normal(0, 1, 9000), 0)
    for values in (rng.normal(3, 1, 9001), rng.standard_t(3, 5001), relu, np.ones(5000), np.append(relu, np.nan)):
        array = values.astype(numpy_dtype(dtype))
        for statistics, rounding in itertools.product(
            ("exact", "sampled", "range", "given"), ("nearest", "stochastic")
        ):
            given: dict[str, Any] = {"mean": 0.5, "std": 1} if statistics == "given" else {}
            chosen: dict[str, Any] = {"statistics": statistics, "rounding": rounding} | given
            for codec in (SmaQ(**chosen), SmaQ(overflow="clamp", block_size=100, all_positive=True, **chosen)):
                decoded = checks.array_of(checks.stream_of(array, codec))
                assert compare(array, decoded, codec).holds, codec
                decoded[5] += numpy_dtype(dtype).type(60)
                assert not compare(array, decoded, codec).holds, codec
