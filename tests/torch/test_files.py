"""`arrcomp.torch.save` and `load`: what `torch.save` keeps comes back, from a smaller file, and nothing else is run."""

from __future__ import annotations

import collections
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import CorruptStreamError, ErrorBounded, Lossless, Rule

torch = pytest.importorskip("torch")

import arrcomp.torch
from arrcomp.torch import _import_arrcomp_torch_first as _pickling
from arrcomp.torch import _references

BOUNDED = ErrorBounded(abs=1e-2)
DTYPES = ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "float8_e5m2")


class Pair(NamedTuple):
    """Two things."""

    first: Any
    second: Any


class Model(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    """A language model in small: tied weights, statistics, a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(200, 32)
        self.body = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU())
        self.head = torch.nn.Linear(32, 200, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("mask", torch.arange(10) % 2 == 0)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(self.embedding(x)))


def stored(obj: Any, codec: Any = None, **options: Any) -> bytes:
    file = io.BytesIO()
    arrcomp.torch.save(obj, file, codec, **options)
    return file.getvalue()


def loaded(data: bytes, **options: Any) -> Any:
    return arrcomp.torch.load(io.BytesIO(data), **options)


def there_and_back(obj: Any, codec: Any = None) -> Any:
    return loaded(stored(obj, codec))


def bits(x: Any) -> bytes:
    flat = x.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().tobytes()


def check_same(actual: Any, expected: Any) -> None:
    """The same containers with the same tensors, bit for bit, and the same of all else."""
    assert type(actual) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert (actual.dtype, actual.shape, actual.device) == (expected.dtype, expected.shape, expected.device)
        assert actual.requires_grad == expected.requires_grad
        assert bits(actual) == bits(expected)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key in expected:
            check_same(actual[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for mine, theirs in zip(actual, expected, strict=True):
            check_same(mine, theirs)
    else:
        assert actual == expected


def streams(data: bytes) -> list[arrcomp.Compressed]:
    """The streams in a file, which are its records."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = [archive.read(name) for name in archive.namelist() if "/data/" in name]
    return [arrcomp.from_bytes(record) for record in records if record.startswith(b"ARRC")]


def trained(steps: int, model: Any, optimizer: Any, seed: int) -> list[float]:
    generator = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(steps):
        x = torch.randint(200, (16,), generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), (x * 7) % 200)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# Structures


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    """Of any dtype, shape and strides, some of them a part of a larger one."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    x = torch.randint(0, 100, shape).to(getattr(torch, draw(st.sampled_from(DTYPES))))
    x = x.permute(draw(st.permutations(range(x.dim()))))
    if draw(st.booleans()) and x.dim() and x.shape[0]:
        x = x[draw(st.integers(0, x.shape[0] - 1)) :: draw(st.integers(1, 2))]
    return x.requires_grad_(draw(st.booleans()) and x.dtype.is_floating_point)


KEYS = st.text(max_size=5) | st.integers(0, 9)
TREES = st.recursive(
    tensors() | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: (
        st.lists(children, max_size=3)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(KEYS, children, max_size=3)
        | st.dictionaries(KEYS, children, max_size=3).map(collections.OrderedDict)
    ),
    max_leaves=10,
)


@settings(max_examples=200)
@given(TREES)
def test_any_structure_comes_back(tree: Any) -> None:
    data = stored(tree)
    check_same(loaded(data), tree)
    check_same(torch.load(io.BytesIO(data), weights_only=True), tree)


def test_a_module_comes_back_with_its_tied_weights_and_statistics(tmp_path: Path) -> None:
    model = Model()
    trained(3, model, torch.optim.SGD(model.parameters()), 0)
    state = model.state_dict()
    arrcomp.torch.save(state, tmp_path / "model.pt")
    again = arrcomp.torch.load(tmp_path / "model.pt")
    check_same(again, state)
    assert again._metadata == state._metadata
    assert again["head.weight"].data_ptr() == again["embedding.weight"].data_ptr()
    assert again["head.weight"] is not again["embedding.weight"]
    twin = Model()
    twin.load_state_dict(again)
    x = torch.arange(20)
    assert torch.equal(twin.eval()(x), model.eval()(x))


def test_tied_tensors_are_compressed_once() -> None:
    weight = torch.nn.Parameter(torch.randn(50, 60))
    data = stored({"a": weight, "b": weight, "c": [weight.detach()], "d": torch.ones(3)})
    assert sorted(c.shape for c in streams(data)) == [(3,), (50, 60)]
    again = loaded(data)
    assert again["a"] is again["b"]
    assert isinstance(again["a"], torch.nn.Parameter)
    assert again["a"].requires_grad
    assert not again["c"][0].requires_grad
    again["c"][0].zero_()
    assert not again["a"].any()


def test_training_goes_on_as_it_would_have() -> None:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    trained(5, model, optimizer, 1)
    data = stored({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    expected = trained(5, model, optimizer, 2)
    twin = Model()
    successor = torch.optim.Adam(twin.parameters(), amsgrad=True)
    checkpoint = loaded(data)
    twin.load_state_dict(checkpoint["model"])
    successor.load_state_dict(checkpoint["optimizer"])
    assert checkpoint["epoch"] == 3
    assert trained(5, twin, successor, 2) == expected
    check_same(twin.state_dict(), model.state_dict())


def test_rules_see_the_keys_joined_by_dots() -> None:
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    trained(1, model, optimizer, 0)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    rules = [Rule(arrcomp.QSGD(bits=8), "optimizer.state.0.exp_avg"), Rule(BOUNDED, "model.embedding.*")]
    data = stored(state, rules)
    found = {(c.shape, c.codec) for c in streams(data)}
    assert ((200, 32), arrcomp.QSGD(bits=8)) in found
    assert ((200, 32), BOUNDED) in found
    assert {c.codec for c in streams(data)} == {arrcomp.QSGD(bits=8), BOUNDED, Lossless()}
    again = loaded(data)
    weight = model.state_dict()["embedding.weight"]
    assert 0 < (again["model"]["embedding.weight"] - weight).abs().max() <= 1e-2
    assert torch.equal(again["model"]["head.weight"], again["model"]["embedding.weight"])
    check_same(again["optimizer"]["state"][0]["exp_avg_sq"], state["optimizer"]["state"][0]["exp_avg_sq"])


def test_the_order_in_memory_comes_back() -> None:
    x = torch.randn(2, 3, 4, 5)
    for y in (x.to(memory_format=torch.channels_last), x.permute(3, 1, 0, 2), x.mT):
        assert there_and_back([y])[0].stride() == y.stride()


def test_named_tuples_come_back_where_they_are_allowed() -> None:
    pair = Pair(torch.ones(3), {"x": torch.arange(4)})
    data = stored(pair)
    with pytest.raises(pickle.UnpicklingError, match="Pair"):
        loaded(data)
    with torch.serialization.safe_globals([Pair]):
        check_same(loaded(data), pair)


def test_containers_in_themselves_come_back() -> None:
    state: dict[str, Any] = {"x": torch.ones(3)}
    state["self"] = [state]
    again = there_and_back(state)
    assert again["self"][0] is again


def test_compressed_tensors_stay_so() -> None:
    c = arrcomp.compress(torch.randn(100), BOUNDED)
    assert there_and_back({"c": c})["c"].to_bytes() == c.to_bytes()


def test_a_seed_reaches_codecs_that_round_at_random() -> None:
    codec, x = arrcomp.QSGD(bits=4, rounding="stochastic"), torch.randn(1000)
    with pytest.raises(
        TypeError, match=r"seed: expected an integer, or a 0-dimensional integer array, for .*, got None"
    ):
        stored([x], codec)
    (c,) = streams(stored([x], codec, seed=7))
    assert c.to_bytes() == arrcomp.compress(x, codec, seed=7).to_bytes()


# What PyTorch keeps


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_tensors_come_back_as_pytorch_keeps_them() -> None:
    z = torch.randn(20, dtype=torch.complex64)
    others = {
        "sparse": torch.eye(3).to_sparse(),
        "compressed rows": torch.eye(3).to_sparse_csr(),
        "meta": torch.empty(3, 4, device="meta"),
        "conjugated": z.conj(),
        "complex32": torch.zeros(3, dtype=torch.complex32),
        "nested": torch.nested.nested_tensor([torch.ones(3), torch.ones(4)]),
    }
    marked = torch.ones(3)
    marked.note = 7
    data = stored(others | {"plain": torch.ones(5), "marked": marked})
    assert [c.shape for c in streams(data)] == [(5,)]
    again = loaded(data)
    for name in ("sparse", "compressed rows", "conjugated"):
        assert torch.equal(again[name].to_dense(), others[name].to_dense())
    assert again["meta"].is_meta
    assert again["conjugated"].is_conj()
    assert again["complex32"].dtype == torch.complex32
    assert again["nested"].is_nested
    assert again["marked"].note == 7


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 3), st.booleans()), max_size=5))
def test_tensors_share_memory_where_pytorch_lets_them(parts: list[tuple[int, int, int, bool]]) -> None:
    base = torch.arange(24.0).reshape(12, 2)
    views = [base[first:last:step].T if turned else base[first:last:step] for first, last, step, turned in parts]
    views = [view for view in views if view.numel()]
    file = io.BytesIO()
    torch.save(views, file)
    expected = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    again = there_and_back(views)
    check_same(again, views)
    for mine, theirs in zip(again, expected, strict=True):
        mine.add_(100)
        theirs.add_(100)
        check_same(again, expected)


def test_an_expanded_tensor_stays_small() -> None:
    x = torch.ones(1).expand(1 << 40)
    data = stored([x])
    assert len(data) < 5000
    assert loaded(data)[0].stride() == (0,)


def test_a_part_of_a_tensor_is_as_large_as_the_part() -> None:
    whole = torch.randn(100_000)
    data = stored([whole[:10]])
    assert len(data) < 5000
    check_same(loaded(data), [whole[:10]])


def test_disjoint_parts_of_memory_are_compressed() -> None:
    whole = torch.randn(1000)
    assert [c.shape for c in streams(stored(list(whole.split(300))))] == [(300,), (300,), (300,), (100,)]


# Files


def test_files_of_pytorch_are_read(tmp_path: Path) -> None:
    state = Model().state_dict()
    torch.save(state, tmp_path / "plain.pt")
    check_same(arrcomp.torch.load(tmp_path / "plain.pt"), state)


def test_a_file_at_a_url_comes_back(tmp_path: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    state = {"w": torch.randn(300, 40), "step": 3}
    try:
        arrcomp.torch.save(state, "memory://torch/x.pt")
        check_same(arrcomp.torch.load("memory://torch/x.pt"), state)
        assert memory.find("/torch") == ["/torch/x.pt"]
        arrcomp.torch.save(state, "memory://torch/y.pt", base=state)
        check_same(arrcomp.torch.load("memory://torch/y.pt", base=state), state)
        with pytest.raises(ValueError, match=r"^base: expected a path of this machine, got a URL"):
            arrcomp.torch.load("memory://torch/y.pt", base="memory://torch/x.pt")
    finally:
        memory.store.clear()
    with pytest.raises(FileNotFoundError, match=r"memory:///torch/x\.pt"):
        arrcomp.torch.load("memory://torch/x.pt")
    with pytest.raises(ValueError, match=r"^storage_options: expected None where there is no URL"):
        arrcomp.torch.load(tmp_path / "x.pt", storage_options={})


def test_pytorch_reads_the_file(tmp_path: Path) -> None:
    state = Model().state_dict()
    arrcomp.torch.save(state, str(tmp_path / "small.pt"))
    for options in ({}, {"mmap": True}, {"map_location": "cpu"}):
        check_same(torch.load(tmp_path / "small.pt", weights_only=True, **options), state)


def test_tensors_go_where_they_are_sent(device: checks.Host) -> None:
    x = device.put(np.arange(5000, dtype=np.float32))
    x = x if isinstance(x, torch.Tensor) else torch.from_numpy(x)
    data = stored({"x": x})
    assert loaded(data)["x"].device == x.device
    for location in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage):
        check_same(loaded(data, map_location=location)["x"], x.cpu())
    check_same(loaded(stored({"x": x.cpu()}), map_location=x.device)["x"], x)
    with pytest.raises(TypeError, match="map_location: expected 'cpu' or 'cuda', got 'meta'"):
        loaded(data, map_location="meta")


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    arrcomp.torch.save({"x": torch.ones(3)}, path)
    before = path.read_bytes()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        arrcomp.torch.save({"x": torch.ones(3), "y": lambda: 3}, path)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        arrcomp.torch.save({"x": torch.ones(3)}, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_told() -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        arrcomp.torch.save({"x": torch.ones(3)}, Full())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"codec": "lossless"}, TypeError, r"codec: expected a codec, a list of Rule, or None, got 'lossless' \(str\)"),
        ({"codec": [BOUNDED]}, TypeError, "a list of Rule"),
        ({"threads": 0}, ValueError, "threads: expected an integer of at least 1.*, got 0"),
        (
            {"codec": arrcomp.S2FP8(rounding="stochastic"), "seed": -1},
            ValueError,
            "seed: expected an integer from 0 to .*, got -1",
        ),
        (
            {"path_or_file": 3},
            TypeError,
            r"path_or_file: expected a path, a URL, or a binary file with a method write, got 3 \(int\)",
        ),
        ({"path_or_file": "."}, ValueError, "expected a regular file"),
        ({"path_or_file": "missing/x.pt"}, OSError, "No such file"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        arrcomp.torch.save(**{"obj": [torch.ones(3)], "path_or_file": "x.pt"} | changes)
    assert not list(tmp_path.iterdir())


def test_only_files_are_read() -> None:
    with pytest.raises(
        TypeError, match=r"path_or_file: expected a path, a URL, or a binary file with a method read, got 3 \(int\)"
    ):
        arrcomp.torch.load(3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        arrcomp.torch.load("missing.pt")


# Hostile files


class Bomb:
    """What runs code when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def test_nothing_is_run_that_a_file_names(tmp_path: Path) -> None:
    bomb = Bomb(tmp_path / "run")
    for data in (stored({"x": torch.ones(3), "bomb": bomb}), pickle.dumps(bomb, protocol=2)):
        with pytest.raises(pickle.UnpicklingError):
            loaded(data)
        assert not (tmp_path / "run").exists()
    (tmp_path / "x.pt").write_bytes(stored({"bomb": bomb}))
    torch.load(tmp_path / "x.pt", weights_only=False)
    assert (tmp_path / "run").exists(), "it would have run"


