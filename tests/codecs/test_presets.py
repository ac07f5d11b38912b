"""Short names of codecs are what their names say."""

from __future__ import annotations

import pytest

import arrcomp
from arrcomp.codecs._presets import PRESETS, preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_short_name_is_a_codec_and_hides_none(name: str) -> None:
    codec = arrcomp.codec_from_config(PRESETS[name])
    assert codec.name == PRESETS[name]["codec"]
    assert name not in arrcomp.available_codecs()


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("fp8", arrcomp.FloatFormat("fp8_e4m3")),
        ("bf16", arrcomp.FloatFormat("bf16")),
        ("mxfp8", arrcomp.FloatFormat("mxfp8")),
        ("nf4", arrcomp.Codebook.nf4()),
        ("dynamic8", arrcomp.Codebook.dynamic8()),
        ("dynamic8-unsigned", arrcomp.Codebook.dynamic8(signed=False)),
        ("int4", arrcomp.QSGD(bits=4)),
        ("int8", arrcomp.QSGD(bits=8)),
    ],
)
def test_names_mean_what_other_libraries_mean(name: str, codec: arrcomp.Codec) -> None:
    assert arrcomp.codec_from_config(PRESETS[name]) == codec


def test_capitals_and_hyphens_make_no_difference() -> None:
    assert preset("MXFP8") == preset("mxfp8")
    assert preset("fp8-e5m2") == preset("fp8_e5m2")
    assert preset("error-bounded") is None


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(TypeError, match=r"^config: expected 'format', which float-format needs, got none$"):
        arrcomp.codec_from_config({"codec": "float-format"})
