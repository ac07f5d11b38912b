"""Files of compressed arrays: one array at a time on the way in, and nothing but what is asked for on the way out."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import ErrorBounded, Lossless, Rule, load_file, open_file, save_file
from arrcomp._arrays import parts
from arrcomp._files import read_any, read_arrays
from arrcomp._files.content import is_stray
from arrcomp._files.slices import _axes_of, _expanded
from checks import sample

safetensors_numpy = pytest.importorskip("safetensors.numpy")

RNG = np.random.default_rng(5)
BOUNDED = ErrorBounded(abs=1e-3)
MODEL: dict[str, NDArray[Any]] = {
    "layer.weight": RNG.normal(0, 0.02, (64, 100)).astype(np.float32),
    "layer.bias": RNG.normal(0, 0.02, 64).astype(np.float32),
    "embedding": RNG.normal(0, 1, (50, 8)),
    "steps": np.array(12),
    "mask": np.zeros((0, 3), bool),
}
NAMES = st.text(max_size=20).filter(lambda name: not is_stray(name) and name != "__metadata__")


class Stream(Mapping[str, Any]):
    """Arrays that are made when they are asked for, as those of a model that does not fit into memory."""

    def __init__(self, count: int, values: int) -> None:
        self._names = [f"w{i}" for i in range(count)]
        self._values = values
        self.made: list[str] = []
        self.alive: list[int] = []
        self._references: list[weakref.ref[Any]] = []

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        self.made.append(name)
        self.alive.append(sum(reference() is not None for reference in self._references))
        array = np.random.default_rng(len(self.made)).random(self._values, np.float32)
        self._references.append(weakref.ref(array))
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of compressed arrays, of `MODEL`."""
    path = tmp_path / "model.safetensors"
    save_file(MODEL, path, metadata={"format": "pt"})
    return path