@settings(max_examples=200)
@given(data=st.data())
def test_a_changed_byte_of_a_stream_is_found(data: st.DataObject) -> None:
    content = bytearray(stored({"a": torch.arange(100.0), "b": torch.ones(40, 50)}))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        spans = [(content.find(s), len(s)) for s in map(archive.read, archive.namelist()) if s.startswith(b"ARRC")]
    start, size = data.draw(st.sampled_from(spans))
    content[start + data.draw(st.integers(0, size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises((CorruptStreamError, arrcomp.FormatVersionError)):
        loaded(bytes(content))


@settings(max_examples=50)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_refused(share: float) -> None:
    content = stored({"a": torch.arange(1000.0)})
    with pytest.raises((CorruptStreamError, RuntimeError, EOFError, pickle.UnpicklingError)):
        loaded(content[: int(share * len(content))])


STREAM = torch.frombuffer(bytearray(arrcomp.compress(np.arange(100.0)).to_bytes()), dtype=torch.uint8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, STREAM), "stream: expected a one-dimensional"),
        ((STREAM.float(), STREAM), "stream: expected a one-dimensional"),
        ((STREAM[None], STREAM), "stream: expected a one-dimensional"),
        ((STREAM.repeat_interleave(2)[::2], STREAM), "expected a contiguous"),
        ((STREAM[:-1], STREAM), "truncated"),
        ((STREAM, None), "like: expected a tensor"),
    ],
)
def test_hostile_calls_are_refused(arguments: tuple[Any, Any], message: str) -> None:
    assert torch.equal(_pickling.restore(STREAM, STREAM), torch.arange(100.0, dtype=torch.float64))
    with pytest.raises(CorruptStreamError, match=message):
        _pickling.restore(*arguments)


