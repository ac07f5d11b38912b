"""Files that are at no path: file objects and URLs. Only the ranges that are needed are read."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import ErrorBounded, append_file, load_file, open_file, save_file
from arrcomp._files import read_any, read_arrays, write_arrays
from arrcomp._files.content import Content, located

pytest.importorskip("safetensors")
fsspec = pytest.importorskip("fsspec")

RNG = np.random.default_rng(7)
ARRAYS: dict[str, NDArray[Any]] = {
    "large": RNG.normal(size=(4000, 100)).astype(np.float32),
    "small": RNG.normal(size=(30, 40)),
    "step": np.array(5),
}
AHEAD = 1 << 17  # bytes of the shortest request


def check_arrays(found: Any, expected: dict[str, NDArray[Any]] = ARRAYS) -> None:
    assert list(found) == list(expected)
    for name, array in expected.items():
        checks.check_same_bits(np.asarray(found[name]), array)


class Unseekable(io.RawIOBase):
    """What a pipe is: a file that only goes on, and takes a few bytes at a time."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data[:100_000])
        return min(len(data), 100_000)


class Memory:
    """fsspec's files in memory, and the ranges of them that are requested."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.system = fsspec.filesystem("memory")
        self.requests: list[tuple[int, int]] = []
        inherited = type(self.system).cat_file

        def cat_file(system: Any, path: str, start: int, end: int, **options: Any) -> bytes:
            self.requests.append((start, end))
            data: bytes = inherited(system, path, start, end, **options)
            return data

        monkeypatch.setattr(type(self.system), "cat_file", cat_file)

    def nbytes(self) -> int:
        """How many bytes were requested since the last call."""
        requested, self.requests = self.requests, []
        return sum(end - start for start, end in requested)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    memory = Memory(monkeypatch)
    yield memory
    memory.system.store.clear()


# File objects


def test_a_file_object_is_written_and_read_from_its_position(tmp_path: Path) -> None:
    file = io.BytesIO()
    file.write(b"before")
    save_file(ARRAYS, file)
    file.seek(6)
    check_arrays(load_file(file))
    save_file(ARRAYS, tmp_path / "x.safetensors")
    assert file.getvalue()[6:] == (tmp_path / "x.safetensors").read_bytes()
    file.seek(6)
    with open_file(file) as opened:
        assert (opened.path, opened.base, opened.metadata) == (None, None, {})
        np.testing.assert_array_equal(opened.slice("large")[7:9], ARRAYS["large"][7:9])
    assert not file.closed


def test_what_a_file_object_holds_is_told_by_its_bytes(tmp_path: Path) -> None:
    one = {"arr_0": ARRAYS["large"]}
    for suffix in (".npy", ".npz", ".safetensors"):
        write_arrays(tmp_path / f"x{suffix}", Content(one))
        check_arrays(read_arrays(located(io.BytesIO((tmp_path / f"x{suffix}").read_bytes()))).arrays, one)
    with (tmp_path / "x.arrcomp").open("wb") as file:
        save_file(one, file)
    check_arrays(load_file(tmp_path / "x.arrcomp"), one)
    check_arrays(read_any(io.BytesIO((tmp_path / "x.arrcomp").read_bytes())).arrays, one)


def test_a_file_that_cannot_seek_is_written_and_not_read() -> None:
    file: Any = Unseekable()
    save_file(ARRAYS, file)
    check_arrays(load_file(io.BytesIO(file.data)))
    with pytest.raises(ValueError, match=r"^path: expected a file object that can seek, got .*; io\.BytesIO"):
        load_file(file)


class Silent:
    """A file that does not say how much it takes, as some of other libraries."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: Any) -> None:
        self.data += bytes(data)


def test_a_file_that_does_not_say_how_much_it_takes_is_written_once() -> None:
    file: Any = Silent()
    save_file(ARRAYS, file)
    check_arrays(load_file(io.BytesIO(file.data)))


@pytest.mark.parametrize("call", [load_file, lambda file: save_file(ARRAYS, file)], ids=["load", "save"])
def test_file_objects_of_text_or_of_the_other_direction_are_refused(tmp_path: Path, call: Any) -> None:
    with pytest.raises(TypeError, match=r"^path: expected a file object of bytes, got _io\.StringIO$"):
        call(io.StringIO())
    mode = "wb" if call is load_file else "rb"
    (tmp_path / "x").touch()
    with (
        (tmp_path / "x").open(mode) as file,
        pytest.raises(ValueError, match=r"^path: expected a file object that can"),
    ):
        call(file)


def test_many_threads_read_one_file_object() -> None:
    file = io.BytesIO()
    save_file({str(i): np.full(20_000 + i, i) for i in range(16)}, file)
    file.seek(0)
    barrier = threading.Barrier(4)

    def load(first: int) -> list[bool]:
        barrier.wait()
        return [bool((opened[str(i)] == np.full(20_000 + i, i)).all()) for i in range(first, 16, 4)]

    with open_file(file) as opened, ThreadPoolExecutor(4) as pool:
        assert all(map(all, pool.map(load, range(4))))


