"""Damaged and hostile files of compressed arrays: each is told what is wrong with it, and nothing else happens."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import CorruptStreamError, FormatVersionError, UnknownCodecError, load_file, open_file, save_file
from arrcomp._files import read_arrays
from arrcomp._files.content import is_stray

safetensors_numpy = pytest.importorskip("safetensors.numpy")

X = np.sqrt(np.arange(300, dtype=np.float32))
STREAM = arrcomp.compress(X).to_bytes()
MARK = {"format": "arrcomp", "version": "0.1"}
STRAY = ("../../x", "..", "a/../../x", "/etc/x", "\\\\host\\x", "C:\\x", "c:/x", "a\\..\\x", "x\0", "\0")


def entry(start: int, end: int, **changes: Any) -> dict[str, Any]:
    return {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end]} | changes


def hand_made(path: Path, header: Any, body: bytes = STREAM, length: int | None = None) -> Path:
    """A .safetensors file, well-formed or not."""
    text = header if isinstance(header, bytes) else json.dumps({"__metadata__": MARK} | header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + body)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.safetensors"


def test_a_file_made_by_hand_is_read(path: Path) -> None:
    half = len(STREAM)
    hand_made(path, {"b": entry(half, 2 * half), "a": entry(0, half)}, STREAM * 2)
    for array in load_file(path).values():
        checks.check_same_bits(array, X)


SIZE = len(STREAM)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": entry(0, SIZE), "b": entry(SIZE - 1, SIZE)}, "invalid offset"),
        ({"a": entry(0, SIZE), "b": entry(0, SIZE)}, "invalid offset"),
        ({"a": entry(1, SIZE)}, "invalid offset"),
        ({"a": entry(0, 10), "b": entry(20, SIZE)}, "invalid offset"),
        ({"a": entry(0, SIZE, data_offsets=[SIZE, 0])}, "invalid offset"),
        ({"a": entry(0, SIZE - 1)}, "not fully covered"),
        ({"a": entry(0, SIZE + 1)}, "not fully covered"),
        (
            {"a": entry(0, SIZE, data_offsets=[0, (1 << 64) - 1], shape=[(1 << 64) - 1])},
            r"x\.safetensors: expected a \.safetensors .*got another or",
        ),
        ({"a": entry(0, SIZE, shape=[1 << 63, 4])}, r"x\.safetensors: expected a \.safetensors file, got another or"),
        ({"a": entry(0, SIZE, shape=[-1])}, r"x\.safetensors: expected a \.safetensors file, got another or"),
        ({"a": entry(0, SIZE, dtype="U9")}, r"x\.safetensors: expected a \.safetensors file, got another or"),
        ({"a": [0, SIZE]}, r"x\.safetensors: expected a \.safetensors file, got another or"),
        (
            {"__metadata__": MARK | {"x": 3}, "a": entry(0, SIZE)},
            r"x\.safetensors: expected a \.safetensors .*got another or",
        ),
        (b"[" * 100_000, r"x\.safetensors: expected a \.safetensors file, got another or"),
        (b"", r"x\.safetensors: expected a \.safetensors file, got another or"),
        (b"{}" + b"\xff" * 20, r"x\.safetensors: expected a \.safetensors file, got another or"),
    ],
    ids=lambda value: str(value)[:80],
)
def test_headers_that_do_not_fit_the_file_are_corrupt(path: Path, header: Any, message: str) -> None:
    hand_made(path, header)
    for call in (open_file, load_file):
        with pytest.raises(CorruptStreamError, match=message):
            call(path)


@pytest.mark.parametrize("length", [0, 5, 90, 1 << 20, 200_000_000, 1 << 62, (1 << 64) - 1])
def test_lengths_of_the_header_that_do_not_fit_are_corrupt(path: Path, length: int) -> None:
    hand_made(path, {"a": entry(0, SIZE)}, length=length)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptStreamError, match=r"x\.safetensors: expected a \.safetensors file, got another or"):
            open_file(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":%s,"a":%s,"__metadata__":%s}',
        b'{"a":%s,"b":%s,"__metadata__":%s,"__metadata__":{}}',
        b'{"a":%s,"b":%s,"__metadata__":{"x":"1","x":%s}}',
    ],
)
def test_names_that_occur_twice_are_corrupt(path: Path, text: bytes) -> None:
    whole, empty = (json.dumps(entry(*span)).encode() for span in ((0, SIZE), (SIZE, SIZE)))
    metadata = b'"2"' if b'"x"' in text else json.dumps(MARK).encode()
    hand_made(path, text % (whole, empty, metadata))
    with pytest.raises(CorruptStreamError, match=r"twice|duplicate"):
        open_file(path)
    hand_made(path, text % (empty, whole, metadata))
    with pytest.raises(CorruptStreamError, match=r"twice|duplicate"):
        open_file(path)


def test_names_that_occur_twice_are_bad_input_in_other_files(path: Path) -> None:
    hand_made(path, b'{"a":%s,"a":%s}' % ((json.dumps(entry(0, SIZE)).encode(),) * 2))
    with pytest.raises(ValueError, match=r"x\.safetensors: expected different names .*, got 'a' twice") as caught:
        read_arrays(path)
    assert not isinstance(caught.value, CorruptStreamError)


@pytest.mark.parametrize("name", STRAY)
def test_names_that_are_paths_are_corrupt_and_write_nothing(path: Path, name: str) -> None:
    hand_made(path, {name: entry(0, SIZE)})
    for call in (open_file, load_file):
        with pytest.raises(CorruptStreamError, match=r"x\.safetensors: expected names without .*, got '.*'"):
            call(path)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a/b", "a.b", "..a", "a..", "a...b", "w:0", "a\\b", "", ".", "~", "con", "-o"])
def test_other_names_are_taken(path: Path, name: str) -> None:
    assert not is_stray(name)
    hand_made(path, {name: entry(0, SIZE)})
    checks.check_same_bits(load_file(path)[name], X)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("changes", [{"dtype": "I8"}, {"dtype": "F32", "shape": [100]}, {"shape": [1, 400]}], ids=str)
def test_tensors_that_are_no_bytes_are_corrupt(path: Path, changes: dict[str, Any]) -> None:
    body = STREAM[:400]
    hand_made(path, {"a": entry(0, len(body), **changes)}, body)
    with open_file(path) as file:
        for call in (file.spec, file.compressed, file.slice, file.load):
            with pytest.raises(
                CorruptStreamError, match=r"x\.safetensors, array 'a': stream: expected one-dimensional U8, got .*00\]"
            ):
                call("a")


def test_streams_that_are_none_name_the_array(path: Path) -> None:
    for body in (b"", b"ARRC", b"garbage" * 9, STREAM[:-1], STREAM + b"\0"):
        hand_made(path, {"a": entry(0, len(body))}, body)
        with open_file(path) as file:
            for call in (file.spec, file.compressed, file.slice, file.load):
                with pytest.raises(CorruptStreamError, match=r"x\.safetensors, array 'a': "):
                    call("a")


def test_newer_streams_name_the_array(path: Path) -> None:
    for place, error in ((4, FormatVersionError), (6, UnknownCodecError)):
        body = bytearray(STREAM[:-8])
        body[place] = 99
        hand_made(path, {"a": entry(0, SIZE)}, checks.seal(body))
        with open_file(path) as file, pytest.raises(error, match=r"array 'a': "):
            file.spec("a")


def test_shapes_that_the_payload_cannot_hold_allocate_nothing(path: Path) -> None:
    body = bytearray(STREAM[:-8])
    body[24:32] = (1 << 50).to_bytes(8, "little")
    hand_made(path, {"a": entry(0, SIZE)}, checks.seal(body))
    with open_file(path) as file:
        for call in (file.spec, file.slice, file.load):
            with pytest.raises(
                CorruptStreamError, match=r"x\.safetensors, array 'a': payload length: expected.*got 848"
            ):
                call("a")


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"version": "1.0"}, FormatVersionError),
        ({"version": "12.0"}, FormatVersionError),
        ({"version": ""}, CorruptStreamError),
        ({"version": "x.1"}, CorruptStreamError),
        ({"version": "-1.0"}, CorruptStreamError),
        ({"version": "²"}, CorruptStreamError),
        ({}, CorruptStreamError),
        ({"version": "0.1", "source_metadata": "{"}, CorruptStreamError),
        ({"version": "0.1", "source_metadata": "[]"}, CorruptStreamError),
        ({"version": "0.1", "source_metadata": '{"a": 1}'}, CorruptStreamError),
        ({"version": "0.1", "source_metadata": "[" * 100_000}, CorruptStreamError),
    ],
    ids=lambda value: str(value)[:50],
)
def test_wrong_metadata_is_refused(path: Path, metadata: dict[str, str], error: type[Exception]) -> None:
    hand_made(path, {"__metadata__": {"format": "arrcomp"} | metadata, "a": entry(0, SIZE)})
    with pytest.raises(error, match=r"version|source_metadata"):
        open_file(path)


def test_compressed_and_plain_safetensors_are_told_apart(path: Path) -> None:
    save_file({"x": X}, path)
    with pytest.raises(
        ValueError, match=r"x\.safetensors: expected uncompressed.*got compressed ones; `arrcomp decompress"
    ):
        read_arrays(path)
    safetensors_numpy.save_file({"x": X}, path)
    with pytest.raises(ValueError, match="expected compressed arrays, got others") as caught:
        open_file(path)
    assert not isinstance(caught.value, CorruptStreamError)


@settings(max_examples=300)
@given(data=st.data())
def test_a_changed_byte_is_found(path: Path, data: st.DataObject) -> None:
    model: dict[str, checks.Array] = {"a": X, "b.c": np.arange(5)}
    save_file(model, path, metadata={"k": "v"})
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        loaded = load_file(path)
    except (CorruptStreamError, FormatVersionError, ValueError):
        return
    # What changed is a name, a text of the metadata, or padding: no array.
    assert len(loaded) == len(model)
    for array, expected in zip(loaded.values(), model.values(), strict=True):
        checks.check_same_bits(array, expected)


@settings(max_examples=100)
@given(share=st.floats(0, 1, exclude_max=True), suffix=st.sampled_from([".safetensors", ".arrcomp"]))
def test_a_cut_file_is_corrupt(path: Path, share: float, suffix: str) -> None:
    path = path.with_suffix(suffix)
    save_file({"a": X}, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CorruptStreamError):
        load_file(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".arrcomp"])
@pytest.mark.parametrize("content", [b"", b"\0", b"garbage that is no file of arrays" * 9, b"\xff" * 64], ids=repr)
def test_other_files_are_corrupt(path: Path, suffix: str, content: bytes) -> None:
    path = path.with_suffix(suffix)
    path.write_bytes(content)
    with pytest.raises(CorruptStreamError):
        load_file(path)