@pytest.mark.parametrize("order", [(0,), (0, 0), (0, 2), (0, 1, 2), None, 7, ("a", "b")])
def test_hostile_orders_are_refused(order: Any) -> None:
    assert _pickling.arranged(torch.ones(2, 3), (1, 0), True).requires_grad
    with pytest.raises(CorruptStreamError, match="order"):
        _pickling.arranged(torch.ones(2, 3), order, False)
    integers = torch.ones(2, 3, dtype=torch.int8)
    wrong: tuple[tuple[Any, Any], ...] = ((3, False), (torch.ones(2, 3), "x"), (integers, True))
    for base, flag in wrong:
        with pytest.raises(CorruptStreamError):
            _pickling.arranged(base, (1, 0), flag)


# Bases


def trained_state(seed: int) -> dict[str, Any]:
    """A state of tied, transposed, permuted and other tensors, of which few values change with the seed."""
    x = torch.randn(40, 30, generator=torch.Generator().manual_seed(0))
    x[seed] += 1
    tied = torch.nn.Parameter(x.clone())
    others = [x.T.clone().T, x[None].permute(2, 0, 1), torch.tensor(seed), x.to(torch.bfloat16)]
    return {"model": {"a": tied, "b": tied}, "others": others, "epoch": seed}


def needs_base(data: bytes) -> list[bool]:
    return [c.needs_reference for c in streams(data)]


