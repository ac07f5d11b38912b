"""What zarr's metadata say of arrcomp's codecs is what their schemas describe, and what these allow can be read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import arrcomp
import checks
from arrcomp import Codec, ErrorBounded, Lossless

zarr = pytest.importorskip("zarr", "3.1")

from arrcomp.stores.zarr import ArrcompCodec, ArrcompCompressor

FOLDER = Path(__file__).parents[2] / "docs" / "zarr-codecs"
KINDS: dict[str, Any] = {kind.codec_name: kind for kind in (ArrcompCodec, ArrcompCompressor)}
SCHEMAS = {name: json.loads((FOLDER / name / "schema.json").read_text()) for name in KINDS}
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
CODECS: list[Codec] = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
CODECS += [
    ErrorBounded(abs=1e-3, fill_value=1e20, predictor="auto"),
    Lossless(predictor="lorenzo"),
    Lossless(predictor="columns"),
    arrcomp.SmaQ(statistics="given", mean=0.0, std=1.0),
    arrcomp.QSGD(rounding="stochastic", coding="entropy"),
    arrcomp.BaseDelta(delta_bits=(4, 8)),
    arrcomp.Codebook([0.0], [-1.0, 1.0]),
]


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is as a schema says, of the words that ours have: others fail here."""
    words = {
        "$schema": lambda _: True,
        "oneOf": lambda those: sum(fits(value, one) for one in those) == 1,
        "type": lambda names: any(_is(value, name) for name in ([names] if isinstance(names, str) else names)),
        "const": lambda other: value == other,
        "enum": lambda those: value in those,
        "minimum": lambda least: _is(value, "null") or value >= least,
        "maximum": lambda most: _is(value, "null") or value <= most,
        "exclusiveMinimum": lambda least: _is(value, "null") or value > least,
        "exclusiveMaximum": lambda most: value < most,
        "required": lambda names: set(names) <= set(value),
        "additionalProperties": lambda _: set(value) <= set(schema["properties"]),
        "properties": lambda those: all(fits(value[name], one) for name, one in those.items() if name in value),
        "items": lambda one: _is(value, "null") or all(fits(each, one) for each in value),
        "minItems": lambda least: _is(value, "null") or len(value) >= least,
        "maxItems": lambda most: len(value) <= most,
    }
    order = sorted(schema, key=lambda word: word != "type")  # the others expect it
    return all(words[word](schema[word]) for word in order)


def _is(value: Any, name: str) -> bool:
    return (
        value is None
        if name == "null"
        else isinstance(value, TYPES[name]) and (name == "boolean") == (type(value) is bool)
    )


@pytest.mark.parametrize("codec", CODECS, ids=repr)
@pytest.mark.parametrize("name", KINDS)
def test_what_a_codec_writes_fits(name: str, codec: Codec) -> None:
    seed = checks.SEED if codec.needs_seed else None
    way = "serializer" if name == "arrcomp" else "compressors"
    options: dict[str, Any] = {"compressors": None} | {way: KINDS[name](codec, seed=seed)}
    z = zarr.create_array(zarr.storage.MemoryStore(), shape=(4,), dtype="f4", **options)
    (written,) = (one for one in z.metadata.to_dict()["codecs"] if one["name"] == name)
    plain = json.loads(json.dumps(written))
    assert fits(plain, SCHEMAS[name])
    assert KINDS[name].from_dict(plain).codec == codec
    plain["configuration"]["bit"] = 4
    assert not fits(plain, SCHEMAS[name])


def test_the_schema_knows_all_members_of_every_codec() -> None:
    (whole, _) = SCHEMAS["arrcomp"]["oneOf"]
    described: dict[str, set[str]] = {}
    for one in whole["properties"]["configuration"]["oneOf"]:
        described.setdefault(one["properties"]["codec"]["const"], set()).update(one["properties"])
    expected = {
        name: {*(field.name for field in dataclasses.fields(kind)), "codec", "seed"}
        for name, kind in arrcomp.available_codecs().items()
    }
    expected["codebook"].add("table")
    assert described == expected


@pytest.mark.parametrize(
    "configuration",
    [
        {"codec": "error-bounded"},
        {"codec": "error-bounded", "abs": 1e-3, "rel": 1e-3},
        {"codec": "error-bounded", "abs": 0},
        {"codec": "error-bounded", "abs": 1e-3, "predictor": "reference"},
        {"codec": "error-bounded", "pointwise": 1},
        {"codec": "qsgd", "bits": 9},
        {"codec": "qsgd", "bits": True},
        {"codec": "qsgd", "bucket_size": 15},
        {"codec": "base-delta", "delta_bits": []},
        {"codec": "codebook", "table": "nf4", "levels": [0, 1], "borders": [0.5]},
        {"codec": "other"},
        {"speed": "slow"},
        {"seed": -1},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", KINDS)
def test_what_does_not_fit_is_refused(name: str, configuration: dict[str, Any]) -> None:
    metadata = {"name": name, "configuration": configuration}
    assert not fits(metadata, SCHEMAS[name])
    with pytest.raises((TypeError, ValueError)):
        KINDS[name].from_dict(metadata)


@pytest.mark.parametrize("name", KINDS)
def test_without_a_configuration_it_is_lossless(name: str) -> None:
    for metadata in ({"name": name}, {"name": name, "configuration": {}}):
        assert fits(metadata, SCHEMAS[name])
        assert KINDS[name].from_dict(metadata).codec == Lossless()
    assert not fits({"name": "other"}, SCHEMAS[name])


def test_the_schemas_differ_in_the_name_alone() -> None:
    texts = [(FOLDER / name / "schema.json").read_text().replace(f'"{name}"', '"NAME"') for name in KINDS]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", KINDS)
def test_the_example_of_the_page_fits(name: str) -> None:
    example = json.loads((FOLDER / name / "README.md").read_text().split("```json\n")[1].split("```")[0])
    assert fits(example, SCHEMAS[name])
    assert KINDS[name].from_dict(example).codec.name == example["configuration"]["codec"]
