"""The core's activation functions: values, packed steps and gradients, on each instruction set."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import checks
from arrcomp import _core, _dtypes
from arrcomp.activations import ACTIVATIONS, StepFunction, steps_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.arm, pytest.mark.asan]

TYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
PARAMETERS = {"threshold": (0.25, -1.5), "elu": (1.5,), "celu": (0.75,), "softplus": (2.0, 10.0)}
STEPS = (
    *(StepFunction(np.linspace(-2, 2, (1 << bits) - 1).tolist(), np.sin(np.arange(1 << bits)).tolist())
      for bits in range(1, 9)),
    StepFunction((-0.5, 0.25), (1, -2, 0.5)),
    StepFunction((0, 0.5, 2), (1, 0.5, 0.25, -0.125), "even"),
    StepFunction((-1, 0.75), (0.25, 1), "inside"),
    StepFunction((-1, 0.75), (0.25, 1), "outside"),
)  # fmt: skip
# Of bounded functions; softsign's is infinity by infinity, as PyTorch's.
LIMITS = {"sigmoid": 1, "tanh": 1, "softsign": np.nan, "logsigmoid": 0, "relu6": 6, "hardsigmoid": 1, "hardtanh": 1}
# NumPy's own float64 results, with which they are compared, are some units off where terms cancel.
NUMPY_ERROR = 8 * float(np.finfo(np.float64).eps)


def inputs(dtype: Any, count: int = 4000) -> NDArray[Any]:
    random = np.random.default_rng(count)
    x = random.normal(0, 3, count)
    x[::5] = random.normal(0, 1e-3, len(x[::5]))
    x[3::7] = np.linspace(-40, 40, len(x[3::7]))
    x[1:14] = 0, -0.0, 3, -3, 6, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-6, 70, -70
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def activate(
    x: NDArray[Any], function: str, parameters: tuple[float, ...], steps: StepFunction, offset: int = 0
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    values, source = (np.empty(x.nbytes + 8, np.uint8)[offset : offset + x.nbytes] for _ in range(2))
    source[:] = x.view(np.uint8)
    packed = np.full(_core.step_bytes(steps.core_parameters(), x.size), 0xA5, np.uint8)
    places = (source.ctypes.data, values.ctypes.data, packed.ctypes.data, x.size)
    _core.activate_at(function, parameters, steps.core_parameters(), _dtypes.by_numpy(x.dtype).id, *places, 0)
    return values.copy().view(x.dtype), packed


def step_grad(gradient: NDArray[Any], packed: NDArray[np.uint8], steps: StepFunction) -> NDArray[Any]:
    target = np.empty_like(gradient)
    places = (packed.ctypes.data, gradient.ctypes.data, target.ctypes.data, gradient.size)
    _core.step_grad_at(steps.core_parameters(), _dtypes.by_numpy(gradient.dtype).id, *places, 0)
    return target


def parameters_of(function: str) -> tuple[float, ...]:
    return PARAMETERS.get(function, ACTIVATIONS[function].defaults)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", ACTIVATIONS)
def test_values_are_the_functions(function: str, dtype: Any) -> None:
    x = inputs(dtype)
    parameters = parameters_of(function)
    y, _ = activate(x, function, parameters, STEPS[2])
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = ACTIVATIONS[function].function(wide, *parameters)
        finite = np.isfinite(wide)
        unit = float(ml_dtypes.finfo(dtype).eps)
        own = 16 * unit if unit < 1e-6 else 0.51 * unit  # short results are rounded once
        tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
        allowed = own * np.abs(expected) + NUMPY_ERROR * np.abs(wide) + tiny
        assert (np.abs(y.astype(np.float64) - expected)[finite] <= allowed[finite]).all()
    assert np.isnan(y[np.isnan(wide)].astype(np.float32)).all()
    np.testing.assert_array_equal(y[wide == np.inf].astype(np.float64), LIMITS.get(function, np.inf))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", ACTIVATIONS)
def test_instruction_sets_agree(function: str, dtype: Any) -> None:
    x = inputs(dtype, 3000)
    found = []
    for name in _core.instruction_sets():
        with checks.using_instruction_set(name):
            y, packed = activate(x, function, parameters_of(function), STEPS[4])
            found.append((y.tobytes(), packed.tobytes()))
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: f"{steps.rule}-{len(steps.levels)}")
def test_gradients_are_levels_of_steps(steps: StepFunction, dtype: Any, instruction_set: str) -> None:
    for count in (0, 1, 31, 32, 33, 127, 129, 1023, 1024, 1025, 5000):
        x = inputs(dtype, max(count, 14))[:count]
        _, packed = activate(x, "", (), steps)
        assert len(packed) == -(-(-(-count // 32) * steps.bits) // 16) * 64
        gradient = np.random.default_rng(1).normal(size=count).astype(dtype)
        arithmetic: Any = np.float64 if dtype is np.float64 else np.float32
        expected = (gradient.astype(arithmetic) * steps(x.astype(np.float64))).astype(dtype)
        np.testing.assert_array_equal(step_grad(gradient, packed, steps), expected)


def test_elements_may_lie_anywhere() -> None:
    x = inputs(np.float32, 1500)
    for offset in range(1, 8):
        for made, expected in zip(
            activate(x, "gelu", (), STEPS[2], offset), activate(x, "gelu", (), STEPS[2]), strict=True
        ):
            assert made.tobytes() == expected.tobytes()


def test_threads_do_not_change_what_comes_out() -> None:
    x = np.random.default_rng(0).normal(size=700_001).astype(np.float32)
    steps = steps_of("silu", (), 3)
    found = []
    for threads in (1, 2, 7):
        values = np.empty_like(x)
        packed = np.empty(_core.step_bytes(steps.core_parameters(), x.size), np.uint8)
        places = (x.ctypes.data, values.ctypes.data, packed.ctypes.data, x.size)
        _core.activate_at("silu", (), steps.core_parameters(), 12, *places, threads)
        found.append((values.tobytes(), packed.tobytes()))
    assert found[0] == found[1] == found[2]


def test_values_may_replace_the_array() -> None:
    x = inputs(np.float32, 3333)
    expected, _ = activate(x, "mish", (), STEPS[2])
    packed = np.empty(_core.step_bytes(STEPS[2].core_parameters(), x.size), np.uint8)
    places = (x.ctypes.data, x.ctypes.data, packed.ctypes.data, x.size)
    _core.activate_at("mish", (), STEPS[2].core_parameters(), 12, *places, 0)
    assert x.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("function", "parameters", "steps", "dtype_id"),
    [
        ("gelo", (), (0, 1, 0, 0, 1), 12),
        ("gelu", (1.0,), (0, 1, 0, 0, 1), 12),
        ("leaky_relu", (), (0, 1, 0, 0, 1), 12),
        ("gelu", (), (0, 1, 0, 0, 1), 5),
        ("gelu", (), (0, 1, 0, 0, 1), 99),
        ("gelu", (), (), 12),
        ("gelu", (), (4, 1, 0, 0, 1), 12),
        ("gelu", (), (0, 2, 0, 0, 1), 12),
        ("gelu", (), (0, 1, 0, 0), 12),
        ("gelu", (), (0, 2, 1, 0, 0, 1, 2), 12),
        ("gelu", (), (2, 1, 1, 0, 0, 1), 12),
        ("gelu", (), (3, 1, 0, 1, 0, 1, 2), 12),
        ("gelu", (), (0, 1, float("nan"), 0, 1), 12),
        ("gelu", (), (0, 1, 0, 0, float("inf")), 12),
    ],
)
def test_what_is_no_activation_is_refused(
    function: str, parameters: tuple[float, ...], steps: tuple[float, ...], dtype_id: int
) -> None:
    with pytest.raises(ValueError, match=r"^(function|steps|dtype_id): expected"):
        _core.activate_at(function, parameters, steps, dtype_id, 0, 0, 0, 0, 0)
