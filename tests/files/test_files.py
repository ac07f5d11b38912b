"""Files of arrays and of compressed arrays: what they hold comes back, and a failure leaves nothing behind."""

from __future__ import annotations

import json
import os
import pickle
import stat
import weakref
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import CorruptStreamError
from arrcomp._files import Content, Lazy, read_any, read_arrays, write_arrays
from arrcomp._files.content import ArrayInfo
from arrcomp._files.replacing import replacing

safetensors_numpy = pytest.importorskip("safetensors.numpy")

pytestmark = pytest.mark.wheel

RNG = np.random.default_rng(3)
SAFETENSORS_DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


def sample(name: str, shape: tuple[int, ...] = (3, 5)) -> NDArray[Any]:
    return RNG.integers(0, 2, shape).astype(getattr(ml_dtypes, name, name))


def check_same_arrays(actual: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> None:
    assert set(actual) == set(expected)
    for name, array in expected.items():
        checks.check_same_bits(np.asarray(actual[name]), array)


# Arrays


@pytest.mark.parametrize("x", [np.arange(6.0).reshape(2, 3), np.array(3), np.zeros((0, 4), np.int8)], ids=repr)
def test_npy_files_come_back(tmp_path: Path, x: NDArray[Any]) -> None:
    path = tmp_path / "x.npy"
    write_arrays(path, Content({"any name": x}))
    check_same_arrays(read_arrays(path).arrays, {"arr_0": x})
    checks.check_same_bits(np.load(path), x)


def test_npz_files_come_back_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    names = ["file", "arr_0", "a/b.c", "allow_pickle", "größe", ""]
    arrays = {name: np.full((2, 2), i) for i, name in enumerate(names)}
    write_arrays(path, Content(arrays))
    check_same_arrays(read_arrays(path).arrays, arrays)
    with np.load(path) as loaded:
        assert set(loaded.files) == set(names)


def test_npz_files_of_numpy_are_read(tmp_path: Path) -> None:
    arrays = {"x": np.arange(5), "scalar": np.array(1.5), "big": np.arange(3, dtype=">i4")}
    np.savez_compressed(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    found = read_arrays(tmp_path / "x.npz").arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("shape", [(3, 5), (), (0, 2)], ids=str)
def test_safetensors_files_come_back(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "x.safetensors"
    arrays = {name: sample(name, shape) for name in SAFETENSORS_DTYPES}
    write_arrays(path, Content(arrays, {"format": "pt", "note": "ü"}))
    content = read_arrays(path)
    check_same_arrays(content.arrays, arrays)
    assert content.metadata == {"format": "pt", "note": "ü"}


def test_safetensors_files_of_the_library_are_read(tmp_path: Path) -> None:
    arrays = {"odd": sample("uint8", (3,)), "w": sample("float32"), "b": sample("bfloat16")}
    safetensors_numpy.save_file(arrays, tmp_path / "x.safetensors")
    check_same_arrays(read_arrays(tmp_path / "x.safetensors").arrays, arrays)
    write_arrays(tmp_path / "y.safetensors", Content(arrays))
    assert (tmp_path / "x.safetensors").read_bytes() == (tmp_path / "y.safetensors").read_bytes()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_arrays_are_made_one_by_one_and_once(tmp_path: Path, suffix: str) -> None:
    made: dict[str, weakref.ref[Any]] = {}

    def make(name: str) -> NDArray[Any]:
        assert name not in made
        assert all(reference() is None for reference in made.values())
        array = np.full(int(name), int(name), np.float32)
        made[name] = weakref.ref(array)
        return array

    arrays = Lazy(["3", "1", "2"], make, lambda name: ArrayInfo(np.dtype(np.float32), (int(name),)))
    write_arrays(tmp_path / f"x{suffix}", Content(arrays))
    check_same_arrays(
        read_arrays(tmp_path / f"x{suffix}").arrays, {str(i): np.full(i, i, np.float32) for i in (1, 2, 3)}
    )


def test_dtypes_that_a_file_cannot_hold_are_refused_before_an_array_is_made(tmp_path: Path) -> None:
    def fail(name: str) -> NDArray[Any]:
        raise AssertionError(name)

    infos = {
        "a": ArrayInfo(np.dtype(np.float32), (3,)),
        "b": ArrayInfo(np.dtype(ml_dtypes.float4_e2m1fn), (3,)),
    }
    for suffix in (".npz", ".safetensors"):
        with pytest.raises(TypeError, match=r"expected a? ?dtype .*, got float4_e2m1fn"):
            write_arrays(tmp_path / f"x{suffix}", Content(Lazy(infos, fail, infos.__getitem__)))
    assert not list(tmp_path.iterdir())


def test_looking_for_a_name_makes_no_array() -> None:
    def fail(name: str) -> NDArray[Any]:
        raise AssertionError(name)

    arrays = Lazy(["a"], fail)
    assert "a" in arrays
    assert "b" not in arrays
    with pytest.raises(KeyError):
        arrays["b"]


def test_torch_reads_what_is_written(tmp_path: Path) -> None:
    safetensors_torch = pytest.importorskip("safetensors.torch")
    path = tmp_path / "x.safetensors"
    arrays = {
        "odd": sample("uint8", (3,)),
        "w": sample("float32"),
        "b": sample("float16", (5,)),
        "d": sample("float64"),
    }
    write_arrays(path, Content(arrays))
    check_same_arrays({name: tensor.numpy() for name, tensor in safetensors_torch.load_file(path).items()}, arrays)


@pytest.mark.parametrize("name", ["../x", "/x", "a\\..\\x", "x\0"])
def test_names_of_files_in_an_archive_stay_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"x\.npz: expected names without paths out of a folder, got '.*'"):
        write_arrays(tmp_path / "x.npz", Content({name: np.zeros(3)}))
    assert not list(tmp_path.iterdir())


def test_empty_files_of_arrays_come_back(tmp_path: Path) -> None:
    for suffix in (".npz", ".safetensors"):
        write_arrays(tmp_path / f"x{suffix}", Content({}))
        assert not read_arrays(tmp_path / f"x{suffix}").arrays


@pytest.mark.parametrize(
    ("suffix", "dtype"),
    [(".npy", "bfloat16"), (".npz", "float8_e5m2"), (".safetensors", "complex128"), (".npz", "int4")],
)
def test_dtypes_that_a_file_cannot_hold_are_refused(tmp_path: Path, suffix: str, dtype: str) -> None:
    with pytest.raises(TypeError, match=rf"x\{suffix}.*: expected a? ?dtype .*\{suffix} file.*, got {dtype};"):
        write_arrays(tmp_path / f"x{suffix}", Content({"x": sample(dtype)}))
    assert not list(tmp_path.iterdir())


def test_safetensors_dtypes_that_numpy_lacks_are_named(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}).encode()
    header += b" " * (-len(header) % 8)
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    with pytest.raises(TypeError, match=r"x\.safetensors, array 'x': expected dtype.*got F4"):
        read_arrays(path).arrays["x"]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.parametrize("data", [b"", b"\0", b"garbage that is no file of arrays" * 9, b"\xff" * 64])
def test_damaged_files_of_arrays_are_bad_input(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.") as caught:
        read_arrays(path)
    assert not isinstance(caught.value, CorruptStreamError)


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
@pytest.mark.filterwarnings("ignore:Reading `.npy`:UserWarning")  # a header that may be Python 2's
@settings(max_examples=300)
@given(data=st.data())
def test_damage_is_bad_input_or_other_values(tmp_path: Path, save: Any, data: st.DataObject) -> None:
    path = tmp_path / ("x.npy" if save is np.save else "x.npz")
    save(path, np.arange(3000) % 7)
    content = bytearray(path.read_bytes())
    places = st.integers(0, 150) | st.integers(0, len(content) - 1) | st.integers(len(content) - 150, len(content) - 1)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(places)] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        dict(read_arrays(path).arrays)
    except (ValueError, OSError) as error:
        assert not isinstance(error, CorruptStreamError)  # noqa: PT017 - or none is raised


@pytest.mark.parametrize("shape", [(-5,), (10**30,), (1 << 70, 0), (1 << 62,), (1 << 40, 1 << 40)], ids=str)
def test_shapes_that_no_array_has_are_bad_input(tmp_path: Path, shape: tuple[int, ...]) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    content = b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(64)
    (tmp_path / "x.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", content)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(
            ValueError,
            match=rf"{name}: expected a .* file, got another or a damaged one|{name}, array 'a': not readable: ",
        ):
            dict(read_arrays(tmp_path / name).arrays)


def test_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", b"")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", b"")
    with pytest.raises(ValueError, match=r"x\.npz: expected different members, got 'x\.npy' 2 times"):
        read_arrays(tmp_path / "x.npz")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    x = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(ValueError, match=name):
            dict(read_arrays(tmp_path / name).arrays)


