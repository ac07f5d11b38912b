"""Golden streams: what earlier versions wrote is still read, and written again byte for byte."""

from __future__ import annotations

import pytest

import checks
import golden_inputs
from golden_inputs import GOLDEN


def golden_stream(name: str) -> bytes:
    """The stored stream; a missing one fails the test, for only `python tests/write_golden.py` writes them."""
    path = golden_inputs.path_of(name)
    assert path.is_file(), f"{path} is missing: write it by `python tests/write_golden.py` and commit it"
    return path.read_bytes()


def test_no_stream_is_without_its_input() -> None:
    assert {path.stem for path in golden_inputs.FOLDER.glob("*")} == set(GOLDEN)


def test_streams_are_small() -> None:
    for name in GOLDEN:
        assert len(golden_stream(name)) < 40_000, name


@pytest.mark.parametrize("name", GOLDEN)
def test_decodes_to_its_array(name: str, device: checks.Host) -> None:
    stream, (make, codec) = golden_stream(name), GOLDEN[name]
    decoded = checks.array_of(stream, device)
    checks.check_reference(stream, decoded)
    checks.check_promise(make(), decoded, codec)


@pytest.mark.parametrize("name", GOLDEN)
def test_is_written_again_byte_for_byte(name: str, device: checks.Host) -> None:
    stream, (make, codec) = golden_stream(name), GOLDEN[name]
    assert checks.stream_of(make(), codec, device) == stream
