"""Short names of codecs with usual parameters: number formats as other libraries name them."""

from collections.abc import Mapping
from typing import Any

from ._float_format import FloatFormat

_UNSCALED = ("fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32")
_BLOCKS = ("mxfp8", "mxfp6", "mxfp4", "mxint8", "nvfp4")
_SCALED = ("fp6_e3m2", "fp6_e2m3", "fp4_e2m1")  # they have no NaN without a scale
_OTHER_NAMES = {"fp8": "fp8_e4m3", "float16": "fp16", "bfloat16": "bf16"}


def _format(name: str, **parameters: Any) -> dict[str, Any]:
    return {"codec": FloatFormat.name, "format": name, **parameters}


def _table(name: str, bucket_size: int) -> dict[str, Any]:
    return {"codec": "codebook", "table": name, "scaling": "absmax", "bucket_size": bucket_size}


# Configurations by short name, as `codec_from_config` takes them. "int4" means what other libraries mean by it:
# integers with a scale and an offset for each bucket.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    **{name: _format(other) for name, other in _OTHER_NAMES.items()},
    **{name: _format(name) for name in (*_UNSCALED, *_BLOCKS)},
    **{name: _format(name, scaling="bucket") for name in _SCALED},
    **{f"int{bits}": {"codec": "qsgd", "bits": bits} for bits in (8, 4, 2)},
    "nf4": _table("nf4", 64),
    "dynamic8": _table("dynamic8", 256),
    "dynamic8-unsigned": _table("dynamic8-unsigned", 256),
}


def preset(name: str) -> Mapping[str, Any] | None:
    """The configuration of a short name, in capitals too and with "-" for "_"; None if there is none.

    >>> preset("NF4")["table"], preset("fp8-e4m3")["format"], preset("zip")
    ('nf4', 'fp8_e4m3', None)
    """
    lower = name.lower()
    return PRESETS.get(lower) or PRESETS.get(lower.replace("-", "_"))
