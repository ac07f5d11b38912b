"""The core's table of codecs and the classes in the registry: same codecs, parameters, data types, guarantees."""

from collections.abc import Iterator
from typing import Any

import pytest

from arrcomp import QSGD, BaseDelta, Codec, ErrorBounded, Lossless, SmaQ, _core, _dtypes, available_codecs
from fuzz_inputs import VARIANTS

# Beside each class's examples and the fuzzer's variants.
MORE: tuple[Codec, ...] = (
    Lossless(speed="fast"),
    ErrorBounded(abs=1e-300),
    QSGD(coding="entropy", skip_incomplete=True),
    SmaQ(min_size=100),
    BaseDelta(drop_bits=23, delta_bits=(8, 33, 64)),
)


def instances() -> Iterator[Codec]:
    for kind in available_codecs().values():
        yield from kind.examples()
    for variants in VARIANTS.values():
        yield from variants
    yield from MORE


def takes(codec: Codec, dtype: _dtypes.DType) -> bool:
    try:
        codec.check_dtype(dtype)
    except (TypeError, ValueError):
        return False
    return True


def test_the_registry_has_the_codecs_of_the_table() -> None:
    table = {name: number for number, name, _, _ in _core.codec_table()}
    assert table == {name: kind.id for name, kind in available_codecs().items()}
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize("codec", list(instances()), ids=repr)
def test_a_codec_is_what_the_table_says(codec: Codec) -> None:
    names = {number: names for number, _, _, names in _core.codec_table()}[codec.id]
    assert set(codec.named_parameters()) == set(names)
    numbers, fixed_rate, has_sums = _core.codec_properties(codec.id, codec.core_parameters())
    assert fixed_rate == codec.fixed_rate
    assert has_sums == codec.has_sums
    # The parts of complex values are elements like others to the core.
    rows = [row for row in map(_dtypes.by_id, range(1, 256)) if row is not None and row.parts == 1]
    assert {row.name for row in rows if row.id in numbers} == {row.name for row in rows if takes(codec, row)}


@pytest.mark.parametrize("codec", list(instances()), ids=repr)
def test_parameters_are_found_once(codec: Codec) -> None:
    assert codec.core_parameters() is codec.core_parameters()


def test_another_parameter_is_refused() -> None:
    class Wrong(QSGD):
        def named_parameters(self) -> dict[str, Any]:
            return {**super().named_parameters(), "colour": 1}

    with pytest.raises(TypeError, match=r"parameters of codec 3: expected bits, .*colour"):
        Wrong()


@pytest.mark.parametrize("method", ["named_parameters", "examples"])
def test_every_codec_has_what_the_base_only_declares(method: str) -> None:
    for kind in available_codecs().values():
        below = kind.__mro__[: kind.__mro__.index(Codec)]
        assert any(method in vars(owner) for owner in below), kind.name


def test_the_base_alone_is_no_codec() -> None:
    with pytest.raises(NotImplementedError):
        object.__new__(Codec).named_parameters()
    with pytest.raises(NotImplementedError):
        Codec.examples()
