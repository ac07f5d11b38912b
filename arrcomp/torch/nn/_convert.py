"""Replacing a model's layers in place."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from torch import nn

from ..._arguments import checked_integer, shown, wrong_type
from ...activations._fitting import MOST_BITS
from ._activation_classes import Swap, counted, few_bit_form, is_activation, known_classes
from ._few_bit import FewBit, Stepwise

_GivenTypes = type[nn.Module] | Iterable[type[nn.Module]] | Mapping[type[nn.Module], Swap]
Types = _GivenTypes | None
Pattern = str | re.Pattern[str] | None


def convert(
    model: nn.Module,
    bits: int = 3,
    *,
    types: Types = None,
    pattern: Pattern = None,
) -> nn.Module:
    """Replace a model's activations with their few-bit forms, in place.

    The classes of PyTorch are replaced, and those of `transformers.activations` that compute the same functions: GELU
    in all its forms, SiLU and Mish. For subclasses and for classes of other libraries, pass a mapping as `types`.
    Functions that `forward` calls (`torch.nn.functional.gelu`, `x.relu()`) are not modules: call those of
    `arrcomp.torch.functional` there. Weights, and the replaced modules' parameters, modes and hooks, do not change. A
    module that occurs several times is replaced by one module.

    `activation_report(model)` tells what was converted, and what was left. Without `types`, a UserWarning names the
    activations that have no few-bit form.

    Args:
        model: it is changed.
        bits: of each index, 1 to 8; piecewise linear activations always have 1, with exact gradients.
        types: the classes to replace, one or several; None for all that have few-bit forms. Or a mapping from other
            classes to functions that return a module's few-bit form, which ignores `bits`:
            `{SnakeActivation: lambda module: Stepwise(snake, steps)}`.
        pattern: which paths, same as in `map_modules`; None for all.

    Returns:
        The model; or its replacement, if it is an activation itself.

    Raises:
        TypeError, ValueError: an argument is invalid, or nothing matches; the model is unchanged then.

    >>> convert(nn.Sequential(nn.Linear(2, 3), nn.GELU()), bits=2)[1]
    GELU(approximate='none', bits=2)
    """
    checked_integer("bits", bits, 1, MOST_BITS)
    chosen = None if types is None else _checked_types(types, bits)
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "a torch.nn.Module", model)
    made, left = dict[nn.Module, nn.Module](), Counter[str]()
    for module in _matching_paths(model, checked_pattern(pattern)):
        swap = _known_swap(type(module), bits) if chosen is None else chosen.get(type(module))
        if swap is not None:
            made[module] = _named(_checked(swap(module)), module)
        elif is_activation(module) and not isinstance(module, FewBit | Stepwise):
            left[type(module).__name__] += 1
    if not made:
        raise ValueError(_nothing_to_convert(model, chosen, pattern))
    if chosen is None and left:
        warnings.warn(
            f"convert: left {counted(left)}, without a few-bit form; pass types={{{next(iter(left))}: function}}, "
            "where the function returns a module in its place, such as arrcomp.torch.nn.Stepwise",
            stacklevel=2,
        )
    return map_modules(model, lambda module, path: made.get(module, module))


def map_modules(root: nn.Module, function: Callable[[nn.Module, str], nn.Module], pattern: Pattern = None) -> nn.Module:
    """Replace each module of a model by what a function returns for it, in place.

    Children are replaced before their parents, `root` last. The function is called once for a module that occurs
    several times, with the first of its paths that matches; all occurrences are replaced.

    Args:
        root: the model; it is changed.
        function: takes a module and its path (of `named_modules`; "" for `root`), and returns the same or another
            module.
        pattern: which paths: a glob (`fnmatch`, "encoder.*.act"), where `*` also matches dots, or a compiled regular
            expression that must match the whole path. None for all.

    Returns:
        `root`, or its replacement.

    Raises:
        TypeError: an argument has a wrong type, or the function does not return a module.

    >>> from arrcomp.torch.nn import GELU
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.GELU("tanh"))
    >>> map_modules(model, lambda module, path: GELU(bits=2) if path == "1" else module)[1]
    GELU(approximate='none', bits=2)
    """
    if not isinstance(root, nn.Module):
        raise wrong_type("root", "a torch.nn.Module", root)
    path_of = _matching_paths(root, checked_pattern(pattern))
    made: dict[nn.Module, nn.Module] = {}

    def replaced(module: nn.Module) -> nn.Module:
        if module not in made:
            for name, child in list(module.named_children()):
                _put(module, name, child, replaced(child))
            made[module] = _checked(function(module, path_of[module])) if module in path_of else module
        return made[module]

    return replaced(root)


def checked_pattern(pattern: Pattern) -> Callable[[str], bool]:
    """A function that tells whether a path matches a pattern; TypeError if it is none."""
    if pattern is None:
        return lambda path: True
    if isinstance(pattern, re.Pattern):
        return lambda path: pattern.fullmatch(path) is not None
    if isinstance(pattern, str):
        return lambda path: fnmatchcase(path, pattern)
    raise wrong_type("pattern", "a glob or a compiled regular expression", pattern)


def _matching_paths(root: nn.Module, matches: Callable[[str], bool]) -> dict[nn.Module, str]:
    """The first matching path of each module."""
    found: dict[nn.Module, str] = {}
    for path, module in root.named_modules(remove_duplicate=False):
        if module not in found and matches(path):
            found[module] = path
    return found


def _put(parent: nn.Module, name: str, child: nn.Module, made: nn.Module) -> None:
    """Replace `child` by `made`, under each of its names."""
    if made is not child:
        for other, module in list(parent._modules.items()):
            if module is child:
                setattr(parent, other, made)


def _checked(made: object) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise wrong_type("function(module)", "a torch.nn.Module", made)
    return made


def _checked_types(types: _GivenTypes, bits: int) -> dict[type[nn.Module], Swap]:
    """For each class to replace, the function that returns a module's few-bit form."""
    if isinstance(types, Mapping):
        for one, swap in types.items():
            if not isinstance(one, type) or not callable(swap):
                raise TypeError(
                    f"types: expected module classes with functions of a module, got {shown(one)}: {shown(swap)}"
                )
        return dict(types)
    if not isinstance(types, (type, Iterable)):
        raise wrong_type("types", "module classes, or a mapping from these to functions of a module", types)
    swaps: dict[type[nn.Module], Swap] = {}
    for one in [types] if isinstance(types, type) else types:
        swap = _known_swap(one, bits) if isinstance(one, type) else None
        if swap is None:
            raise ValueError(f"types: expected {known_classes()}, got {_name(one)}; pass a mapping for other classes")
        swaps[one] = swap
    return swaps


def _known_swap(kind: type[nn.Module], bits: int) -> Swap | None:
    form = few_bit_form(kind)
    return None if form is None else lambda module: form(module, bits)


def _named(made: nn.Module, module: nn.Module) -> nn.Module:
    """A new module, which remembers for reports what it replaces."""
    if isinstance(made, FewBit | Stepwise):
        made.converted_from = type(module).__name__
    return made


def _nothing_to_convert(model: nn.Module, types: Iterable[type[nn.Module]] | None, pattern: Pattern) -> str:
    found = Counter(_name(type(module)) for module in model.modules())
    has = ", ".join(f"{count} {name}" for name, count in found.most_common(8))
    where = "" if pattern is None else f" at a path that matches {shown(pattern)}"
    expected = known_classes() if types is None else ", ".join(sorted(map(_name, types)))
    return (
        f"model: expected one of {expected}{where}, got {has}; pass a mapping as `types` "
        "for other classes, and replace calls of functions by those of arrcomp.torch.functional"
    )


def _name(one: object) -> str:
    return one.__name__ if isinstance(one, type) else repr(one)
