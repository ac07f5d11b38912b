"""Swapping a model's layers in place."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from torch import nn

from ..._arguments import checked_integer
from ...activations._fitting import MOST_BITS
from . import _few_bit, _piecewise
from ._few_bit import FewBit

REPLACEMENTS: dict[type[nn.Module], type[FewBit]] = {
    nn.CELU: _few_bit.CELU,
    nn.ELU: _few_bit.ELU,
    nn.GELU: _few_bit.GELU,
    nn.Hardswish: _few_bit.Hardswish,
    nn.LogSigmoid: _few_bit.LogSigmoid,
    nn.Mish: _few_bit.Mish,
    nn.SELU: _few_bit.SELU,
    nn.SiLU: _few_bit.SiLU,
    nn.Sigmoid: _few_bit.Sigmoid,
    nn.Softplus: _few_bit.Softplus,
    nn.Softsign: _few_bit.Softsign,
    nn.Tanh: _few_bit.Tanh,
    nn.Tanhshrink: _few_bit.Tanhshrink,
    nn.Hardshrink: _piecewise.Hardshrink,
    nn.Hardsigmoid: _piecewise.Hardsigmoid,
    nn.Hardtanh: _piecewise.Hardtanh,
    nn.LeakyReLU: _piecewise.LeakyReLU,
    nn.ReLU: _piecewise.ReLU,
    nn.ReLU6: _piecewise.ReLU6,
    nn.Softshrink: _piecewise.Softshrink,
    nn.Threshold: _piecewise.Threshold,
}


Swap = Callable[[nn.Module], nn.Module]

_MOST_SHOWN = 8  # kinds of modules in a message


def convert(
    model: nn.Module,
    bits: int = 3,
    *,
    types: type[nn.Module] | Iterable[type[nn.Module]] | Mapping[type[nn.Module], Swap] | None = None,
    pattern: str | re.Pattern[str] | None = None,
) -> nn.Module:
    """Put activations that keep few bits for the backward pass into the places of a model's own.

    PyTorch's own modules are taken; classes of other libraries, and subclasses, if `types` says what becomes of them.
    Functions that the model calls in `forward` (`torch.nn.functional.gelu`, a tensor's `relu()`) are no modules: there,
    call those of `arrcomp.torch.functional`. Weights stay as they are, and so do the swapped modules' parameters, modes
    and hooks; an activation in several places stays one.

    Args:
        model: it is altered.
        bits: of each index, 1 to 8; what is linear in pieces has 1, with exact gradients.
        types: PyTorch's classes that are taken, one or several; None: all that there are few-bit forms of. Or other
            classes, and what makes the few-bit form of such a module, which `bits` does not concern:
            `{GELUActivation: lambda module: GELU(bits=3)}`.
        pattern: which paths, as of `map_modules`; None: all.

    Returns:
        The model; or what replaces it, if it is an activation itself.

    Raises:
        TypeError, ValueError: an argument is not allowed, or the model has nothing to convert; it is unaltered then.

    >>> convert(nn.Sequential(nn.Linear(2, 3), nn.GELU()), bits=2)[1]
    GELU(approximate='none', bits=2)
    """
    checked_integer("bits", bits, 1, MOST_BITS)
    chosen = _checked_types(types, bits)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}; a torch.nn.Module is allowed")
    found = [module for module in _fitting_paths(model, checked_pattern(pattern)) if type(module) in chosen]
    if not found:
        raise ValueError(_nothing_to_convert(model, chosen, pattern))
    made = {module: _checked(chosen[type(module)](module)) for module in found}
    return map_modules(model, lambda module, path: made.get(module, module))


def map_modules(
    root: nn.Module,
    function: Callable[[nn.Module, str], nn.Module],
    pattern: str | re.Pattern[str] | None = None,
) -> nn.Module:
    """Call a function of each module, and put what it gives into the module's place.

    Modules come before those that hold them, `root` last. A module in several places is one call, with the first of
    its paths that fits, and all places get what comes back.

    Args:
        root: the model; it is altered.
        function: takes a module and its path, as `named_modules` gives it ("" for `root`), and gives the module, as it
            is or altered, or another one.
        pattern: which paths fit: a glob as of `fnmatch` ("encoder.*.act"), where `*` passes dots, or a compiled regular
            expression that has to match the whole path. None: all.

    Returns:
        `root`, or what the function gave for it.

    Raises:
        TypeError: an argument is of another type, or the function gave something else than a module.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.GELU("tanh"))
    >>> map_modules(model, lambda module, path: _few_bit.GELU(bits=2) if path == "1" else module)[1]
    GELU(approximate='none', bits=2)
    """
    if not isinstance(root, nn.Module):
        raise TypeError(f"root is a {type(root).__name__}; a torch.nn.Module is allowed")
    path_of = _fitting_paths(root, checked_pattern(pattern))
    made: dict[nn.Module, nn.Module] = {}

    def replaced(module: nn.Module) -> nn.Module:
        if module not in made:
            for name, child in list(module.named_children()):
                _put(module, name, child, replaced(child))
            made[module] = _checked(function(module, path_of[module])) if module in path_of else module
        return made[module]

    return replaced(root)


def checked_pattern(pattern: str | re.Pattern[str] | None) -> Callable[[str], bool]:
    """What tells whether a path fits a pattern.

    Raises:
        TypeError: it is no pattern.
    """
    if pattern is None:
        return lambda path: True
    if isinstance(pattern, re.Pattern):
        expression = pattern
        return lambda path: expression.fullmatch(path) is not None
    if isinstance(pattern, str):
        return lambda path: fnmatchcase(path, pattern)
    raise TypeError(f"pattern={pattern!r} is a {type(pattern).__name__}; a glob or a compiled expression is allowed")


def _fitting_paths(root: nn.Module, fits: Callable[[str], bool]) -> dict[nn.Module, str]:
    """The first path of each module that fits."""
    found: dict[nn.Module, str] = {}
    for path, module in root.named_modules(remove_duplicate=False):
        if module not in found and fits(path):
            found[module] = path
    return found


def _put(parent: nn.Module, name: str, child: nn.Module, made: nn.Module) -> None:
    """Put `made` where `child` is, under each of its names."""
    if made is not child:
        for other, module in list(parent._modules.items()):
            if module is child:
                setattr(parent, other, made)


def _checked(made: object) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise TypeError(f"function gave a {type(made).__name__}; a torch.nn.Module is allowed")
    return made


def _checked_types(
    types: type[nn.Module] | Iterable[type[nn.Module]] | Mapping[type[nn.Module], Swap] | None, bits: int
) -> dict[type[nn.Module], Swap]:
    """What makes the few-bit form of a module, for each class that is taken."""
    if isinstance(types, Mapping):
        for one, swap in types.items():
            if not isinstance(one, type) or not callable(swap):
                raise TypeError(f"types has {one!r}: {swap!r}; a class of modules and a function of one are allowed")
        return dict(types)
    chosen = REPLACEMENTS if types is None else [types] if isinstance(types, type) else list(types)
    for one in chosen:
        if one not in REPLACEMENTS:
            raise ValueError(
                f"types has {_name(one)}; allowed are {', '.join(map(_name, REPLACEMENTS))} of torch.nn, or a mapping "
                "of other classes to what makes their few-bit forms"
            )
    return {one: functools.partial(REPLACEMENTS[one].of, bits=bits) for one in chosen}


def _nothing_to_convert(
    model: nn.Module, types: Iterable[type[nn.Module]], pattern: str | re.Pattern[str] | None
) -> str:
    found = Counter(_name(type(module)) for module in model.modules())
    has = ", ".join(f"{count} {name}" for name, count in found.most_common(_MOST_SHOWN))
    where = "" if pattern is None else f" at a path that fits {pattern!r}"
    return (
        f"model has nothing to convert{where}: none of {', '.join(sorted(map(_name, types)))}, but {has}. `types` "
        "may map classes of other libraries to what becomes of them; instead of functions call those of "
        "arrcomp.torch.functional"
    )


def _name(one: object) -> str:
    return one.__name__ if isinstance(one, type) else repr(one)
