"""Arrays that are appended to a file: streams that are there stay as they are, and a crash leaves the old file."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import child_programs
from arrcomp import ErrorBounded, append_file, load_file, open_file, save_file
from arrcomp._dtypes import Bytes
from arrcomp._files import Content, write_arrays
from arrcomp._files.reading import Span

pytest.importorskip("safetensors")

OLD = {"a": np.arange(5000.0), "b": np.full((20, 30), 2, np.int16)}
NEW = {"c": np.linspace(0, 1, 3000), "d": np.array(7)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.safetensors"
    save_file(OLD, path, ErrorBounded(abs=1e-3), metadata={"step": "1"})
    return path


def test_arrays_are_appended_and_streams_stay_as_they_are(path: Path) -> None:
    with open_file(path) as file:
        before = {name: file.compressed(name).to_bytes() for name in file}
    append_file(NEW, path)
    append_file({}, path)
    with open_file(path) as file:
        assert file.names == ["a", "b", "c", "d"]
        assert (file.metadata, file.own_metadata["framework"]) == ({"step": "1"}, "numpy")
        assert {name: file.compressed(name).to_bytes() for name in OLD} == before
        for name, array in NEW.items():
            np.testing.assert_array_equal(file[name], array)
            assert file.spec(name).codec == arrcomp.Lossless()


def test_nothing_is_decompressed_and_a_part_is_in_memory_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arrcomp._files.opened.decompress_at", None)
    monkeypatch.setattr("arrcomp._files.reading._CHUNK_NBYTES", 64)
    sizes: list[int] = []
    chunks = Span.chunks

    def counted(span: Span) -> Iterator[Bytes]:
        for chunk in chunks(span):
            sizes.append(chunk.size)
            yield chunk

    monkeypatch.setattr(Span, "chunks", counted)
    append_file(NEW, path)
    assert max(sizes) == 64
    monkeypatch.undo()
    assert list(load_file(path)) == ["a", "b", "c", "d"]


@pytest.mark.full  # importing PyTorch takes seconds
def test_the_framework_is_kept_where_the_new_arrays_have_it(path: Path) -> None:
    torch = pytest.importorskip("torch")
    append_file({"c": np.zeros(3)}, path)
    assert open_file(path).framework == "numpy"
    save_file({"a": torch.zeros(3)}, path)
    append_file({"b": torch.zeros(3)}, path)
    assert open_file(path).framework == "torch"
    append_file({"c": np.zeros(3)}, path)
    assert open_file(path).framework == "numpy"
    save_file({}, path)
    append_file({"b": torch.zeros(3)}, path)
    assert open_file(path).framework == "torch"


def test_a_file_with_a_base_keeps_it(path: Path) -> None:
    delta = path.with_name("y.safetensors")
    changed = {"a": OLD["a"] + 1e-9, "b": OLD["b"]}
    save_file(changed, delta, base=path)
    append_file(NEW, delta)
    found = load_file(delta)
    for name, array in (changed | NEW).items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    ("tensors", "target", "error", "message"),
    [
        ({"a": np.zeros(3)}, "x.safetensors", ValueError, r"^tensors: expected names that .*x\.safetensors does not"),
        ({3: np.zeros(3)}, "x.safetensors", TypeError, r"^tensors: expected strings as names, got 3"),
        (NEW, "x.arrcomp", ValueError, r"expected suffix \.safetensors, got '\.arrcomp'"),
        (NEW, "none.safetensors", FileNotFoundError, r"none\.safetensors"),
        (NEW, "plain.safetensors", ValueError, r"plain\.safetensors: expected compressed arrays, got others"),
        (NEW, io.BytesIO(), TypeError, r"^path: expected a path or a URL, got _io\.BytesIO$"),
    ],
)
def test_wrong_arguments_are_refused(
    path: Path, tensors: Any, target: Any, error: type[Exception], message: str
) -> None:
    write_arrays(path.with_name("plain.safetensors"), Content(OLD))
    save_file({"x": OLD["a"]}, path.with_name("x.arrcomp"))
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    with pytest.raises(error, match=message):
        append_file(tensors, path.with_name(target) if isinstance(target, str) else target)
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before


# A child appends, and is killed as it calls the function of this number that changes what is on the disk.
KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
import arrcomp
from arrcomp._files import container
from arrcomp._files.replacing import replacing

def counted(module, name):
    inner = getattr(module, name)
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*arguments, **options)
    setattr(module, name, call)

path, nameless = Path(sys.argv[1]), sys.argv[2] == "True"
if not nameless:
    vars(os).pop("O_TMPFILE", None)
writing = ((container.Writer, "tensor"), (container, "packed"))
for module, name in (*writing, (os, "fsync"), (os, "link"), (Path, "replace")):
    counted(module, name)
old = {"a": np.arange(50_000.0), "b": np.full(100, 2)}
calls, last, target, outcomes, code = 0, None, 0, [], None
while code != 0:
    arrcomp.save_file(old, path)
    target += 1
    child = os.fork()
    if child == 0:
        calls, last = 0, target
        arrcomp.append_file({"c": np.arange(3), "d": np.zeros(1000)}, path)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    found = arrcomp.load_file(path)
    assert list(found) in (["a", "b"], ["a", "b", "c", "d"]), list(found)
    assert (found["a"] == old["a"]).all()
    outcomes.append(len(found))
arrcomp.append_file({"e": np.arange(3)}, path)
assert list(path.parent.iterdir()) == [path], "what a killed writer left is gone after the next write"
print(*outcomes)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files are replaced as Linux has it")
@pytest.mark.parametrize("nameless", [True, False])
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path, nameless: bool) -> None:
    outcomes = child_programs.run(KILLED, tmp_path / "x.safetensors", nameless).split()
    assert outcomes[0] == "2"
    assert outcomes[-1] == "4"
    assert len(outcomes) >= 8
