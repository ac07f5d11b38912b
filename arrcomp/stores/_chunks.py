"""How chunks of a store are coded, for `arrcomp.stores.zarr` and `arrcomp.stores.numcodecs`.

A chunk is a complete stream. The store keeps the codec's configuration, and the seed of one with stochastic rounding,
in one plain JSON object. So there is no `check_finite`: it is not part of how a chunk is coded.
"""

from collections.abc import Mapping
from typing import Any

from .._api.compress import checked_codec, checked_seed, compress
from .._arguments import checked_integer
from .._methods.seeds import MAX_SEED
from ..codecs import Codec, Lossless, codec_from_config

_SEED = "seed"


def checked(codec: Any, seed: Any) -> tuple[Codec, int | None]:
    """The codec, `Lossless()` for None, and the seed, None for a codec that needs none."""
    codec = checked_codec(codec)
    number = None if seed is None else checked_integer(_SEED, seed, 0, MAX_SEED)
    return codec, checked_seed(codec, number)


def config_of(codec: Codec, seed: int | None) -> dict[str, Any]:
    """The codec and the seed as a plain JSON object, from which `from_config` restores them."""
    return codec.config() | ({} if seed is None else {_SEED: seed})


def from_config(config: Mapping[str, Any]) -> tuple[Codec, int | None]:
    """The codec and the seed of a JSON object. Without a codec's name it is `Lossless`."""
    parameters = {"codec": Lossless.name} | dict(config)
    seed = parameters.pop(_SEED, None)
    return checked(codec_from_config(parameters), seed)


def repr_of(coded_by: object, codec: Codec, seed: int | None) -> str:
    """The `repr` of an object with this codec and seed."""
    return f"{type(coded_by).__name__}({codec!r}{'' if seed is None else f', seed={seed}'})"


def encode(chunk: Any, codec: Codec, seed: int | None) -> bytes:
    """The stream of a chunk. One thread is enough, as stores code many chunks at once, each on its own thread."""
    return compress(chunk, codec, seed=seed, threads=1).to_bytes()