def check_same(actual: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> None:
    assert list(actual) == list(expected)
    for name, array in expected.items():
        checks.check_same_bits(np.asarray(actual[name]), array)


# Saving


def test_several_streams_are_a_safetensors_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    arrays = {name: sample(name) for name in checks.DTYPES}
    save_file(arrays, path, metadata={"format": "pt", "note": "ü"})
    check_same(load_file(path), arrays)
    with open_file(path) as file:
        assert file.metadata == {"format": "pt", "note": "ü"}
    tensors = safetensors_numpy.load_file(path)
    for name, array in arrays.items():
        assert tensors[name].dtype == np.uint8
        assert tensors[name].tobytes() == arrcomp.compress(array).to_bytes()


def test_a_stream_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.arrcomp"
    save_file({"x": MODEL["embedding"]}, path, BOUNDED)
    assert path.read_bytes() == arrcomp.compress(MODEL["embedding"], BOUNDED).to_bytes()
    checks.check_bound(MODEL["embedding"], load_file(path)["arr_0"], BOUNDED)
    with open_file(path) as file:
        assert file.spec("arr_0").codec == BOUNDED


@settings(max_examples=50)
@given(arrays=st.dictionaries(NAMES, st.integers(0, 300)), metadata=st.dictionaries(st.text(), st.text()))
def test_all_names_and_metadata_come_back(tmp_path: Path, arrays: dict[str, int], metadata: dict[str, str]) -> None:
    path = tmp_path / "x.safetensors"
    expected = {name: np.arange(size) for name, size in arrays.items()}
    save_file(expected, path, metadata=metadata)
    with open_file(path) as file:
        check_same(file, expected)
        assert file.metadata == metadata
    assert set(safetensors_numpy.load_file(path)) == set(expected)


def test_arrays_are_asked_for_once_in_order_and_dropped_before_the_next(tmp_path: Path) -> None:
    tensors = Stream(16, 1 << 18)
    tracemalloc.start()
    try:
        save_file(tensors, tmp_path / "x.safetensors", threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tensors.made == list(tensors)
    assert not any(tensors.alive)
    assert peak < 3.5 * (4 << 18), f"{peak} bytes at once, for arrays of {4 << 18}"
    assert open_file(tmp_path / "x.safetensors").names == list(tensors)


def test_compressed_arrays_are_dropped_before_the_next(tmp_path: Path) -> None:
    source = Stream(4, 1000)
    references: list[weakref.ref[Any]] = []

    def compressed(name: str) -> arrcomp.Compressed:
        assert all(reference() is None for reference in references)
        c = arrcomp.compress(source[name])
        references.append(weakref.ref(c.payload.buffer))
        return c

    save_file(arrcomp._files.Lazy(source, compressed), tmp_path / "x.safetensors")
    assert len(references) == 4


def test_compressed_arrays_are_written_as_they_are(tmp_path: Path) -> None:
    c = arrcomp.compress(MODEL["embedding"], ErrorBounded(abs=0.5))
    save_file({"c": c, "x": MODEL["embedding"]}, tmp_path / "x.safetensors", BOUNDED)
    with open_file(tmp_path / "x.safetensors") as file:
        assert file.compressed("c").to_bytes() == c.to_bytes()
        assert file.compressed("x").codec == BOUNDED


def test_rules_pick_the_codec(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_file(MODEL, path, [Rule(Lossless(speed="fast"), "*.bias"), Rule(BOUNDED, dtypes="float32")])
    with open_file(path) as file:
        found = {name: file.spec(name).codec for name in file}
    assert found.pop("layer.weight") == BOUNDED
    assert found.pop("layer.bias") == Lossless(speed="fast")
    assert set(found.values()) == {Lossless()}


def test_a_seed_reaches_codecs_that_round_at_random(tmp_path: Path) -> None:
    path, codec = tmp_path / "x.safetensors", arrcomp.QSGD(bits=4, rounding="stochastic")
    x = MODEL["layer.weight"]
    with pytest.raises(TypeError, match=r"^seed: expected an integer, or a.*got None"):
        save_file({"x": x}, path, codec)
    save_file({"x": x}, path, codec, seed=7)
    assert open_file(path).compressed("x").to_bytes() == arrcomp.compress(x, codec, seed=7).to_bytes()


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_arrays_of_every_framework_are_saved_and_loaded(tmp_path: Path, framework: str) -> None:
    module = pytest.importorskip(framework)
    make = module.from_numpy if framework == "torch" else module.numpy.asarray
    kind = module.Tensor if framework == "torch" else module.Array
    x = MODEL["layer.weight"]
    save_file({"x": make(x)}, tmp_path / "x.safetensors")
    for like in (framework, make(x)):
        for device in (None, "cpu"):
            y = load_file(tmp_path / "x.safetensors", like=like, device=device)["x"]
            assert isinstance(y, kind)
            checks.check_same_bits(np.asarray(y), x)


def test_a_failure_halfway_leaves_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    for wrong in ("not an array", np.array(["text"])):
        with pytest.raises(TypeError, match="array 'b': "):
            save_file({"a": np.zeros(1000), "b": wrong}, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(("framework", "name"), [("numpy", "ndarray"), ("torch", "Tensor"), ("jax.numpy", "ndarray")])
def test_arrays_come_back_in_the_framework_that_was_saved(tmp_path: Path, framework: str, name: str) -> None:
    library = pytest.importorskip(framework)
    kind = getattr(library, name)
    arrays = {"w": library.asarray(np.ones((30, 40), np.float32)), "b": library.asarray(np.arange(3, dtype=np.int32))}
    path = tmp_path / "x.arrcomp.safetensors"
    save_file(arrays, path)
    assert all(isinstance(array, kind) for array in load_file(path).values())
    assert all(isinstance(array, np.ndarray) for array in load_file(path, like="numpy").values())
    with open_file(path) as file:
        assert file.framework == framework.partition(".")[0]
        assert isinstance(file["w"], kind)
        assert isinstance(file.load("b"), kind)
        assert isinstance(file.slice("w")[1], np.ndarray)
    assert all(isinstance(array, np.ndarray) for array in read_any(path).arrays.values())


@pytest.mark.parametrize(("framework", "dtype"), [("torch", "int4"), ("jax.numpy", "float64")])
def test_what_its_framework_has_no_arrays_for_comes_back_in_numpy(tmp_path: Path, framework: str, dtype: str) -> None:
    library = pytest.importorskip(framework)
    x, path = np.arange(5).astype(checks.numpy_dtype(dtype)), tmp_path / "x.safetensors"
    save_file({"x": arrcomp.compress(x).to(library.zeros(1)), "y": arrcomp.compress(library.zeros(1))}, path)
    checks.check_same_bits(load_file(path)["x"], x)


def test_what_numpy_converts_is_saved_as_its_values(tmp_path: Path) -> None:
    class Labelled:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
            return MODEL["layer.weight"]

    save_file({"sst": Labelled()}, tmp_path / "x.safetensors")
    checks.check_same_bits(load_file(tmp_path / "x.safetensors")["sst"], MODEL["layer.weight"])
    with pytest.raises(TypeError, match=r"^array 'step': x: expected a NumPy, .* got int; numpy.asarray\(x\) makes"):
        save_file({"step": 7}, tmp_path / "y.safetensors")


def test_a_model_loads_what_was_saved_of_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(100, 50)
    save_file(model.state_dict(), tmp_path / "x.safetensors", arrcomp.model_rules(BOUNDED))
    assert model.load_state_dict(load_file(tmp_path / "x.safetensors")).missing_keys == []


def test_the_framework_is_numpy_where_a_file_does_not_say_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    mixed, stream = tmp_path / "mixed.safetensors", tmp_path / "stream.safetensors"
    save_file({"a": torch.ones(3), "b": np.ones(3)}, mixed)
    save_file({"a": arrcomp.compress(np.ones(3))}, stream)
    for path in (mixed, stream):
        assert all(isinstance(array, np.ndarray) for array in load_file(path).values())
    save_file({"a": torch.ones(3)}, tmp_path / "a.arrcomp")
    assert isinstance(load_file(tmp_path / "a.arrcomp")["arr_0"], np.ndarray)


def test_the_metadata_of_pytorch_says_what_the_arrays_were(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    streams = {"a": arrcomp.from_bytes(arrcomp.compress(np.ones(3)).to_bytes())}  # as the command line has them
    save_file(streams, tmp_path / "x.safetensors", metadata={"format": "pt"})
    assert isinstance(load_file(tmp_path / "x.safetensors")["a"], torch.Tensor)


def test_a_framework_that_is_not_installed_is_named_with_the_way_out(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.ones(3)}, path)
    code = f"import sys; sys.modules['torch'] = None; import arrcomp; arrcomp.load_file({str(path)!r}LIKE)"
    for like, found in (("", "ImportError: "), (", like='numpy'", "")):
        run = subprocess.run(
            [sys.executable, "-P", "-c", code.replace("LIKE", like)], capture_output=True, text=True, check=False
        )
        last = run.stderr.splitlines()[-1] if run.stderr else ""
        assert last.startswith(found), run.stderr
        assert bool(found) == ("its arrays were saved from torch, which cannot be used here; pass like='numpy'" in last)


def test_an_unknown_framework_is_corrupt(tmp_path: Path) -> None:
    metadata = {"format": "arrcomp", "version": "0.1", "framework": "os"}
    safetensors_numpy.save_file({}, tmp_path / "x.safetensors", metadata)
    with pytest.raises(arrcomp.CorruptStreamError, match=r"expected numpy, torch, jax, cupy as framework .* got 'os'"):
        open_file(tmp_path / "x.safetensors")


@pytest.mark.parametrize("read", [load_file, open_file, read_any, read_arrays])
def test_a_missing_file_is_missed_before_its_suffix_is_looked_at(tmp_path: Path, read: Any) -> None:
    for name in ("nope", "nope.pt", "nope.safetensors", "nope.arrcomp", "nope.npy"):
        with pytest.raises(FileNotFoundError, match=name):
            read(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


def test_a_checkpoint_of_pytorch_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(b"")
    hint = r"m\.pt: expected suffix .*, got '\.pt'; arrcomp\.torch\.save and load are for PyTorch's checkpoints"
    for call in (load_file, open_file, lambda path: save_file({}, path)):
        with pytest.raises(ValueError, match=hint):
            call(path)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    for suffix in (".arrcomp", ".safetensors"):
        with pytest.raises(OSError, match="No space left"):
            save_file({"x": np.zeros(3)}, tmp_path / f"x{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"tensors": [np.zeros(3)]}, TypeError, "^tensors: expected a mapping from names to arrays, got list"),
        ({"tensors": {3: np.zeros(3)}}, TypeError, r"^tensors: expected strings as names, got 3 \(int\)"),
        (
            {"tensors": {"__metadata__": np.zeros(3)}},
            ValueError,
            "^tensors: expected other names than.*got '__metadata__'",
        ),
        ({"tensors": {"../x": np.zeros(3)}}, ValueError, r"^tensors: expected other names than.*got '\.\./x'"),
        ({"tensors": {"\ud800": np.zeros(3)}}, ValueError, r"^tensors: expected other names than.*got '\\ud800'"),
        ({"path": "x.npz"}, ValueError, r"^x\.npz: expected suffix \.arrcomp, \.safetensors, got '\.npz'"),
        (
            {"path": "x.arrcomp", "tensors": {}},
            ValueError,
            r"^x\.arrcomp: expected one array .*got 0; \.safetensors holds several",
        ),
        (
            {"path": "x.arrcomp", "metadata": {"a": "b"}},
            ValueError,
            r"^x\.arrcomp: expected no metadata .*got some; \.safetensors holds it",
        ),
        ({"codec": "lossless"}, TypeError, r"^codec: expected a codec, .*, got 'lossless' \(str\)"),
        ({"metadata": {"a": 3}}, TypeError, "^metadata: expected a mapping from strings to strings, got dict"),
        ({"threads": 0}, ValueError, "^threads: expected an integer of at least 1, or None for all cores, got 0"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_any_work(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        save_file(**{"tensors": {"x": np.zeros(3)}, "path": "x.safetensors"} | changes)
    assert not list(tmp_path.iterdir())


# Loading


def test_a_model_comes_back(path: Path) -> None:
    check_same(load_file(path), MODEL)
    check_same(load_file(path, names=["steps", "embedding"], threads=1), {k: MODEL[k] for k in ("steps", "embedding")})
    with open_file(path) as file:
        check_same(file, MODEL)
        assert file.names == list(file) == list(MODEL)
        assert len(file) == len(MODEL)
        assert repr(file) == f"<CompressedFile {str(path)!r}: 5 arrays>"


def test_an_empty_model_comes_back(tmp_path: Path) -> None:
    save_file({}, tmp_path / "x.safetensors")
    assert load_file(tmp_path / "x.safetensors") == {}


def test_specs_are_known_without_the_payload(path: Path) -> None:
    with open_file(path) as file:
        expected = {name: (file.spec(name), file.nbytes(name)) for name in file}
        for name, array in MODEL.items():
            assert expected[name][0] == arrcomp.compress(array).spec
            assert expected[name][1] == arrcomp.compress(array).nbytes
        stream = file.compressed("layer.weight").to_bytes()
    data = path.read_bytes()
    path.write_bytes(data.replace(stream, stream[:100] + bytes(len(stream) - 100)))
    with open_file(path) as file:
        assert {name: (file.spec(name), file.nbytes(name)) for name in file} == expected
        with pytest.raises(
            arrcomp.CorruptStreamError,
            match=r"model\.safetensors, array 'layer\.weight':.*got another one; the stream was altered",
        ):
            file["layer.weight"]
        checks.check_same_bits(file["layer.bias"], MODEL["layer.bias"])


def test_looking_for_a_name_decodes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_file(path) as file:
        monkeypatch.setattr("arrcomp._files.opened.parse_stream", None)
        assert "steps" in file
        assert "other" not in file
        assert 3 not in file  # type: ignore[comparison-overlap]
        with pytest.raises(KeyError):
            file["other"]


def test_what_was_taken_outlives_the_file_and_its_replacement(path: Path) -> None:
    with open_file(path) as file:
        c = file.compressed("embedding")
        save_file({"embedding": np.zeros(3)}, path)
        checks.check_same_bits(file["layer.bias"], MODEL["layer.bias"])
    checks.check_same_bits(arrcomp.decompress(c), MODEL["embedding"])
    file.close()
    for call in (file.spec, file.compressed, file.slice, file.__getitem__):
        with pytest.raises(ValueError, match=r"model\.safetensors: expected an open file, got a closed one"):
            call("layer.bias")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"like": "tensorflow"}, ValueError, "^like: expected an array, .*, got 'tensorflow'"),
        ({"like": 3}, TypeError, r"^like: expected an array, or a name of numpy, torch, jax, cupy, got 3 \(int\)"),
        ({"device": "tpu"}, ValueError, "^device: expected 'cpu', 'cuda' or 'cuda:N', got 'tpu'"),
        ({"device": 3}, TypeError, r"^device: expected a name such as 'cuda:0', a device or an array, got 3 \(int\)"),
        ({"names": "steps"}, TypeError, r"^names: expected a list of names, or None for all, got 'steps' \(str\)"),
        ({"names": ["steps", "other"]}, KeyError, "names: expected names of arrays in .*, got .*other"),
        ({"threads": 0}, ValueError, "^threads: expected an integer of at least 1, or None for all cores, got 0"),
    ],
    ids=str,
)
def test_wrong_places_and_names_are_refused(
    path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_file(path, **arguments)


def test_a_device_that_is_not_there_is_told(path: Path) -> None:
    if arrcomp._core.cuda_device_count() > 0:
        pytest.skip("there is one")
    with pytest.raises(arrcomp.DeviceUnavailableError, match="cuda:0"):
        load_file(path, device="cuda")


def test_arrays_are_loaded_onto_the_device(path: Path, device: checks.Host) -> None:
    like = device.put(np.zeros(1, np.float32))
    for name, y in load_file(path, like=like, names=["layer.weight", "steps"]).items():
        assert type(y) is type(like)
        checks.check_same_bits(device.get(y), MODEL[name])


def test_a_progress_bar_goes_to_standard_error_where_that_is_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")

    def shown() -> str:
        save_file(MODEL, tmp_path / "x.safetensors", progress=True)
        check_same(load_file(tmp_path / "x.safetensors", progress=True), MODEL)
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err

    assert shown() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # for Rich a terminal; but nobody watches
    assert shown() == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "5 of 5 arrays" in shown()


# Parts


@st.composite
def shapes_and_indices(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A shape and a basic index of an array of it."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    bounds = st.none() | st.integers(-7, 7)
    part = st.integers(-6, 6) | st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -3]))
    index: list[Any] = [draw(part) for _ in range(draw(st.integers(0, len(shape))))]
    if draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), ...)
    return shape, index[0] if len(index) == 1 and draw(st.booleans()) else tuple(index)


@settings(max_examples=500)
@given(case=shapes_and_indices(), gap=st.sampled_from([1, 4, parts.GAP]))
def test_a_part_holds_what_an_index_takes(case: tuple[tuple[int, ...], Any], gap: int) -> None:
    shape, index = case
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            _part(x, index)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "GAP", gap)
        np.testing.assert_array_equal(_part(x, index), expected)


