"""Files where writing fails, a process is killed, or a file is cut: an error says what happened, nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import arrcomp
import child_programs
from arrcomp import load_file, save_file
from arrcomp._files import Content, write_arrays
from arrcomp._files.replacing import replacing

pytest.importorskip("safetensors")
if not sys.platform.startswith("linux"):
    pytest.skip("files' faults are made as Linux has them", allow_module_level=True)

# What a child does to each kind of file: `failing(kind, number)` must fail with an error of the system that names the
# file, and leave all as it was; `working` must not fail.
WRITING = """
import hashlib, os, sys
from pathlib import Path
import numpy as np
import arrcomp
from arrcomp._files import Content, write_arrays

KINDS = ("plain.npy", "plain.npz", "plain.safetensors", "small.arrcomp", "small.safetensors")

RANDOM = np.random.default_rng(1).integers(0, 1 << 60, 1 << 16)

def write(path, x):
    if path.stem == "plain":
        write_arrays(path, Content({"x": x}))
    else:
        arrcomp.save_file({"x": x}, path)

def failing(folder, numbers, filling):
    x = np.resize(RANDOM, filling)
    digest = hashlib.sha256(x).hexdigest()
    before = {path.name: path.read_bytes() for path in folder.iterdir()} if os.access(folder, os.R_OK) else None
    for kind in KINDS:
        path = folder / kind
        try:
            write(path, x)
        except OSError as error:
            assert error.errno in numbers, repr(error)
            assert error.filename == str(path), repr(error)
            assert str(path) in str(error), repr(error)
        else:
            raise AssertionError(f"{kind}: no error")
    assert hashlib.sha256(x).hexdigest() == digest
    after = {path.name: path.read_bytes() for path in folder.iterdir()} if before is not None else None
    assert after == before, (sorted(after), sorted(before))

def working(folder):
    for kind in KINDS:
        write(folder / kind, np.arange(50))
"""

SIZE_LIMIT = (
    WRITING
    + """
import errno, resource, signal
folder = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
working(folder)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
failing(folder, (errno.EFBIG,), 1 << 16)
working(folder)
"""
)

FULL = (
    WRITING
    + """
import errno
folder = Path(sys.argv[1])
working(folder)
failing(folder, (errno.ENOSPC,), 1 << 20)
working(folder)
"""
)

NO_RIGHTS = (
    WRITING
    + """
import errno
folder, mode = Path(sys.argv[1]), int(sys.argv[2], 8)
working(folder)  # imports all that it takes, too
try:
    if os.getuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, 65534, 65534)
        os.chmod(folder, mode)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    else:
        os.chmod(folder, mode)
except OSError:  # a container that has no such user
    print("out of reach")
    sys.exit()
if not os.access(folder, os.X_OK):
    print("out of reach")
elif mode & 0o200:
    working(folder)
else:
    failing(folder, (errno.EACCES, errno.EROFS), 1 << 10)
"""
)


def test_a_limit_of_size_is_told_and_leaves_the_old_file(tmp_path: Path) -> None:
    child_programs.run(SIZE_LIMIT, tmp_path)


def test_a_full_file_system_is_told_and_leaves_the_old_file(tmp_path: Path) -> None:
    mounting = f"mount -t tmpfs -o size=2m none '{tmp_path}'"
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("unshare and mount are not there")
    tried = subprocess.run(["unshare", "-m", "sh", "-c", mounting], capture_output=True, check=False)  # noqa: S607
    if tried.returncode != 0:
        pytest.skip("this process may not mount a small file system")
    words = child_programs.command(FULL, tmp_path)
    child_programs.run_command(["unshare", "-m", "sh", "-c", f'{mounting} && exec "$@"', "sh", *words])


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that any user may reach: those of pytest are its user's alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder / "files"
    (folder / "files").chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", ["500", "300"])
def test_a_folder_without_rights_is_told_and_one_that_cannot_be_listed_is_enough(reachable: Path, mode: str) -> None:
    reachable.mkdir()
    if "out of reach" in child_programs.run(NO_RIGHTS, reachable, mode):
        pytest.skip("no other user can reach the folder of temporary files")


def test_errors_of_other_files_keep_their_names(tmp_path: Path) -> None:
    def failing() -> None:
        with replacing(tmp_path / "x"):
            (tmp_path / "other").read_bytes()

    with pytest.raises(FileNotFoundError) as caught:
        failing()
    assert caught.value.filename in (str(tmp_path / "other"), tmp_path / "other")
    assert not list(tmp_path.iterdir())


# A process that is killed

KILLED = """
import os, sys
import numpy as np
import arrcomp

path, nameless = sys.argv[1:]
if nameless == "False":
    vars(os).pop("O_TMPFILE", None)
number = 1
while True:
    x = np.random.default_rng(number).integers(0, 1 << 30, 1 << 15)
    x[0] = number
    arrcomp.save_file({"x": x}, path, threads=1)
    if number == 1:
        print("ready", flush=True)
    number += 1
