"""The activations: their functions, derivatives and parameters, under PyTorch's names."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_choice, checked_number, wrong_type, wrong_value
from ..codecs._codebook_fit import Array, normal_density
from ._fitting import Parity
from ._steps import StepFunction

_SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_TANH_GELU = math.sqrt(2 / math.pi), 0.044715


@dataclass(frozen=True)
class Parameter:
    """A number that is an argument of an activation, under PyTorch's name and with its default, if there is one."""

    name: str
    default: float | None
    least: float = -math.inf  # the least valid value
    above: float = -math.inf  # valid values are above this one

    def checked(self, value: Any) -> float:
        """The value as a float; raises TypeError or ValueError unless it is valid."""
        expected = "a finite number"
        if self.least > -math.inf:
            expected = f"a number of at least {self.least:g}"
        if self.above > -math.inf:
            expected = f"a number above {self.above:g}"
        number = checked_number(self.name, value, expected)
        if number < self.least or not number > self.above:
            raise wrong_value(self.name, expected, value)
        return number


@dataclass(frozen=True)
class Activation:
    """An activation function.

    Attributes:
        name: PyTorch's name, in lower case.
        function: takes a float64 array and the parameters.
        derivative: takes the same. Where it jumps, it is what PyTorch's backward pass uses.
        parameters: in PyTorch's order.
        parity: of the derivative with the default parameters, same as in `fit`.
        jumps: where the derivative jumps, or bends.
        steps: for piecewise linear functions: makes the exact derivative from the parameters; else None.
    """

    name: str
    function: Callable[..., Array]
    derivative: Callable[..., Array]
    parameters: tuple[Parameter, ...] = ()
    parity: Parity | None = None
    jumps: tuple[float, ...] = ()
    steps: Callable[..., StepFunction] | None = None

    def checked(self, values: Sequence[Any]) -> tuple[float, ...]:
        """The parameters as floats; raises TypeError or ValueError unless their number and all of them are valid."""
        listed = isinstance(values, (Sequence, np.ndarray)) and getattr(values, "shape", None) != ()
        if not listed or isinstance(values, str):
            raise wrong_type("parameters", "a list or tuple of numbers", values)
        if len(values) != len(self.parameters):
            names = ", ".join(parameter.name for parameter in self.parameters) or "none"
            expected = f"{len(self.parameters)} numbers ({names}) for {self.name}"
            raise ValueError(f"parameters: expected {expected}, got {len(values)}")
        return tuple(parameter.checked(value) for parameter, value in zip(self.parameters, values, strict=True))

    @property
    def defaults(self) -> tuple[float, ...]:
        """The defaults of those parameters that have one."""
        return tuple(parameter.default for parameter in self.parameters if parameter.default is not None)


def _normal_share(x: Array) -> Array:
    """The cumulative distribution function of the standard normal distribution; accurate for x far below 0 too."""
    share: NDArray[np.float64] = np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in x.reshape(-1).tolist()])
    return share.reshape(x.shape)


def _logistic(x: Array) -> Array:
    share: Array = np.exp(-_softplus(-x, 1.0, math.inf))
    return share


def _gelu_slope(x: Array) -> Array:
    return _normal_share(x) + x * normal_density(x)


def _gelu_tanh(x: Array) -> Array:
    scale, cube = _TANH_GELU
    y: Array = 0.5 * x * (1 + np.tanh(scale * (x + cube * x**3)))
    return y


def _gelu_tanh_slope(x: Array) -> Array:
    scale, cube = _TANH_GELU
    inner = np.tanh(scale * (x + cube * x**3))
    slope: Array = 0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * scale * (1 + 3 * cube * x * x)
    return slope


def _silu_slope(x: Array) -> Array:
    share = _logistic(x)
    slope: Array = share * (1 + x * (1 - share))
    return slope


def _mish_slope(x: Array) -> Array:
    inner = np.tanh(_softplus(x, 1.0, math.inf))
    slope: Array = inner + x * (1 - inner * inner) * _logistic(x)
    return slope


def _softplus(x: Array, beta: float, threshold: float) -> Array:
    scaled = beta * x
    return np.where(scaled > threshold, x, (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta)


def _softplus_slope(x: Array, beta: float, threshold: float) -> Array:
    return np.where(beta * x > threshold, 1.0, _logistic(beta * x))


def _elu(x: Array, alpha: float, scale: float = 1.0, width: float = 1.0) -> Array:
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / width))


def _elu_slope(x: Array, alpha: float, scale: float = 1.0, width: float = 1.0) -> Array:
    return scale * np.where(x > 0, 1.0, alpha / width * np.exp(np.minimum(x, 0) / width))