def _part(x: NDArray[Any], index: Any) -> Any:
    selection = parts.basic_selection(x.shape, _axes_of(x.shape, _expanded(index, x.ndim)))
    result = np.full(selection.shape, -1, x.dtype)
    for part in selection.parts:
        selection.put(part, x.reshape(-1)[part.first : part.first + part.size], result)
    return result


def _ranges(shape: tuple[int, ...], index: Any) -> list[parts.Range]:
    return parts.basic_selection(shape, _axes_of(shape, _expanded(index, len(shape)))).ranges


def test_no_more_is_taken_than_the_values_need() -> None:
    assert _ranges((100, 7, 3), slice(10, 20)) == [(210, 210)]
    assert _ranges((100, 7, 3), (-1, slice(2, 4), 0)) == [(99 * 21 + 6, 4)]
    assert _ranges((100, 7, 3), (1, 2, 1)) == [(21 + 6 + 1, 1)]
    assert _ranges((100,), slice(90, 10, -20)) == [(30, 61)]
    assert _ranges((100, 7), slice(5, 5)) == []
    slab = 1000 * 1000
    assert _ranges((3, 1000, 1000), (slice(None), 5, 7)) == [(i * slab + 5007, 1) for i in range(3)]
    assert _ranges((3, 1000, 1000), (slice(None), slice(5, 8), 7)) == [(i * slab + 5007, 2001) for i in range(3)]


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ((0, 0, 0), IndexError),
        ((..., 0, ...), IndexError),
        (100, IndexError),
        ("name", TypeError),
        (None, TypeError),
        (True, TypeError),
        (1.0, TypeError),
        ([0, 1], TypeError),
        (np.array([0, 1]), TypeError),
    ],
    ids=repr,
)
def test_other_indices_are_refused(path: Path, index: Any, error: type[Exception]) -> None:
    with open_file(path) as file, pytest.raises(error, match="index"):
        file.slice("layer.weight")[index]