def test_states_are_saved_against_a_base_in_a_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old, new, newer = map(trained_state, (1, 2, 3))
    arrcomp.torch.save(old, "old.pt")
    arrcomp.torch.save(new, "new.pt", base="old.pt")
    arrcomp.torch.save(newer, "newer.pt", base=Path("new.pt"))
    for state, path in ((new, "new.pt"), (newer, "newer.pt")):
        again = arrcomp.torch.load(path)
        check_same(again, state)
        assert again["model"]["a"].data_ptr() == again["model"]["b"].data_ptr()
        assert [x.stride() for x in again["others"]] == [x.stride() for x in state["others"]]
        assert all(needs_base(Path(path).read_bytes()))
    check_same(arrcomp.torch.load("newer.pt", base=new), newer)
    check_same(new, trained_state(2))  # the base of a caller is not written to
    Path("old.pt").rename("moved.pt")
    with pytest.raises(FileNotFoundError, match=r"expected the base of new\.pt, got no such file") as caught:
        arrcomp.torch.load("newer.pt")
    assert caught.value.filename == "old.pt"
    check_same(arrcomp.torch.load("new.pt", base="moved.pt"), new)


def test_a_base_in_memory_is_needed_again() -> None:
    old, new = trained_state(1), trained_state(2)
    rules = [Rule(arrcomp.QSGD(8), "others.0"), Rule(BOUNDED, dtypes="float32"), Rule(arrcomp.BaseDelta())]
    data = stored(new, rules, base=old)
    assert sorted(needs_base(data)) == [False, False, False, True, True]
    assert (loaded(data, base=old)["model"]["a"] - new["model"]["a"]).abs().max() <= 1e-2
    with pytest.raises(ValueError, match=r"^path_or_file: expected a base, which its tensors need, got none$"):
        loaded(data)
    with pytest.raises(ValueError, match=r"^base: expected arrcomp\.torch\.load or .*, got another reader$"):
        torch.load(io.BytesIO(data), weights_only=True)


