"""Swapping a model's layers in place."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from torch import nn


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