"""


def killed(path: Path, nameless: bool, delay: float) -> None:
    """Kill a process that writes a file all the time."""
    child = child_programs.start(KILLED, path, nameless)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=child_programs.SECONDS)
    assert child.returncode == -signal.SIGKILL


def check_killed(folder: Path, kills: int, nameless: bool) -> int:
    """The file is whole after every kill, and what was left is gone after the next write; how often something was."""
    path, left, delays = folder / "x.safetensors", 0, np.random.default_rng(kills)
    for _ in range(kills):
        killed(path, nameless, float(delays.uniform(0, 0.05)))
        x = load_file(path)["x"]
        expected = np.random.default_rng(int(x[0])).integers(0, 1 << 30, 1 << 15)
        expected[0] = x[0]
        np.testing.assert_array_equal(x, expected)
        others = [other for other in folder.iterdir() if other != path]
        assert len(others) <= 1
        left += len(others)
        save_file({"x": x}, path)
        assert list(folder.iterdir()) == [path]
    return left


def has_nameless(folder: Path) -> bool:
    """Whether files are written without a name here."""
    with replacing(folder / "x") as temporary:
        found = temporary.parent != folder
    (folder / "x").unlink()
    return found


KILLS = [20, pytest.param(200, marks=pytest.mark.slow)]


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_writer_leaves_a_whole_file_and_no_other(
    tmp_path: Path, kills: int, record_property: Callable[[str, object], None]
) -> None:
    if not has_nameless(tmp_path):
        pytest.skip("this file system has no files without names")
    left = check_killed(tmp_path, kills, nameless=True)
    record_property("kills", kills)
    record_property("files left", left)
    assert left <= kills // 4  # between two calls at the end alone, where the next writer removes it


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_what_a_killed_writer_leaves_elsewhere_goes_with_the_next_write(
    tmp_path: Path, kills: int, record_property: Callable[[str, object], None]
) -> None:
    check_killed(tmp_path, kills, nameless=False)
    record_property("kills", kills)


ENDED = """
import os, sys
from pathlib import Path
from arrcomp._files.replacing import replacing

Path.replace = lambda *_: os._exit(9)
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("new")
"""


def test_only_who_replaces_a_file_can_leave_another_which_the_next_writer_removes(tmp_path: Path) -> None:
    if not has_nameless(tmp_path):
        pytest.skip("this file system has no files without names")
    path = tmp_path / "x"
    for code, texts in ((0, ["new"]), (9, ["new", "new"])):
        child = child_programs.start(ENDED, path)
        child.communicate(timeout=child_programs.SECONDS)
        assert child.returncode == code
        assert [file.read_text() for file in tmp_path.iterdir()] == texts
    with replacing(path) as temporary:
        temporary.write_text("newer")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x", "newer")]


@pytest.mark.parametrize("nameless", [True, False])
def test_what_another_writer_has_not_finished_is_left_alone(
    tmp_path: Path, nameless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "x"
    with replacing(path) as first:
        first.write_bytes(b"first")
        with replacing(path) as second:
            second.write_bytes(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


# A file that is cut while it is open

CUT = """
import os, sys, threading
from pathlib import Path
import numpy as np
import arrcomp
from arrcomp._files import read_arrays

folder, names = Path(sys.argv[1]), sys.argv[2:]
tried = 0

def points(size):
    near = {size - 1, size - 8, size - 9, size // 2, size // 3, 4096, 4097, 65536, 70000, 100, 8, 1, 0}
    return sorted(near | set(range(0, size, size // 12)), reverse=True)

def outcome(path, call, expected):
    global tried
    tried += 1
    try:
        found = call()
    except (ValueError, OSError) as error:  # of which CorruptStreamError is one
        assert path.name in str(error), repr(error)
    else:
        np.testing.assert_array_equal(found, expected)

def opened(path):
    if path.stem == "plain":
        arrays = read_arrays(path).arrays
        name, = arrays
        return [(lambda: arrays[name], ...)]
    file = arrcomp.open_file(path)
    name, = file
    stored, part = file.compressed(name, check=False), file.slice(name)
    start, end = slice(0, 5), slice(-5, None)
    return [
        (lambda: part[start], start), (lambda: part[end], end), (lambda: file.slice(name)[start], start),
        (lambda: file[name], ...), (lambda: arrcomp.decompress(stored), ...),
    ]

for name in names:
    path = folder / name
    content = path.read_bytes()
    x = np.load(folder / "expected.npy")
    for size in points(len(content)):
        calls = opened(path)
        os.truncate(path, size)
        for call, index in calls:
            outcome(path, call, x[index])
        path.write_bytes(content)

    # What is read with its checksum is right or an error, whatever another thread does to the file meanwhile.
    if path.stem == "plain":
        continue
    file, done = arrcomp.open_file(path), False

    def cut():
        while not done:
            for size in (0, len(content) // 2, len(content) - 1):
                os.truncate(path, size)
            path.write_bytes(content)

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        for _ in range(150):
            name, = file
            outcome(path, lambda: file[name], x)
    finally:
        done = True
        thread.join()
print(tried)
"""


def test_a_file_that_is_cut_while_it_is_open_is_an_error(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    x = np.random.default_rng(5).integers(0, 1 << 20, (1 << 12, 8)).astype(np.float32)
    x[:, 4:] = 0
    names = ["plain.npy", "plain.safetensors", "groups.arrcomp", "groups.safetensors", "buckets.arrcomp"]
    np.save(tmp_path / "expected.npy", x)
    for name in names[:2]:
        write_arrays(tmp_path / name, Content({"x": x}))
    for name in names[2:4]:
        save_file({"x": x}, tmp_path / name)
    # Float32 in buckets: what comes back is what went in.
    save_file({"x": x}, tmp_path / names[4], arrcomp.FloatFormat("fp32"))
    if _has_zstandard():
        save_file({"x": x}, tmp_path / "framed.arrcomp", arrcomp.FloatFormat("fp32"), zstd_level=3)
        names.append("framed.arrcomp")
    record_property("reads", int(child_programs.run(CUT, tmp_path, *names)))


def _has_zstandard() -> bool:
    try:
        import zstandard  # noqa: F401
    except ImportError:
        return False
    return True
