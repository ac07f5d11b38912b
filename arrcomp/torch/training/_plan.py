"""Which codec each structure gets, as a few words say it.

"smaq", "all"                                               every structure by SmaQ
"smaq", "weights,optimizer"                                 these two alone
"smaq", "weights,optimizer:fp16"                            the optimizer's by another one
"smaq", "optimizer,optimizer.exp_avg_sq:bf16"               one tensor of its state by another one
["smaq.block_size=512", "weights.main_bits=4"]              of a codec wherever it is, and of a structure alone
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..._arguments import shown
from ...codecs import Codec
from ._codecs import CODECS
from ._structures import STRUCTURES, check_structure

_POSITIVE = ("exp_avg_sq", "max_exp_avg_sq")  # second moments of Adam and AdamW
Settings = Mapping[str, Mapping[str, Any]]


def chosen_codecs(compress: str, what: str, settings: Sequence[str] = ()) -> dict[str, Codec | None]:
    """The codec of each structure that is chosen, as `Compression` takes them.

    Args:
        compress: the name of a codec, for the structures that name none.
        what: structures, each with its own codec where wanted, as "weights,optimizer:fp16"; or "all", which may be
            followed by some of them with codecs of their own.
        settings: parameters, each as "CODEC.PARAMETER=VALUE" or "STRUCTURE.PARAMETER=VALUE". Those of a structure come
            first. A value is JSON where it can be, else text.

    Raises:
        UnknownNameError: there is no such structure or codec.
        TypeError, ValueError: a setting is unknown, not allowed, or of a structure or codec that is not chosen.

    >>> chosen_codecs("smaq", "gradients,weights:qsgd", ["weights.bits=8"])["weights"]
    QSGD(bits=8, rounding='stochastic')
    """
    names = _chosen_names(compress, what)
    given = _parsed(settings, names)
    positive = {f"optimizer.{state}": names["optimizer"] for state in _POSITIVE} if "optimizer" in names else {}
    both = names | {structure: name for structure, name in positive.items() if structure not in names}
    return {structure: _made(structure, name, names, given) for structure, name in both.items()}


def _chosen_names(compress: str, what: str) -> dict[str, str]:
    """The name of each structure's codec."""
    names: dict[str, str] = {}
    for part in what.split(","):
        structure, colon, name = part.strip().partition(":")
        codec = CODECS.find(name if colon else compress)
        if structure == "all":
            names |= dict.fromkeys(STRUCTURES, codec.name)
        else:
            check_structure(structure)
            names[structure] = codec.name
    return names


def _parsed(settings: Sequence[str], names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Parameters of each codec and of each structure."""
    given: dict[str, dict[str, Any]] = {}
    for setting in settings:
        place, equals, text = setting.partition("=")
        owner, dot, parameter = place.rpartition(".")
        if not (equals and dot and owner and parameter):
            form = "CODEC.PARAMETER=VALUE or STRUCTURE.PARAMETER=VALUE"
            raise ValueError(f"settings: expected {form}, as smaq.block_size=512, got {shown(setting)}")
        if owner not in names and owner not in names.values():
            used = ", ".join(dict.fromkeys([*names, *names.values()]))
            raise ValueError(f"settings: expected one of {used} before the parameter, got {shown(setting)}")
        try:
            given.setdefault(owner, {})[parameter] = json.loads(text)
        except json.JSONDecodeError:
            given.setdefault(owner, {})[parameter] = text
    return given


def _made(structure: str, name: str, names: Mapping[str, str], given: Settings) -> Codec | None:
    family, _, state = structure.partition(".")
    shared = given.get(family, {}) if names.get(family) == name else {}
    settings = {**given.get(name, {}), **shared, **given.get(structure, {})}
    try:
        return CODECS.find(name).make(settings, state in _POSITIVE)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{structure}: {error}") from None
