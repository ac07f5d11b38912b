"""Pytrees in files: structure, dtypes and places come back as is wanted, and nothing that does not fit."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arrcomp
import checks
from arrcomp import CorruptStreamError, ErrorBounded, Lossless, Rule

jax = pytest.importorskip("jax")
pytest.importorskip("safetensors")

from jax import numpy as jnp

import arrcomp.jax

BOUNDED = ErrorBounded(abs=1e-3)
RNG = np.random.default_rng(9)
DTYPES = (
    "bool",
    "int8",
    "uint32",
    "bfloat16",
    "float16",
    "float32",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
    "int4",
)


class Adam(NamedTuple):
    """An optimizer's state."""

    count: Any
    mu: Any
    nu: Any


def normal(*shape: int) -> Any:
    return jnp.asarray(RNG.normal(0, 0.02, shape), jnp.float32)


def train_state() -> dict[str, Any]:
    params = {"dense": [{"w": normal(64, 100), "b": normal(100)}, {"w": normal(100, 64), "b": normal(64)}]}
    moments = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    return {"params": params, "opt": (Adam(jnp.int32(5), moments, params), None), "step": 7, "rate": 1e-3}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file to be."""
    return tmp_path / "x.safetensors"


def check_same(actual: Any, expected: Any) -> None:
    found, structure = jax.tree.flatten(actual)
    leaves, same = jax.tree.flatten(expected)
    assert structure == same
    for mine, theirs in zip(found, leaves, strict=True):
        assert isinstance(mine, jax.Array) or type(mine) is type(theirs)
        if hasattr(theirs, "shape"):
            checks.check_same_bits(np.asarray(mine), np.asarray(theirs))
        else:
            assert mine == theirs


def test_a_tree_at_a_url_and_in_a_file_object_comes_back() -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    file, tree = io.BytesIO(), {"w": normal(30, 40)}
    arrcomp.jax.save(tree, file)
    file.seek(0)
    try:
        arrcomp.jax.save(tree, "memory://jax/x.safetensors")
        arrcomp.jax.save(tree, "memory://jax/y.safetensors", base="memory://jax/x.safetensors")
        for source in (file, "memory://jax/x.safetensors", "memory://jax/y.safetensors"):
            np.testing.assert_array_equal(arrcomp.jax.load(source)["w"], tree["w"])
    finally:
        memory.store.clear()


def test_a_train_state_comes_back_as_it_was(path: Path) -> None:
    state = train_state()
    arrcomp.jax.save(state, path)
    for like in (
        state,
        jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "shape") else x, state),
    ):
        check_same(arrcomp.jax.load(path, like=like), state)
    names = arrcomp.open_file(path).names
    assert {"params.dense.0.w", "opt.0.count", "opt.0.mu.dense.1.b", "step", "rate"} <= set(names)


def test_rules_see_the_keys_joined_by_dots(path: Path) -> None:
    arrcomp.jax.save(train_state(), path, [Rule(arrcomp.QSGD(bits=8), "opt.0.nu.*"), Rule(BOUNDED, "params.*.w")])
    with arrcomp.open_file(path) as file:
        found = {name: file.spec(name).codec for name in file}
    assert found["opt.0.nu.dense.0.w"] == arrcomp.QSGD(bits=8)
    assert found["params.dense.1.w"] == BOUNDED
    assert found["params.dense.1.b"] == found["step"] == Lossless()


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_come_back(path: Path, name: str) -> None:
    x = jnp.asarray(checks.sample(name))
    arrcomp.jax.save({"x": x}, path)
    check_same(arrcomp.jax.load(path, like={"x": x}), {"x": x})
    check_same(arrcomp.jax.load(path), {"x": x})


KEYS = st.text("ab0. ü['", min_size=1, max_size=4).filter(lambda key: key != "..")
LEAVES = st.integers(0, 50).map(lambda size: np.arange(size, dtype=np.float32))


@settings(max_examples=100)
@given(
    tree=st.recursive(
        st.dictionaries(KEYS, LEAVES, min_size=1, max_size=3),
        lambda t: st.dictionaries(KEYS, t | LEAVES, min_size=1, max_size=3),
        max_leaves=5,
    )
)
def test_nested_dicts_come_back_without_being_described(tmp_path: Path, tree: dict[str, Any]) -> None:
    path = tmp_path / "x.safetensors"
    arrcomp.jax.save(tree, path)
    check_same(arrcomp.jax.load(path), tree)


def test_a_tree_may_be_an_array(path: Path) -> None:
    x = normal(3, 4)
    arrcomp.jax.save(x, path)
    check_same(arrcomp.jax.load(path), x)
    check_same(arrcomp.jax.load(path, like=x), x)


def test_an_empty_tree_comes_back(path: Path) -> None:
    arrcomp.jax.save({"a": None, "b": []}, path)
    assert arrcomp.jax.load(path) == {}
    assert arrcomp.jax.load(path, like={"a": None, "b": []}) == {"a": None, "b": []}


def test_keys_with_dots_are_kept_whole(path: Path) -> None:
    tree = {"layer.0": {"w": normal(3)}, "layer": {"0": normal(4)}}
    arrcomp.jax.save(tree, path)
    assert set(arrcomp.open_file(path).names) == {"layer.0/w", "layer/0"}
    check_same(arrcomp.jax.load(path), tree)
    check_same(arrcomp.jax.load(path, like=tree), tree)


def test_a_part_of_a_tree_is_loaded_alone(path: Path) -> None:
    state = train_state()
    arrcomp.jax.save(state, path)
    check_same(arrcomp.jax.load(path, like={"params": state["params"]}), {"params": state["params"]})


def test_arrays_of_numpy_stay_so(path: Path) -> None:
    tree: dict[str, Any] = {"a": np.arange(5), "b": np.float64(0.1), "c": np.ones((2, 3), ml_dtypes.bfloat16)}
    arrcomp.jax.save(tree, path)
    again = arrcomp.jax.load(path, like=tree)
    assert isinstance(again["a"], np.ndarray)
    for name, x in tree.items():
        checks.check_same_bits(np.asarray(again[name]), np.asarray(x))
    again = arrcomp.jax.load(path)  # where JAX has no numbers of 64 bits, NumPy has
    assert [isinstance(again[name], jax.Array) for name in tree] == [False, False, True]
    checks.check_same_bits(np.asarray(again["a"]), tree["a"])


def test_compressed_arrays_are_written_as_they_are(path: Path) -> None:
    c = arrcomp.jax.compress(normal(40, 50), BOUNDED)
    arrcomp.jax.save({"c": c, "n": jnp.arange(3)}, path)
    assert arrcomp.jax.load(path, like={"c": c})["c"].to_bytes() == c.to_bytes()
    check_same(arrcomp.jax.load(path)["c"], arrcomp.jax.decompress(c))


def test_files_of_models_are_read_as_trees(path: Path) -> None:
    arrcomp.save_file({"layer.weight": np.ones((3, 4), np.float32), "layer.bias": np.zeros(3, np.float32)}, path)
    assert jax.tree.map(np.shape, arrcomp.jax.load(path)) == {"layer": {"weight": (3, 4), "bias": (3,)}}


def test_a_seed_reaches_the_codec(path: Path) -> None:
    codec, x = arrcomp.QSGD(bits=4, rounding="stochastic"), normal(1000)
    arrcomp.jax.save({"x": x}, path, codec, seed=3)
    assert arrcomp.open_file(path).compressed("x").to_bytes() == arrcomp.compress(x, codec, seed=3).to_bytes()


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        ({"a": "text"}, TypeError, "tree: expected an array or a number in leaf 'a', got str"),
        ({"a": {"b": object()}}, TypeError, r"tree: expected an array or a number in leaf 'a\.b', got object"),
        ({"a.b": 1, "c/d": 2}, ValueError, r"tree: expected keys with dots or with '/', got both: 'a\.b' and 'c/d'"),
        ({"a": 1 << 70}, TypeError, "array 'a': dtype: expected bool.* got object"),
        (
            {"..": 1},
            ValueError,
            r"tensors: expected other names than '__metadata__', paths out of a folder, and surrogates, got '\.\.'",
        ),
    ],
    ids=["text", "object", "separators", "too large", "path"],
)
def test_other_leaves_are_refused(path: Path, tree: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        arrcomp.jax.save(tree, path)
    assert not path.exists()


def test_random_keys_and_traced_arrays_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="tree: expected numbers in leaf 'key', got a random key"):
        arrcomp.jax.save({"key": jax.random.key(0)}, path)
    key = jax.random.key_data(jax.random.key(0))
    arrcomp.jax.save({"key": key}, path)
    check_same(arrcomp.jax.load(path, like={"key": key}), {"key": key})
    with pytest.raises(TypeError, match="leaf 'x' is traced"):
        jax.jit(lambda x: arrcomp.jax.save({"x": x}, path))(jnp.ones(3))


@pytest.mark.parametrize(
    ("like", "error", "message"),
    [
        ({"y": jnp.ones(3)}, KeyError, '"like: expected names of arrays in'),
        ({"x": jnp.ones(4)}, ValueError, r"like: expected shape \(3,\) for 'x' of"),
        ({"x": jnp.ones(3, jnp.bfloat16)}, TypeError, "like: expected dtype float32 for 'x' of"),
        ({"x": 3.0}, ValueError, r"like: expected shape \(3,\) for 'x' of"),
        ({"n": 3.0}, TypeError, "like: expected dtype int32 for 'n' of"),
        ({"n": "text"}, TypeError, "like: expected an array or a number in leaf 'n', got str"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(path: Path, like: Any, error: type[Exception], message: str) -> None:
    arrcomp.jax.save({"x": jnp.ones(3), "n": jnp.int32(3)}, path)
    assert arrcomp.jax.load(path, like={"n": 0}) == {"n": 3}
    with pytest.raises(error, match=message):
        arrcomp.jax.load(path, like=like)


def test_wrong_arguments_are_refused(path: Path) -> None:
    other = path.with_suffix(".arrcomp")
    other.write_bytes(b"")
    for call in (lambda: arrcomp.jax.save({}, "x.npz"), lambda: arrcomp.jax.load(other)):
        with pytest.raises(ValueError, match=r"expected suffix \.safetensors, got '\.(npz|arrcomp)'"):
            call()
    with pytest.raises(ValueError, match=r"threads: expected an integer of at least 1.*, got 0"):
        arrcomp.jax.load(path, threads=0)
    with pytest.raises(TypeError, match=r"codec: expected .*, got 'lossless'"):
        arrcomp.jax.save({"x": jnp.ones(3)}, path, "lossless")  # type: ignore[arg-type]
    assert not path.exists()


def test_damage_is_found(path: Path) -> None:
    arrcomp.jax.save({"x": normal(1000)}, path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptStreamError, match="array 'x': checksum"):
        arrcomp.jax.load(path)
    arrcomp.save_file({"x": np.ones(3)}, path, metadata={"key_separator": ""})
    with pytest.raises(CorruptStreamError, match=r"expected key_separator '\.' or '/' in the metadata, got ''"):
        arrcomp.jax.load(path)
    for names in (["a", "a.b"], ["a.b", "a"]):
        arrcomp.save_file(dict.fromkeys(names, np.ones(3)), path)
        with pytest.raises(ValueError, match=r"expected either a dict or an array at .*, got both"):
            arrcomp.jax.load(path)
    arrcomp.save_file({".".join("a" * 1000): np.ones(3)}, path)
    with pytest.raises(ValueError, match="expected at most 256 keys, got more in"):
        arrcomp.jax.load(path)


def test_pytrees_are_saved_against_a_base(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(64, 100)).astype(np.float32)
    old = {"params.v1": [jnp.asarray(weights), np.arange(3)], "step": 1}
    new = {"params.v1": [jnp.asarray(weights).at[3].add(1), np.arange(3) + 1], "step": 2}
    arrcomp.jax.save(old, tmp_path / "old.safetensors")
    arrcomp.jax.save(new, tmp_path / "new.safetensors", base=tmp_path / "old.safetensors")
    arrcomp.jax.save(new, tmp_path / "memory.safetensors", base=old)
    assert (tmp_path / "new.safetensors").stat().st_size < (tmp_path / "old.safetensors").stat().st_size / 5
    for name, base in (("new", None), ("memory", old), ("memory", tmp_path / "old.safetensors")):
        again = arrcomp.jax.load(tmp_path / f"{name}.safetensors", like=new, base=base)
        assert again["step"] == 2
        assert isinstance(again["params.v1"][0], jax.Array)
        checks.check_same_bits(np.asarray(again["params.v1"][0]), np.asarray(new["params.v1"][0]))  # type: ignore[index]
        checks.check_same_bits(again["params.v1"][1], new["params.v1"][1])  # type: ignore[index]
    assert set(arrcomp.jax.load(tmp_path / "new.safetensors")) == {"params.v1", "step"}
    with pytest.raises(arrcomp.WrongReferenceError, match=r"memory\.safetensors, array .*, got another$"):
        arrcomp.jax.load(tmp_path / "memory.safetensors", base=new)
    with pytest.raises(ValueError, match=r"memory\.safetensors: expected a base, which its arrays were coded against"):
        arrcomp.jax.load(tmp_path / "memory.safetensors")
    with pytest.raises(TypeError, match=r"^base: expected an array or a number in leaf '0', got str$"):
        arrcomp.jax.save(new, tmp_path / "x.safetensors", base=["text"])