def test_a_file_object_that_is_cut_is_corrupt() -> None:
    file = io.BytesIO()
    save_file(ARRAYS, file)
    file.seek(0)
    opened = open_file(file)
    file.truncate(1000)
    with pytest.raises(arrcomp.CorruptStreamError, match=r"BytesIO: expected \d+ bytes, .* got 1000; it was truncated"):
        opened["small"]


def test_a_file_object_is_a_base() -> None:
    old, new = io.BytesIO(), io.BytesIO()
    save_file(ARRAYS, old)
    changed = {**ARRAYS, "large": ARRAYS["large"] + np.float32(1e-6)}
    old.seek(0)
    save_file(changed, new, base=old)
    old.seek(0)
    new.seek(0)
    check_arrays(load_file(new, base=old), changed)
    new.seek(0)
    with pytest.raises(ValueError, match="BytesIO: expected a base, which its arrays were coded against, got none"):
        load_file(new)
    old.seek(0)
    with pytest.raises(ValueError, match="BytesIO: expected another file than base"):
        save_file(changed, old, base=old)


# URLs


def test_a_file_at_a_url_comes_back(memory: Memory) -> None:
    save_file(ARRAYS, "memory://folder/x.safetensors")
    save_file(ARRAYS, "memory://folder/x.safetensors", metadata={"a": "b"})  # it replaces the first
    check_arrays(load_file("memory://folder/x.safetensors"))
    with open_file("memory://folder/x.safetensors") as file:
        assert (file.path, file.metadata) == ("memory:///folder/x.safetensors", {"a": "b"})
    save_file({"x": ARRAYS["large"]}, fsspec.open("memory://folder/x.arrcomp", "wb"))
    check_arrays(load_file("memory://folder/x.arrcomp"), {"arr_0": ARRAYS["large"]})
    with fsspec.open("memory://folder/y.arrcomp", "wb") as opened:
        save_file({"x": ARRAYS["large"]}, opened)
    with fsspec.open("memory://folder/y.arrcomp", "rb") as opened:
        check_arrays(load_file(opened), {"arr_0": ARRAYS["large"]})
    assert sorted(memory.system.find("/")) == [
        f"/folder/{name}" for name in ("x.arrcomp", "x.safetensors", "y.arrcomp")
    ]


def test_only_needed_ranges_of_a_url_are_read(memory: Memory) -> None:
    save_file(ARRAYS, "memory://x.safetensors")
    total = memory.system.info("/x.safetensors")["size"]
    assert total > 8 * AHEAD
    file = open_file("memory://x.safetensors")
    assert len(memory.requests) == 1
    assert memory.nbytes() == AHEAD
    part = file.slice("large")
    np.testing.assert_array_equal(part[3000:3010], ARRAYS["large"][3000:3010])
    assert memory.nbytes() <= 2 * AHEAD
    checks.check_same_bits(file["small"], ARRAYS["small"])
    assert memory.nbytes() <= file.nbytes("small") + file.nbytes("step")
    checks.check_same_bits(file["step"], ARRAYS["step"])
    assert memory.requests == []
    checks.check_same_bits(file["large"], ARRAYS["large"])
    assert memory.nbytes() <= file.nbytes("large") + AHEAD


def test_headers_of_many_arrays_take_few_requests(memory: Memory) -> None:
    arrays = {str(i): np.full(10, i) for i in range(500)}
    save_file(arrays, "memory://x.safetensors")
    memory.nbytes()
    check_arrays(load_file("memory://x.safetensors"), arrays)
    assert len(memory.requests) <= 3


