"""Arrays that are appended in place: whatever stops an append, the file has the arrays before it or those after it."""

from __future__ import annotations

import errno
import io
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import child_programs
from arrcomp import CorruptStreamError, append_file, load_file, open_file, save_file
from arrcomp._files import container, in_place, journal, locks
from arrcomp._files.reading import OpenedFile

safetensors_numpy = pytest.importorskip("safetensors.numpy")
if sys.platform == "win32":
    pytest.skip("files are appended to in place where there are locks", allow_module_level=True)

OLD = {"a": np.arange(3000.0), "b": np.full((20, 30), 2, np.int16)}
NEW = {"c": np.linspace(0, 1, 3000), "d": np.array(7)}
CHANGES = ("pwrite", "fsync", "ftruncate")  # all calls that change the disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file whose header has room."""
    path = tmp_path / "x.safetensors"
    save_file(OLD, path, metadata={"step": "1"})
    append_file({"room": np.array(1)}, path)
    return path


def check_arrays(path: Any, *parts: Mapping[str, NDArray[Any]]) -> None:
    expected = {name: array for part in parts for name, array in part.items()}
    found = load_file(path)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


BEFORE = OLD | {"room": np.array(1)}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of every write in place."""
    sizes: list[int] = []
    pwrite = os.pwrite

    def counted(descriptor: int, data: Any, offset: int) -> int:
        sizes.append(pwrite(descriptor, data, offset))
        return sizes[-1]

    monkeypatch.setattr(os, "pwrite", counted)
    return sizes


def test_only_new_bytes_are_written(path: Path, written: list[int]) -> None:
    before, inode = path.read_bytes(), path.stat().st_ino
    append_file(NEW, path)
    after = path.read_bytes()
    header = 8 + int.from_bytes(before[:8], "little")
    assert path.stat().st_ino == inode
    assert after[:8] == before[:8]
    assert after[header : len(before)] == before[header:]
    assert sum(written) < len(after) - len(before) + 2 * header + 100
    check_arrays(path, BEFORE, NEW)
    assert list(safetensors_numpy.load_file(path)) == [*BEFORE, *NEW]
    assert open_file(path).metadata == {"step": "1"}
    append_file({}, path)
    assert path.read_bytes() == after


def test_files_are_copied_ever_more_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, copied, writing = tmp_path / "x.safetensors", [], container.writing

    def counted(*arguments: Any, **options: Any) -> Any:
        copied.append(len(arguments[1]))
        return writing(*arguments, **options)

    save_file({}, path)
    monkeypatch.setattr(container, "writing", counted)
    name = "x" * 400
    for i in range(0, 60, 3):
        append_file({f"{name}{j}": np.array(j) for j in range(i, i + 3)}, path)
    assert 3 <= len(copied) <= 5
    assert all(later > 1.5 * earlier for earlier, later in itertools.pairwise(copied[1:]))
    check_arrays(path, {f"{name}{j}": np.array(j) for j in range(60)})


@pytest.mark.parametrize("reason", ["in_place", "no locks", "read-only"])
def test_a_copy_is_made_on_demand_and_where_writing_in_place_is_not_safe(
    path: Path, written: list[int], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    link = path.with_name("y.safetensors")
    link.hardlink_to(path)
    if reason == "no locks":
        monkeypatch.setattr(locks, "fcntl", None)
    if reason == "read-only":
        opened = os.open
        monkeypatch.setattr(os, "open", lambda file, flags, *rest, **options: (
            denied(file) if file == path and flags & os.O_RDWR else opened(file, flags, *rest, **options)
        ))  # fmt: skip
    append_file(NEW, path, in_place=reason != "in_place")
    assert not written
    check_arrays(path, BEFORE, NEW)
    check_arrays(link, BEFORE)


def denied(file: Path) -> int:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))


def test_all_names_of_a_file_are_appended_to(path: Path) -> None:
    link, symlink = path.with_name("y.safetensors"), path.with_name("z.safetensors")
    link.hardlink_to(path)
    symlink.symlink_to(path)
    append_file(NEW, symlink)
    check_arrays(link, BEFORE, NEW)


class Failing:
    """Calls that change the disk: one of them, or all from it on, write a part and raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.last, self.error = 0, 0, BaseException()
        self.for_ever = False
        for name in CHANGES:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))

    def _failing(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls == self.last or (self.for_ever and self.calls > self.last > 0):
                if name == "pwrite":
                    descriptor, data, offset = arguments
                    inner(descriptor, data[: len(data) // 2], offset)
                raise self.error
            return inner(*arguments)

        return call


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()], ids=repr)
def test_a_failed_append_cuts_the_file_back(path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    before, failing = path.read_bytes(), Failing(monkeypatch)
    append_file(NEW, path)
    after, count, failing.error = path.read_bytes(), failing.calls, error
    for failing.last in range(1, count + 1):
        path.write_bytes(before)
        failing.calls = 0
        with pytest.raises(type(error)) as caught:
            append_file(NEW, path)
        assert not isinstance(error, OSError) or str(path) in str(caught.value)
        # In the last call the new file is complete.
        assert path.read_bytes() == (after if failing.last == count else before)


def test_a_file_that_cannot_be_cut_back_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, failing = path.read_bytes(), Failing(monkeypatch)
    failing.error, failing.for_ever = OSError(errno.EIO, os.strerror(errno.EIO)), True
    found = []
    for last in range(1, 20):
        path.write_bytes(before)
        failing.calls, failing.last = 0, last
        try:
            append_file(NEW, path)
        except OSError:
            found.append(list(load_file(path)))
    assert found[0] == list(BEFORE)
    assert found[-1] == [*BEFORE, *NEW]


def test_an_array_that_fails_leaves_the_file(path: Path) -> None:
    class Wrong(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            return super().__getitem__(name) if name == "c" else object()

    before = path.read_bytes()
    with pytest.raises(TypeError, match="array 'd'"):
        append_file(Wrong(NEW), path)
    assert path.read_bytes() == before


# Readers meanwhile


def test_readers_have_the_arrays_before_or_after_at_every_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def watched(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = inner(*arguments)
            found.append(list(load_file(path)))
            return result

        return call

    for name in CHANGES:
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    with open_file(path) as opened:
        append_file(NEW, path)
        assert list(opened) == list(BEFORE)
        for name, array in BEFORE.items():
            np.testing.assert_array_equal(opened[name], array)
    change = found.index([*BEFORE, *NEW])
    assert len(found) >= 12
    assert all(names == list(BEFORE) for names in found[:change])
    assert all(names == [*BEFORE, *NEW] for names in found[change:])


def test_a_file_is_opened_again_and_again_while_it_grows(path: Path) -> None:
    done, opened = threading.Event(), 0

    def grow() -> None:
        for i in range(15):
            append_file({f"x{i}": np.full(50, i)}, path)
        done.set()

    thread = threading.Thread(target=grow)
    thread.start()
    while not done.is_set():
        with open_file(path) as file:
            last = file.names[-1]
            assert last == "room" or (file[last] == int(last[1:])).all()
        opened += 1
    thread.join()
    assert opened > 5
    assert len(open_file(path)) == len(BEFORE) + 15


def test_a_header_that_was_read_while_another_was_written_over_it_is_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, looks = container._head_of, 0
    torn = read(OpenedFile(path))
    append_file(NEW, path)
    half = torn.size // 64
    torn[:half] = read(OpenedFile(path))[:half]

    def head_of(file: OpenedFile) -> Any:
        nonlocal looks
        looks += 1
        return torn if looks == 1 else read(file)

    monkeypatch.setattr(container, "_head_of", head_of)
    check_arrays(path, BEFORE, NEW)
    assert looks == 4


def interrupted(path: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A file in which an append stopped as it wrote its last tensor, or the new header over the old one."""
    with monkeypatch.context() as patched:
        failing = Failing(patched)
        failing.error, failing.for_ever = OSError(errno.EIO, os.strerror(errno.EIO)), True
        # Two calls make the mark, six write streams, and two the journal.
        failing.last = {"tensors": 8, "header": 11}[state]
        with pytest.raises(OSError, match="Input/output"):
            append_file(NEW, path)
    return path.read_bytes()


@pytest.mark.parametrize("state", ["tensors", "header"])
def test_an_interrupted_file_is_read_everywhere_and_repaired(
    path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec")
    content = interrupted(path, state, monkeypatch)
    parts = [BEFORE, NEW] if state == "header" else [BEFORE]
    with pytest.raises(Exception, match="Error while deserializing"):
        safetensors_numpy.load_file(path)
    fsspec.filesystem("memory").pipe_file("/in_place.safetensors", content)
    for source in (path, io.BytesIO(content), "memory://in_place.safetensors"):
        check_arrays(source, *parts)
    copy = path.with_name("y.safetensors")
    copy.write_bytes(content)
    append_file({"e": np.array(3)}, copy, in_place=False)
    check_arrays(copy, *parts, {"e": np.array(3)})
    append_file({"e": np.array(3)}, "memory://in_place.safetensors")
    check_arrays("memory://in_place.safetensors", *parts, {"e": np.array(3)})
    save_file(NEW, path)
    check_arrays(path, NEW)


# A power cut: of what was not synced any part is on the disk, in any order.

SECTOR = 64  # bytes that are on the disk together or not at all: fewer than any disk's

Change = tuple[str, int, bytes]  # a call, its offset or length, and its data


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[Change]:
    """The calls that change the disk."""
    logged: list[Change] = []

    def logging(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            logged.append((name, arguments[-1], bytes(arguments[1]) if name == "pwrite" else b""))
            return inner(*arguments)

        return call

    for name in CHANGES:
        monkeypatch.setattr(os, name, logging(name, getattr(os, name)))
    return logged


def apply(content: bytearray, change: Change, random: np.random.Generator | None = None) -> None:
    """Make a change, or any part of it."""
    name, offset, data = change
    if name == "ftruncate" and (random is None or random.random() < 0.5):
        del content[offset:]
    starts = [0, *range(-offset % SECTOR or SECTOR, len(data), SECTOR)]
    for start, end in itertools.pairwise([*starts, len(data)]):
        if random is None or random.random() < 0.5:
            content.extend(bytes(max(offset + end - len(content), 0)))
            content[offset + start : offset + end] = data[start:end]


@pytest.mark.parametrize("state", [None, "tensors", "header"])
def test_a_power_cut_leaves_the_arrays_before_or_after(
    path: Path, state: str | None, changes: list[Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    if state is not None:
        interrupted(path, state, monkeypatch)
    before, changed = load_file(path), {"e": np.arange(3)}
    synced, pending, random, found = bytearray(path.read_bytes()), list[Change](), np.random.default_rng(1), []
    changes.clear()
    append_file(changed, path)
    for change in list(changes):
        if change[0] == "fsync":
            for each in pending:
                apply(synced, each)
            pending.clear()
            continue
        pending.append(change)
        for _ in range(6):
            content = bytearray(synced)
            for each in pending:
                apply(content, each, random)
            path.write_bytes(content)
            found.append(len(open_file(path)))
            check_arrays(path, before, changed if found[-1] > len(before) else {})
    assert {*found} == {len(before), len(before) + 1}
    assert found == sorted(found)


# A child appends, and is killed at every call that changes the disk. A write that is killed may have been torn: its
# first half, or its second, is there.
KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
import arrcomp

path = Path(sys.argv[1])
calls, last, tear = [], None, "none"

def counted(name):
    inner = getattr(os, name)
    def call(*arguments):
        calls.append(name)
        if len(calls) == last:
            if name == "pwrite":
                descriptor, data, offset = arguments
                half = len(data) // 2
                parts = {"none": (b"", 0), "first": (data[:half], offset), "second": (data[half:], offset + half)}
                inner(descriptor, *parts[tear])
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments)
    setattr(os, name, call)

for name in ("pwrite", "fsync", "ftruncate"):
    counted(name)

def names():
    found = arrcomp.load_file(path)
    assert (found["a"] == np.arange(3000.0)).all()
    return list(found)

def append(content, arrays):
    path.write_bytes(content)
    calls.clear()
    arrcomp.append_file(arrays, path, threads=1)

def killed(content, arrays):
    "The arrays after an append was killed at each call, and after one that was not."
    global last, tear
    append(content, arrays)
    for last, name in enumerate(list(calls), 1):
        for tear in ("none", "first", "second") if name == "pwrite" else ("none",):
            child = os.fork()
            if child == 0:
                append(content, arrays)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code == -signal.SIGKILL, code
            yield names()
    last = None
    append(content, arrays)
    yield names()

old, new, third = ["a", "b", "room"], ["c"], ["e"]
arrcomp.save_file({"a": np.arange(3000.0), "b": np.full(100, 2)}, path)
arrcomp.append_file({"room": np.array(1)}, path)
outcomes, states = [], {}
for found in killed(path.read_bytes(), {"c": np.arange(300)}):
    assert found in (old, old + new), found
    outcomes.append(len(found))
    states[path.read_bytes()] = found
import safetensors.numpy
for number, (state, before) in enumerate(states.items()):
    append(state, {"e": np.arange(3)})
    assert names() == before + third, "the next append repairs it"
    with path.open("rb") as file:
        assert file.read(8 + int.from_bytes(file.peek(8)[:8], "little")).endswith(b" "), "no mark is left"
    assert list(safetensors.numpy.load_file(path)) == before + third
    for found in killed(state, {"e": np.arange(3)}) if number % 3 == 0 else ():
        assert found in (before, before + third), (before, found)
print(*outcomes)
"""


@pytest.mark.full  # of what a power cut leaves, which is tried above, this is a part
def test_a_killed_append_leaves_the_arrays_before_or_after(tmp_path: Path) -> None:
    outcomes = child_programs.run(KILLED, tmp_path / "x.safetensors").split()
    assert outcomes[0] == "3"
    assert outcomes[-1] == "4"
    assert len(outcomes) >= 20
    assert set(outcomes) == {"3", "4"}


# What is no append's


@pytest.mark.parametrize("tail", [b"rubbish", b"\n", bytes(5000), b"ARRC", "journal moved", "journal cut"])
def test_rubbish_behind_the_tensors_is_refused(path: Path, tail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    if isinstance(tail, str):
        content = interrupted(path, "header", monkeypatch)
        header = 8 + int.from_bytes(before[:8], "little")
        rest = content[len(before) :]
        tail = b"x" + rest if tail == "journal moved" else rest[:-1]
        assert len(rest) > header
    path.write_bytes(before + tail)
    with pytest.raises(CorruptStreamError, match="not fully covered"):
        open_file(path)
    with pytest.raises(CorruptStreamError, match="not fully covered"):
        append_file(NEW, path)
    assert path.read_bytes() == before + tail


def test_a_journal_of_another_place_does_not_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    rest = interrupted(path, "header", monkeypatch)[len(before) :]
    start = 8 + int.from_bytes(before[:8], "little")
    path.write_bytes(before[: start - 1] + b"\n" + before[start:] + b"x" + rest)
    check_arrays(path, BEFORE)


def test_a_damaged_journal_does_not_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = interrupted(path, "header", monkeypatch)
    header = int.from_bytes(content[:8], "little")
    for place in (1, 8, 9, 16, 17, 24, 25, 24 + header):
        damaged = bytearray(content)
        damaged[-place] ^= 1
        path.write_bytes(damaged)
        assert journal.found(OpenedFile(path)) is None


@pytest.mark.parametrize(
    "text", [b'{"a":3}\n', b'{"a":{}}\n', b"[]\n", b"{\n", b"\n", b'{"a":{"data_offsets":[0,"x"]}}\n']
)
def test_a_marked_header_of_something_else_is_damaged(path: Path, text: bytes) -> None:
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(100))
    with pytest.raises(CorruptStreamError, match=r"x\.safetensors: expected a \.safetensors file, got another or"):
        open_file(path)


# Two at once


class Slow(dict[str, Any]):
    """Arrays that are there once somebody else waits."""

    def __init__(self, arrays: Mapping[str, Any], others: Callable[[], bool]) -> None:
        super().__init__(arrays)
        self._others = others

    def __getitem__(self, name: str) -> Any:
        deadline = time.monotonic() + 30
        while not self._others():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return super().__getitem__(name)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Descriptors of the files whose locks were asked for."""
    asked: list[int] = []

    def watched(descriptor: int) -> bool:
        asked.append(descriptor)
        return locks.lock(descriptor)

    monkeypatch.setattr(in_place, "lock", watched)
    return asked


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_an_append_waits_for_another_one(path: Path, waiting: list[int], copies: bool, same: bool) -> None:
    first = threading.Thread(
        target=append_file,
        args=(Slow({"c": NEW["c"]}, lambda: len(waiting) > 1), path),
        kwargs={"in_place": not copies},
    )
    first.start()
    while not waiting:
        time.sleep(0.001)
    second = {"c" if same else "d": NEW["d"]}
    if same:
        with pytest.raises(ValueError, match=r"^tensors: expected names that .*x\.safetensors does not have, got 'c'"):
            append_file(second, path)
    else:
        append_file(second, path)
    first.join()
    check_arrays(path, BEFORE, {"c": NEW["c"]}, {} if same else second)
    # The one that waited for a file that was replaced has asked for the new one's lock.
    assert len(waiting) == (3 if copies else 2)


def test_many_appends_at_once_lose_nothing(path: Path) -> None:
    def append(first: int) -> None:
        for i in range(first, first + 5):
            append_file({f"x{i}": np.array(i)}, path, in_place=i % 3 > 0)

    threads = [threading.Thread(target=append, args=(10 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = load_file(path)
    assert sorted(found) == sorted([*BEFORE, *(f"x{10 * i + j}" for i in range(4) for j in range(5))])