def _celu(x: Array, alpha: float) -> Array:
    return _elu(x, alpha, 1.0, alpha)


def _celu_slope(x: Array, alpha: float) -> Array:
    return _elu_slope(x, alpha, 1.0, alpha)


def _hardswish_slope(x: Array) -> Array:
    return np.where(x < -3, 0.0, np.where(x <= 3, x / 3 + 0.5, 1.0))


_SOFTPLUS = (Parameter("beta", 1.0, above=0), Parameter("threshold", 20.0))

CONTINUOUS = (
    Activation("gelu", lambda x: x * _normal_share(x), _gelu_slope, parity="odd"),
    Activation("gelu_tanh", _gelu_tanh, _gelu_tanh_slope, parity="odd"),
    Activation("silu", lambda x: x * _logistic(x), _silu_slope, parity="odd"),
    Activation("mish", lambda x: x * np.tanh(_softplus(x, 1.0, math.inf)), _mish_slope),
    Activation("sigmoid", _logistic, lambda x: _logistic(x) * _logistic(-x), parity="even"),
    Activation("tanh", np.tanh, lambda x: 1 / np.cosh(x) ** 2, parity="even"),
    Activation("softplus", _softplus, _softplus_slope, _SOFTPLUS, parity="odd"),
    Activation("softsign", lambda x: x / (1 + np.abs(x)), lambda x: (1 + np.abs(x)) ** -2, parity="even"),
    Activation("elu", _elu, _elu_slope, (Parameter("alpha", 1.0),), jumps=(0,)),
    Activation("celu", _celu, _celu_slope, (Parameter("alpha", 1.0, above=0),), jumps=(0,)),
    Activation("selu", lambda x: _elu(x, *_SELU), lambda x: _elu_slope(x, *_SELU), jumps=(0,)),
    Activation("logsigmoid", lambda x: -_softplus(-x, 1.0, math.inf), lambda x: _logistic(-x), parity="odd"),
    Activation("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, _hardswish_slope, parity="odd", jumps=(-3, 3)),
    Activation("tanhshrink", lambda x: x - np.tanh(x), lambda x: np.tanh(x) ** 2, parity="even"),
)


def _piecewise(
    name: str, function: Callable[..., Array], steps: Callable[..., StepFunction], *parameters: Parameter
) -> Activation:
    return Activation(name, function, lambda x, *values: steps(*values)(x).astype(np.float64), parameters, steps=steps)


def _above(border: float, below: float = 0.0) -> StepFunction:
    return StepFunction((border,), (below, 1.0))


def _between(low: float, high: float, slope: float = 1.0) -> StepFunction:
    if not low < high:
        raise wrong_value("max_val", f"a number above min_val={low}", high)
    return StepFunction((low, high), (0.0, slope), "inside")


def _beyond(border: float) -> StepFunction:
    # The two borders must differ. With a border of 0 they are the least float32 numbers, and only 0 is between them.
    border = max(border, float(np.finfo(np.float32).smallest_subnormal))
    return StepFunction((-border, border), (0.0, 1.0), "outside")


_SLOPE, _LAMBD = Parameter("negative_slope", 0.01), Parameter("lambd", 0.5, least=0)
_BORDER, _VALUE = Parameter("threshold", None), Parameter("value", None)
_LOW, _HIGH = Parameter("min_val", -1.0), Parameter("max_val", 1.0)

PIECEWISE = (
    _piecewise("relu", lambda x: np.maximum(x, 0), lambda: _above(0.0)),
    _piecewise("relu6", lambda x: np.clip(x, 0, 6), lambda: _between(0.0, 6.0)),
    _piecewise("leaky_relu", lambda x, a: np.where(x > 0, x, a * x), lambda a: _above(0.0, below=a), _SLOPE),
    _piecewise("threshold", lambda x, a, b: np.where(x > a, x, float(b)), lambda a, b: _above(a), _BORDER, _VALUE),
    _piecewise("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, lambda: _between(-3.0, 3.0, slope=1 / 6)),
    _piecewise("hardtanh", np.clip, _between, _LOW, _HIGH),
    _piecewise("hardshrink", lambda x, border: np.where(np.abs(x) > border, x, 0), _beyond, _LAMBD),
    _piecewise("softshrink", lambda x, border: x - np.clip(x, -border, border), _beyond, _LAMBD),
)

ACTIVATIONS = {activation.name: activation for activation in (*CONTINUOUS, *PIECEWISE)}


def activation(name: str) -> Activation:
    """The activation of this name.

    Raises:
        TypeError, ValueError: there is none of this name.
    """
    check_choice("function", name, tuple(ACTIVATIONS))
    return ACTIVATIONS[name]