def test_wrong_bases_of_states_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old, new = trained_state(1), trained_state(2)
    arrcomp.torch.save(old, "old.pt")
    arrcomp.torch.save(new, "new.pt", base="old.pt")
    before = Path("old.pt").read_bytes(), Path("new.pt").read_bytes()
    for base, message in (
        (trained_state(3), r"^'model\.a': expected the tensor that it was coded against in base, got another$"),
        ({"x": torch.ones(3)}, r"^base: expected a tensor 'model\.a', which another needs, got none$"),
        ({"model": {"a": torch.ones(3)}}, r"^'model\.a': expected float32 of shape \(40, 30\) in base, got "),
        ("new.pt", r"^new\.pt: expected a base that does not lead back to it, got new\.pt$"),
    ):
        with pytest.raises(arrcomp.WrongReferenceError, match=message):
            arrcomp.torch.load("new.pt", base=base)
    for path in ("old.pt", "new.pt"):
        with pytest.raises(ValueError, match=rf"^{path}: expected another file than base and those"):
            arrcomp.torch.save(new, path, base="new.pt")
    with pytest.raises(ValueError, match=r"^base: expected a tensor of the same name, dtype and shape as one"):
        arrcomp.torch.save({"x": torch.ones(3)}, "x.pt", base="old.pt")
    with pytest.raises(TypeError, match=r"^base: expected a path, or nested dicts, .*, got 3 \(int\)$"):
        arrcomp.torch.save(new, "x.pt", base=3)
    assert before == (Path("old.pt").read_bytes(), Path("new.pt").read_bytes())
    Path("inner").mkdir()
    arrcomp.torch.save(new, "inner/x.pt", base="old.pt")
    with pytest.raises(ValueError, match=r"^inner/x\.pt: expected a base in its folder, got '\.\./old\.pt'"):
        arrcomp.torch.load("inner/x.pt")
    arrcomp.torch.save(trained_state(4), "old.pt")
    with pytest.raises(arrcomp.WrongReferenceError, match=r"^'model\.a': .* in old\.pt, got another$"):
        arrcomp.torch.load("new.pt")


@pytest.mark.parametrize("change", [{"order": (0, 0)}, {"order": 5}, {"file": 3}, {"key": ["x"]}])
def test_damaged_references_are_errors_of_the_package(change: dict[str, Any]) -> None:
    x = torch.ones(3, 4)
    c = arrcomp.compress(x, reference=torch.zeros(3, 4))
    stream = torch.frombuffer(bytearray(c.to_bytes()), dtype=torch.uint8)
    given: dict[str, Any] = {"order": (0, 1), "key": "x", "file": None} | change
    with _references.finding(lambda key, file: {"x": torch.zeros(3, 4)}[str(key)] if key == "x" else missing()):
        with pytest.raises(arrcomp.ArrcompError):
            _pickling.restore_from(stream, torch.empty(0), given["order"], given["key"], given["file"])
        assert torch.equal(_pickling.restore_from(stream, torch.empty(0), (0, 1), "x", None), x)


def missing() -> Any:
    raise arrcomp.WrongReferenceError("none")
