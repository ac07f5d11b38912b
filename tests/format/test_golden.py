"""Golden streams: what earlier versions wrote is still read, and written again byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import arrcomp
import checks
import golden_inputs
from golden_inputs import GOLDEN

pytestmark = [pytest.mark.arm, pytest.mark.wheel]


def golden_stream(name: str) -> bytes:
    """The stored stream; a missing one fails the test, for only `python tests/support/write_golden.py` writes them."""
    if GOLDEN[name].zstd_level is not None:
        pytest.importorskip("zstandard")
    path = golden_inputs.path_of(name)
    assert path.is_file(), f"{path} is missing: write it by `python tests/support/write_golden.py` and commit it"
    return path.read_bytes()


def test_no_stream_is_without_its_input() -> None:
    assert {path.stem for path in golden_inputs.FOLDER.glob("*")} == set(GOLDEN)


def test_streams_are_small() -> None:
    for name in GOLDEN:
        assert golden_inputs.path_of(name).stat().st_size < 40_000, name


@pytest.mark.parametrize("name", GOLDEN)
def test_decodes_to_its_array(name: str, device: checks.Host, record_property: Callable[[str, object], None]) -> None:
    stream, golden = golden_stream(name), GOLDEN[name]
    decoded = checks.array_of(stream, device, **golden.options())
    checks.check_reference(stream, decoded, **golden.options())
    checks.check_promise(golden.make(), decoded, golden.codec)
    record_property("streams", 1)


@pytest.mark.parametrize("name", GOLDEN)
def test_is_written_again_byte_for_byte(name: str, device: checks.Host) -> None:
    stream, golden = golden_stream(name), GOLDEN[name]
    written = checks.stream_of(golden.make(), golden.codec, device, **golden.options())
    if golden.zstd_level is None:
        assert written == stream
    else:  # what a frame looks like is up to Zstandard's version; the payload in it is not
        assert stream[9] == 1
        assert arrcomp.from_bytes(stream).to_bytes() == written
