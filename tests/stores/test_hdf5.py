"""The numbers that h5py hands HDF5's filter; tests/c has what the filter does with them."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

import arrcomp
from arrcomp.stores.hdf5 import FILTER_ID, filter_options

CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]


def read(values: tuple[int, ...]) -> tuple[int, dict[str, Any]]:
    """Seed and configuration."""
    version, low, high, nbytes, *words = values
    assert version == 1
    assert len(words) == -(-nbytes // 4)
    return low | high << 32, json.loads(struct.pack(f"<{len(words)}I", *words)[:nbytes])


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_the_options_say_what_the_codec_is(codec: arrcomp.Codec) -> None:
    options = filter_options(codec)
    assert options["compression"] == FILTER_ID
    assert read(options["compression_opts"]) == (0, codec.config())


def test_no_codec_is_lossless_and_seeds_are_kept() -> None:
    assert read(filter_options()["compression_opts"]) == (0, arrcomp.Lossless().config())
    codec = arrcomp.QSGD(rounding="stochastic")
    assert read(filter_options(codec, seed=2**64 - 2)["compression_opts"]) == (2**64 - 2, codec.config())


@pytest.mark.parametrize(
    ("codec", "error", "words"),
    [
        (1, TypeError, "codec: expected a codec"),
        (arrcomp.QSGD(rounding="stochastic"), TypeError, "seed: expected an integer"),
        (arrcomp.Lossless().with_reference(), ValueError, "codec: expected one without a reference"),
        (
            arrcomp.Codebook([i + 0.5 for i in range(255)], [i / 7 for i in range(256)]),
            ValueError,
            "codec: expected one with a configuration of at most 872 bytes in HDF5, got",
        ),
    ],
)
def test_what_a_filter_cannot_do_is_refused(codec: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        filter_options(codec)