def test_an_archive_with_other_members_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"x\.npz: expected \.npy files as members, got 'readme\.txt'"):
        read_arrays(tmp_path / "x.npz")


def test_one_array_goes_into_a_npy_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.npy: expected one array for a \.npy file, got 2; \.npz holds several"):
        write_arrays(tmp_path / "x.npy", Content({"a": np.zeros(1), "b": np.zeros(1)}))


@pytest.mark.parametrize("name", ["x", "x.txt", "x.npy.gz", "x.arrcomp"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    for call in (read_arrays, lambda path: write_arrays(path, Content({"a": np.zeros(1)}))):
        with pytest.raises(ValueError, match=r"/x.*: expected suffix \.npy, \.npz, \.safetensors, got "):
            call(tmp_path / name)


def test_a_missing_file_is_missing_whatever_its_suffix(tmp_path: Path) -> None:
    for call in (read_arrays, read_any, arrcomp.open_file, arrcomp.load_file):
        for name in ("x.txt", "x", "x.npy", "x.arrcomp"):
            with pytest.raises(FileNotFoundError, match=rf"No such file or directory: '.*/{name}'"):
                call(tmp_path / name)
        with pytest.raises(IsADirectoryError):
            call(tmp_path)


def test_a_slice_is_an_array_for_numpy(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    arrcomp.save_file({"x": x}, tmp_path / "x.safetensors")
    with arrcomp.open_file(tmp_path / "x.safetensors") as file:
        part = file.slice("x")
        checks.check_same_bits(np.asarray(part), x)
        assert np.asarray(part, np.float64).dtype == np.float64
        assert np.sum(part) == 66
        with pytest.raises(ValueError, match=r"^copy: expected None or True, got False"):
            np.asarray(part, copy=False)


def test_an_open_file_is_not_pickled(tmp_path: Path) -> None:
    arrcomp.save_file({"x": np.ones(3)}, tmp_path / "x.safetensors")
    with arrcomp.open_file(tmp_path / "x.safetensors") as file:
        for what in (file, file.slice("x")):
            with pytest.raises(TypeError, match=r"x\.safetensors: expected its path in a pickle, got the open file"):
                pickle.dumps(what)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("suffix", [".npy", ".arrcomp", ".safetensors"])
def test_a_pipe_is_refused_before_it_is_waited_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    os.mkfifo(path)
    for call in (read_any, read_arrays) if suffix == ".npy" else (read_any, arrcomp.open_file, arrcomp.load_file):
        with pytest.raises(ValueError, match=rf"x\{suffix}: expected a regular file, got another kind"):
            call(path)


def test_dtypes_and_shapes_are_known_without_reading(tmp_path: Path) -> None:
    arrays = {"a": np.zeros((2, 3), np.float16), "b": np.array(7)}
    for suffix in (".npz", ".safetensors"):
        path = tmp_path / f"x{suffix}"
        write_arrays(path, Content(arrays))
        found = read_arrays(path)
        assert {name: found.info(name) for name in arrays} == {n: (x.dtype, x.shape) for n, x in arrays.items()}


# Writing


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(b"before")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".safetensors", ".npy", ".npz"])
def test_files_that_fail_halfway_leave_nothing(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_arrays(tmp_path / f"x{suffix}", Content({"x": np.zeros(3)}))
    assert not list(tmp_path.iterdir())


def test_permissions_are_the_usual_or_those_before(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    path = tmp_path / "x.safetensors"
    write_arrays(path, Content({"x": np.zeros(3)}))
    assert stat.S_IMODE(path.stat().st_mode) == usual
    path.chmod(0o640)
    write_arrays(path, Content({"x": np.zeros(4)}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_links_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.npy").symlink_to(tmp_path / "x.npy")
    write_arrays(tmp_path / "link.npy", Content({"x": np.zeros(3)}))
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "x.npy").shape == (3,)


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ValueError, match=r"folder\.npy: expected a regular file, got another kind"):
        write_arrays(tmp_path / "folder.npy", Content({"x": np.zeros(3)}))