def test_long_reads_are_requested_in_parts(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arrcomp._files.remote._PART_NBYTES", 200_000)
    save_file(ARRAYS, "memory://x.safetensors")
    check_arrays(load_file("memory://x.safetensors"))
    assert len(memory.requests) > 5
    assert max(end - start for start, end in memory.requests) <= 200_000


def test_arrays_are_appended_at_a_url(memory: Memory) -> None:
    save_file({"large": ARRAYS["large"]}, "memory://x.safetensors")
    append_file({name: ARRAYS[name] for name in ("small", "step")}, "memory://x.safetensors")
    check_arrays(load_file("memory://x.safetensors"))
    assert memory.system.find("/") == ["/x.safetensors"]


def test_a_chain_of_bases_is_beside_its_url(memory: Memory) -> None:
    steps = [{"x": ARRAYS["large"] + np.float32(1e-6 * step)} for step in range(3)]
    save_file(steps[0], "memory://run/0.safetensors")
    for step in (1, 2):
        base = f"memory://run/{step - 1}.safetensors"
        save_file(steps[step], f"memory://run/{step}.safetensors", base=base)
    check_arrays(load_file("memory://run/2.safetensors"), steps[2])
    with open_file("memory://run/2.safetensors") as file:
        assert file.base == "memory:///run/1.safetensors"
        assert [str(each.location) for each in file.chain()] == [f"memory:///run/{i}.safetensors" for i in (2, 1, 0)]
    with pytest.raises(ValueError, match=r"memory:///run/1\.safetensors: expected another file than base"):
        save_file(steps[2], "memory://run/1.safetensors", base="memory://run/2.safetensors")
    memory.system.mv("/run", "/moved", recursive=True)
    check_arrays(load_file("memory://moved/2.safetensors"), steps[2])
    memory.system.rm("/moved/0.safetensors")
    missing = r"expected the base of memory:///moved/1\.safetensors, got no such file"
    with pytest.raises(FileNotFoundError, match=missing):
        load_file("memory://moved/2.safetensors")


def test_a_base_in_another_file_system_is_named_by_the_reader(memory: Memory, tmp_path: Path) -> None:
    changed = {"x": ARRAYS["large"] + np.float32(1e-6)}
    np.savez(tmp_path / "base.npz", x=ARRAYS["large"])
    save_file(changed, "memory://x.safetensors", base=tmp_path / "base.npz")
    check_arrays(load_file("memory://x.safetensors", base=tmp_path / "base.npz"), changed)
    with pytest.raises(ValueError, match="expected a base, which its arrays were coded against, got none"):
        load_file("memory://x.safetensors")


def test_urls_of_this_machine_are_paths(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/x.safetensors"
    save_file(ARRAYS, url)
    with open_file(url) as file:
        assert file.path == tmp_path / "x.safetensors"
        check_arrays(file)


def test_a_failed_upload_leaves_the_old_object_alone(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file(ARRAYS, "memory://x.safetensors")

    def put_file(system: Any, local: str, path: str, **options: Any) -> None:
        system.pipe_file(path, Path(local).read_bytes()[:1000])
        raise KeyboardInterrupt

    monkeypatch.setattr(type(memory.system), "put_file", put_file)
    with pytest.raises(KeyboardInterrupt):
        save_file({"x": np.zeros(3)}, "memory://x.safetensors")
    check_arrays(load_file("memory://x.safetensors"))
    assert memory.system.find("/") == ["/x.safetensors"]


def test_a_failure_before_the_upload_uploads_nothing(memory: Memory) -> None:
    with pytest.raises(TypeError, match="array 'b'"):
        save_file({"a": np.zeros(3), "b": object()}, "memory://x.safetensors")
    assert memory.system.find("/") == []


def test_a_replaced_object_that_is_shorter_is_corrupt(memory: Memory) -> None:
    save_file(ARRAYS, "memory://x.safetensors")
    file = open_file("memory://x.safetensors")
    memory.system.pipe_file("/x.safetensors", memory.system.cat_file("/x.safetensors", 0, 500_000))
    with pytest.raises(arrcomp.CorruptStreamError, match=r"memory:///x\.safetensors: expected .*; it was truncated"):
        file["large"]


def test_a_server_that_sends_no_ranges_is_told(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file(ARRAYS, "memory://x.safetensors")
    whole = memory.system.cat_file("/x.safetensors", None, None)
    monkeypatch.setattr(type(memory.system), "cat_file", lambda *_, **options: whole)
    with pytest.raises(OSError, match=r"expected bytes 0 to 131072 from the server, got \d+; it sends no ranges"):
        open_file("memory://x.safetensors")


def test_wrong_urls_are_refused(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"memory:///x\.safetensors") as caught:
        load_file("memory://x.safetensors")
    assert caught.value.filename == "memory:///x.safetensors"
    memory.system.mkdir("/folder.safetensors")
    with pytest.raises(IsADirectoryError):
        load_file("memory://folder.safetensors")
    memory.system.pipe_file("/x.txt", b"")
    with pytest.raises(ValueError, match=r"memory:///x\.txt: expected suffix \.arrcomp, \.safetensors, got '\.txt'"):
        load_file("memory://x.txt")
    with pytest.raises(ValueError, match=r"^path: expected a file of fsspec without a compression .*, got 'gzip'$"):
        save_file(ARRAYS, fsspec.open("memory://x.safetensors", "wb", compression="gzip"))
    with pytest.raises(ValueError, match=r"^folder: expected a path of this machine, got a URL, 's3://run'$"):
        arrcomp.CheckpointChain("s3://run")
    with pytest.raises(ValueError, match=r"^storage_options: expected None where there is no URL"):
        load_file("x.safetensors", storage_options={"key": "secret"})
    with pytest.raises(TypeError, match=r"^storage_options: expected a mapping, or None, got 'secret' \(str\)$"):
        load_file("s3://x.safetensors", storage_options="secret")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"URLs need fsspec .*: pip install arrcomp\[remote\]$"):
        save_file(ARRAYS, "s3://bucket/x.safetensors")
    save_file({"x": np.zeros(3)}, io.BytesIO(), ErrorBounded(abs=1e-3))  # which needs none
