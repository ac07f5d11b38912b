"""How chunks of a store are coded, for `arrcomp.stores.zarr` and `arrcomp.stores.numcodecs`.

A chunk is a complete stream. The store keeps the codec's configuration, and the seed of one with stochastic rounding,
in one plain JSON object. So there is no `check_finite`: it is not part of how a chunk is coded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._api.compress import checked_codec, checked_seed, compress
from .._arguments import checked_integer, wrong_value
from .._methods.seeds import MAX_SEED
from ..codecs import Codec, Lossless, codec_from_config

BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, init=False, repr=False)
class ChunkCodec:
    """The common base of all stores' codecs: what they code chunks with."""

    codec: Codec
    seed: int | None

    def __init__(self, codec: Codec | None = None, *, seed: int | None = None) -> None:
        codec = checked_codec(codec)
        if codec.needs_reference:
            raise wrong_value("codec", "one without a reference, as a chunk has none", codec)
        number = None if seed is None else checked_integer("seed", seed, 0, MAX_SEED)
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "seed", checked_seed(codec, number))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The codec of a JSON object. Without a name under "codec" it is lossless."""
        parameters = {"codec": Lossless.name} | dict(config)
        seed = parameters.pop("seed", None)
        return cls(codec_from_config(parameters), seed=seed)

    def config(self) -> dict[str, Any]:
        """The codec and the seed as a plain JSON object, from which `from_config` restores them."""
        return self.codec.config() | ({} if self.seed is None else {"seed": self.seed})

    def stream_of(self, chunk: Any) -> bytes:
        """The stream of a chunk. One thread is enough, as stores code many chunks at once, each on its own thread."""
        return compress(chunk, self.codec, seed=self.seed, threads=1).to_bytes()

    @property
    def takes_bytes(self) -> bool:
        """Whether the codec takes bytes, as lossless codecs do: chunks of dtypes that the format lacks are kept so."""
        return self.codec.takes_numpy(BYTE)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.codec!r}{'' if self.seed is None else f', seed={self.seed}'})"
