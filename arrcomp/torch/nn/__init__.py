"""Layers that save less for the backward pass, and functions that put them into a model."""

from ._convert import convert, map_modules
from ._few_bit import (
    CELU,
    ELU,
    GELU,
    SELU,
    Hardswish,
    LogSigmoid,
    Mish,
    Sigmoid,
    SiLU,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from ._piecewise import Hardshrink, Hardsigmoid, Hardtanh, LeakyReLU, ReLU, ReLU6, Softshrink, Stepwise, Threshold
from ._randomized_linear import RandomizedLinear, convert_linear

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "RandomizedLinear",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Stepwise",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "convert",
    "convert_linear",
    "map_modules",
]