@pytest.mark.parametrize(
    "codec", [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()], ids=repr
)
def test_parts_are_those_of_the_whole(tmp_path: Path, codec: arrcomp.Codec) -> None:
    x = RNG.normal(0, 1, (300, 7, 20)).astype(np.float32)
    save_file({"x": x}, tmp_path / "x.safetensors", codec, seed=1)
    with open_file(tmp_path / "x.safetensors") as file:
        part, whole = file.slice("x", threads=1), file["x"]
    assert (part.shape, part.dtype) == (x.shape, x.dtype)
    for index in (
        slice(10, 20),
        299,
        (slice(None, None, 50), ..., 3),
        (-1, 6, 5),
        ...,
        slice(3, 3),
        (0, slice(2, 0, -1)),
    ):
        np.testing.assert_array_equal(part[index], whole[index])


@pytest.mark.parametrize("name", checks.DTYPES)
def test_parts_of_every_dtype(tmp_path: Path, name: str) -> None:
    x = RNG.integers(0, 2, (40, 300)).astype(checks.numpy_dtype(name))
    save_file({"x": x}, tmp_path / "x.safetensors")
    with open_file(tmp_path / "x.safetensors") as file:
        part = file.slice("x")
        checks.check_same_bits(part[5:9], x[5:9])
        checks.check_same_bits(np.asarray(part[39, 299]), np.asarray(x[39, 299]))


