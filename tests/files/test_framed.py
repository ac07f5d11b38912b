"""Files with payloads in Zstandard frames: sizes are those in the file, and a frame is opened only for its values."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import QSGD, CorruptStreamError, ErrorBounded, Lossless, load_file, open_file, save_file
from arrcomp._arrays import framed
from arrcomp._format.frame import decompress_frame
from checks import Array

safetensors_numpy = pytest.importorskip("safetensors.numpy")
zstandard = pytest.importorskip("zstandard")

CODEC = QSGD(bits=8)
SPARSE = checks.gradients(40_000).reshape(400, 100)
NOISE = np.random.default_rng(1).normal(0, 0.02, (64, 100)).astype(np.float32)
MODEL: dict[str, Array] = {"sparse": SPARSE, "noise": NOISE, "steps": np.tile(np.arange(64), 80)}
RULES = [arrcomp.Rule(CODEC, "sparse"), arrcomp.Rule(ErrorBounded(abs=1e-3), "noise")]
FRAMED = {"sparse": True, "noise": False, "steps": True}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of `MODEL`, with frames where they pay."""
    path = tmp_path / "model.safetensors"
    save_file(MODEL, path, RULES, zstd_level=3)
    return path


def expected(name: str) -> Array:
    """What comes back of an array of `MODEL`."""
    codec = {"sparse": CODEC, "noise": ErrorBounded(abs=1e-3)}.get(name, Lossless())
    return np.asarray(arrcomp.decompress(arrcomp.compress(MODEL[name], codec)))


# Saving


def test_frames_are_where_they_pay(path: Path) -> None:
    for name, stream in safetensors_numpy.load_file(path).items():
        assert checks.is_framed(stream.tobytes()) == FRAMED[name]
        checks.check_reference(stream.tobytes(), expected(name))


def test_streams_are_those_of_to_bytes(path: Path) -> None:
    stream = safetensors_numpy.load_file(path)["sparse"].tobytes()
    assert stream == arrcomp.compress(SPARSE, CODEC).to_bytes(zstd_level=3)
    single = path.with_suffix(".arrcomp")
    save_file({"x": SPARSE}, single, CODEC, zstd_level=3, threads=1)
    assert single.read_bytes() == stream


def test_arrays_come_back(path: Path) -> None:
    for name, array in load_file(path, threads=1).items():
        checks.check_same_bits(array, expected(name))


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_arrays_come_back_in_other_frameworks(path: Path, framework: str) -> None:
    pytest.importorskip(framework)
    (array,) = load_file(path, like=framework, names=["sparse"]).values()
    checks.check_same_bits(np.asarray(array), expected("sparse"))


def test_what_came_in_a_frame_stays_in_it(path: Path) -> None:
    twin = path.with_name("twin.safetensors")
    with open_file(path) as file:
        save_file({name: file.compressed(name) for name in file}, twin)
    assert twin.read_bytes().partition(b"ARRC")[2] == path.read_bytes().partition(b"ARRC")[2]


def test_files_are_copied_without_opening_a_frame(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framed, "decompress_frame", None)
    with open_file(path) as file:
        save_file({"x": file.compressed("sparse")}, path.with_name("twin.arrcomp"))


def test_a_level_makes_frames_anew(path: Path) -> None:
    with open_file(path) as file:
        c = file.compressed("sparse")
    save_file({"x": c}, path.with_name("twin.arrcomp"), zstd_level=19)
    assert path.with_name("twin.arrcomp").read_bytes() == c.to_bytes(zstd_level=19) != c.to_bytes(zstd_level=3)


@pytest.mark.parametrize(
    ("level", "error", "message"),
    [
        (0, ValueError, "^zstd_level: expected an integer .*got 0"),
        (23, ValueError, "^zstd_level: expected an integer .*got 23"),
        ("3", TypeError, r"^zstd_level: expected an integer .*got '3' \(str\)"),
    ],
)
def test_other_levels_are_refused_before_any_work(
    tmp_path: Path, level: Any, error: type[Exception], message: str
) -> None:
    tensors = arrcomp._files.Lazy(["x"], lambda name: pytest.fail(name))
    with pytest.raises(error, match=message):
        save_file(tensors, tmp_path / "x.safetensors", zstd_level=level)
    assert not list(tmp_path.iterdir())


# Opening


def test_sizes_are_those_in_the_file(path: Path) -> None:
    tensors = safetensors_numpy.load_file(path)
    with open_file(path) as file:
        for name in file:
            assert file.nbytes(name) == tensors[name].size
            c = file.compressed(name)
            assert (c.payload.frame is not None) == FRAMED[name]
            assert (c.nbytes > file.nbytes(name)) == FRAMED[name]


def test_nothing_is_decompressed_before_values_are_asked_for(tmp_path: Path) -> None:
    path, x = tmp_path / "x.safetensors", np.zeros((1 << 12, 1 << 12), np.float32)
    save_file({"x": x}, path, CODEC, zstd_level=3)
    assert path.stat().st_size < 10_000
    tracemalloc.start()
    try:
        with open_file(path) as file:
            assert file.spec("x").shape == file.info("x").shape == x.shape
            assert file.compressed("x").codec == file.compressed("x", check=False).codec == CODEC
            part = file.slice("x")
            assert part[3:3].shape == (0, 1 << 12)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert not part[5:6].any()


@given(start=st.integers(0, 400), stop=st.integers(0, 400))
def test_parts_are_those_of_the_whole(path: Path, start: int, stop: int) -> None:
    with open_file(path) as file:
        checks.check_same_bits(file.slice("sparse", threads=1)[start:stop], expected("sparse")[start:stop])


