"""Codecs, shapes, sizes and results in words, for tables and messages."""

import contextlib
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..codecs import QSGD, BaseDelta, Codec, ErrorBounded, Lossless, available_codecs, codec_from_config
from ..codecs._presets import PRESETS

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def codec_text(codec: Codec) -> str:
    """A codec for people: its short name, or its name and its parameters that are not the defaults."""
    if codec in _short_names():
        return _short_names()[codec]
    return " ".join([codec.name, *(f"{key}={_value(value)}" for key, value in _parameters(codec).items())])


@functools.cache
def _short_names() -> dict[Codec, str]:
    """Short names of number formats and of tables, whose parameters say little."""
    return {codec_from_config(config): name for name, config in PRESETS.items() if config["codec"] != QSGD.name}


def codec_options(codec: Codec) -> str:
    """What to type on the command line for a codec."""
    if codec in _short_names():
        return f"--codec {_short_names()[codec]}"
    return options_text(codec.name, _parameters(codec))


def options_text(name: str, parameters: Mapping[str, Any]) -> str:
    """What to type on the command line for a codec of this name with these parameters."""
    parameters = dict(parameters)
    bounds = [f"--{key} {parameters.pop(key)!r}" for key in ("abs", "rel", "pointwise") if key in parameters]
    settings = [f"--set {key}={_value(value)}" for key, value in parameters.items()]
    return " ".join([*(bounds or [f"--codec {name}"]), *settings])


def options_with(name: str, value: Any) -> str | None:
    """What to type for a codec that has this parameter, with this value if it is one; None if no codec has it."""
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    for kind in available_codecs().values():
        config = next((config for config in (codec.config() for codec in kind.examples()) if name in config), None)
        if config is not None and not isinstance(config[name], list):
            with contextlib.suppress(TypeError, ValueError):
                return codec_options(codec_from_config({**config, name: number}))
            return codec_options(codec_from_config(config))
    return None


def shape_text(shape: Sequence[int]) -> str:
    """A shape for people."""
    return " x ".join(map(str, shape)) or "scalar"


def size_text(nbytes: int) -> str:
    """A number of bytes with three digits: "17.8 MB"."""
    size, unit = float(nbytes), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def smaller_text(before: int, after: int) -> str:
    """A ratio in words: "5.11x smaller"."""
    if before == after or not (before and after):
        return "as large as before" if before == after else "larger than before" if after else "empty"
    return f"{before / after:.2f}x smaller" if before > after else f"{after / before:.2f}x larger"


def kept_text(codecs: Iterable[Codec]) -> str:
    """What these codecs have kept, once it was checked."""
    lossy = [codec for codec in codecs if not _is_exact(codec)]
    if not lossy:
        return "every bit kept"
    return "all bounds kept" if all(isinstance(codec, ErrorBounded) for codec in lossy) else "all guarantees kept"


def count_text(count: int, noun: str = "array") -> str:
    """A number of things: "1 array", "3 arrays"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def name_text(name: str) -> str:
    """A name of an array, without characters that would move a terminal's cursor."""
    return name if name.isprintable() else repr(name)[1:-1]


def names_text(names: Sequence[str], most: int = 8) -> str:
    """Names of arrays, of which `most` are shown."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(name_text, names[:most])) + more


def _is_exact(codec: Codec) -> bool:
    return isinstance(codec, Lossless) or (isinstance(codec, BaseDelta) and codec.drop_bits == 0)


def _parameters(codec: Codec) -> dict[str, Any]:
    """The parameters that are not the defaults, and the number of bits always."""
    defaults = {field.name: field.default for field in fields(codec)}
    config = codec.config()
    del config["codec"]
    return {key: value for key, value in config.items() if key == "bits" or value != defaults.get(key)}


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{len(value)} numbers]"
    return value if isinstance(value, str) else json.dumps(value)