@settings(max_examples=200)
@given(data=st.data())
def test_parts_of_damaged_payloads_are_wrong_at_worst(tmp_path: Path, data: st.DataObject) -> None:
    codec = data.draw(
        st.sampled_from([codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()])
    )
    path = tmp_path / "x.arrcomp"
    save_file({"x": np.linspace(-1, 1, 9000, dtype=np.float32).reshape(90, 100)}, path, codec, seed=1)
    content = bytearray(path.read_bytes())
    start, end = checks.payload_span(bytes(content))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(start, end - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with open_file(path) as file:
        part = file.slice("arr_0")
        try:
            assert part[40:60].shape == (20, 100)
        except arrcomp.CorruptStreamError as error:
            assert "array 'arr_0'" in str(error)  # noqa: PT017 - or none is raised


# Memory

_STREAMED = """
import sys, numpy, arrcomp
from pathlib import Path
from arrcomp._files import Content, Lazy, read_arrays, write_arrays
from arrcomp._files.content import ArrayInfo

def peak():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) << 10

def weights(name):
    return numpy.random.default_rng(int(name)).standard_normal(1 << 24, numpy.float32)

names, plain, small, back = [str(i) for i in range(32)], *sys.argv[1:]
look = lambda name: ArrayInfo(numpy.dtype("float32"), (1 << 24,))
before = peak()
write_arrays(Path(plain), Content(Lazy(names, weights, look)))
arrcomp.save_file(read_arrays(Path(plain)).arrays, small, arrcomp.ErrorBounded(abs=1e-4))
with arrcomp.open_file(small) as file:
    write_arrays(Path(back), Content(Lazy(file, file.__getitem__, look)))
print((peak() - before) >> 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the peak")
def test_two_gigabytes_are_streamed_within_a_tenth(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("plain.safetensors", "small.safetensors", "back.safetensors")]
    command = [sys.executable, "-P", "-c", _STREAMED, *paths]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert Path(paths[0]).stat().st_size > 1 << 31
    assert int(result.stdout) < 220, f"{result.stdout} MiB more than before, for arrays of 64 MiB"
    plain, back = (arrcomp._files.read_arrays(Path(p)).arrays["31"] for p in (paths[0], paths[2]))
    checks.check_bound(plain, back, ErrorBounded(abs=1e-4))


def test_values_that_are_not_finite_are_refused_where_that_is_asked_for(tmp_path: Path) -> None:
    path, weights = tmp_path / "x.safetensors", {"a": np.ones(3), "b": np.array([1, np.nan])}
    with pytest.raises(ValueError, match=r"^array 'b': expected finite values, got NaN or infinities"):
        arrcomp.save_file(weights, path, check_finite=True)
    assert not list(tmp_path.iterdir())
    arrcomp.save_file(weights | {"b": arrcomp.compress(weights["b"])}, path, check_finite=True)  # is not checked again
    assert np.isnan(arrcomp.load_file(path)["b"]).any()


@pytest.mark.parametrize(("threads", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_all_that_decompresses_checks_threads(tmp_path: Path, threads: Any, error: type[Exception]) -> None:
    c = arrcomp.compress(np.ones(3))
    arrcomp.save_file({"x": c}, tmp_path / "x.arrcomp")
    with arrcomp.open_file(tmp_path / "x.arrcomp") as file:
        calls = {
            "verify": lambda: c.verify(threads=threads),
            "load": lambda: file.load("arr_0", threads=threads),
            "slice": lambda: file.slice("arr_0", threads=threads),
            "load_file": lambda: arrcomp.load_file(tmp_path / "x.arrcomp", threads=threads),
            "read_any": lambda: read_any(tmp_path / "x.arrcomp", threads=threads).arrays["arr_0"],
        }
        for call in calls.values():
            with pytest.raises(
                error, match=r"^threads: expected an integer of at least 1, or None for all cores, got "
            ):
                call()