def test_parts_open_the_frame_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(framed, "decompress_frame", lambda *given: opened.append(given) or decompress_frame(*given))  # type: ignore[func-returns-value]
    with open_file(path) as file:
        part = file.slice("sparse")
    for row in (3, 5, 399):
        checks.check_same_bits(part[row], expected("sparse")[row])
    assert len(opened) == 1


# Damage


def with_frame(stream: bytes, change: Callable[[bytearray], object]) -> bytes:
    """A stream whose frame was changed, with the right checksum."""
    start, end = checks.payload_span(stream)
    frame = bytearray(stream[start + 8 : end])
    change(frame)
    return checks.seal(stream[:start] + len(frame).to_bytes(8, "little") + frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.clear(), "frame: expected at least .* bytes for its payload, got 0"),
        (lambda frame: frame.extend(b"\0"), "unused data|frame"),
        (lambda frame: frame.__setitem__(0, 0), "frame: expected Zstandard's magic number, got"),
        (lambda frame: frame.__delitem__(slice(-1, None)), "frame"),
        (lambda frame: frame.__setitem__(slice(20, None), bytes(len(frame) - 20)), "frame"),
    ],
)
def test_damaged_frames_name_the_array(path: Path, change: Callable[[bytearray], object], message: str) -> None:
    tensors = {name: array.tobytes() for name, array in safetensors_numpy.load_file(path).items()}
    tensors["sparse"] = with_frame(tensors["sparse"], change)
    with open_file(path) as file:
        names = file.names
    safetensors_numpy.save_file(
        {name: np.frombuffer(tensors[name], np.uint8) for name in names},
        path,
        metadata={"format": "arrcomp", "version": "0.1"},
    )
    with open_file(path) as file:
        for call in (file.load, lambda name: file.slice(name)[3:5]):
            with pytest.raises(CorruptStreamError, match=rf"model\.safetensors, array 'sparse': .*({message})"):
                call("sparse")
        checks.check_same_bits(file["noise"], expected("noise"))


@settings(max_examples=200)
@given(data=st.data())
def test_parts_of_damaged_frames_are_wrong_at_worst(path: Path, data: st.DataObject) -> None:
    content = bytearray(arrcomp.compress(SPARSE, CODEC).to_bytes(zstd_level=3))
    start, end = checks.payload_span(bytes(content))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, end - 1))] = data.draw(st.integers(0, 255))
    path = path.with_suffix(".arrcomp")
    path.write_bytes(content)
    with open_file(path) as file:
        try:
            assert file.slice("arr_0")[40:60].shape == (20, 100)
        except CorruptStreamError as error:
            assert "array 'arr_0'" in str(error)  # noqa: PT017 - or none is raised


# The command line


def run(*arguments: str, code: int = 0) -> str:
    """What a command prints; it must end with this exit code."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from arrcomp import _cli

    result = CliRunner().invoke(_cli.app, arguments)
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with MODEL in m.safetensors."""
    monkeypatch.chdir(tmp_path)
    safetensors_numpy.save_file(MODEL, "m.safetensors")
    return tmp_path


COMPRESS = ("compress", "m.safetensors", "-o", "c.safetensors", "--rule", "sparse=qsgd:bits=8", "--zstd", "3")


def test_all_tables_have_the_sizes_in_the_file(folder: Path) -> None:
    documents = [
        json.loads(run(*command, "--json"))
        for command in (
            COMPRESS,
            ("info", "c.safetensors"),
            ("info", "--no-check", "c.safetensors"),
            ("verify", "m.safetensors", "c.safetensors"),
            ("decompress", "c.safetensors", "-o", "b.safetensors"),
        )
    ]
    tensors = safetensors_numpy.load_file("c.safetensors")
    for document in documents:
        for row in document["arrays"]:
            assert row["compressed"] == tensors[row["name"]].size
            assert row["frame"] == ("zstd" if checks.is_framed(tensors[row["name"]].tobytes()) else None)
        assert document["total"]["compressed"] == sum(tensor.size for tensor in tensors.values())
    assert {row["name"] for row in documents[0]["arrays"] if row["frame"]} == {"sparse", "steps"}
    for name, array in safetensors_numpy.load_file("b.safetensors").items():
        checks.check_same_bits(array, expected("sparse") if name == "sparse" else MODEL[name])


def test_info_shows_frames_where_there_are_some(folder: Path) -> None:
    from arrcomp._cli.words import size_text

    run(*COMPRESS)
    lines = {line.split(" ")[0]: line for line in run("info", "c.safetensors").splitlines()}
    assert {name: "zstd" in line for name, line in lines.items() if name in MODEL} == FRAMED
    size = safetensors_numpy.load_file("c.safetensors")["sparse"].size
    assert f" {size_text(size)} " in lines["sparse"]
    run(*COMPRESS[:-2], "--force")
    assert "frame" not in run("info", "c.safetensors")


def test_a_stream_with_a_frame_is_a_file(folder: Path) -> None:
    np.save("x.npy", SPARSE)
    row = json.loads(run("compress", "x.npy", "-o", "x.arrcomp", "--codec", "qsgd", "--zstd", "9", "--json"))
    assert row["total"]["compressed"] == Path("x.arrcomp").stat().st_size
    assert Path("x.arrcomp").read_bytes() == arrcomp.compress(SPARSE, QSGD()).to_bytes(zstd_level=9)


@pytest.mark.parametrize(
    ("level", "message"),
    [(level, f"--zstd: expected an integer from 1 to 22, got {level}") for level in ("0", "23")],
)
def test_wrong_levels_are_told_in_one_line(folder: Path, level: str, message: str) -> None:
    assert message in run(*COMPRESS[:-1], level, code=2)
    assert not Path("c.safetensors").exists()
