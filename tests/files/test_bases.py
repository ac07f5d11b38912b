"""Files of arrays that are coded against those of a base: what they need, what they refuse, and chains of them."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks
from arrcomp import CheckpointChain, ErrorBounded, Lossless, Rule, load_file, open_file, save_file
from arrcomp._files import Content, Lazy, read_any, write_arrays
from arrcomp.errors import CorruptStreamError, WrongReferenceError

safetensors_numpy = pytest.importorskip("safetensors.numpy")

Arrays = dict[str, NDArray[Any]]

RNG = np.random.default_rng(8)
OLD: Arrays = {
    "weight": RNG.normal(0, 0.02, (64, 100)).astype(np.float32),
    "bias": RNG.normal(0, 0.02, 64).astype(np.float32),
    "table": RNG.normal(0, 1, (50, 8)),
    "steps": np.array(12),
}


def changed(arrays: Mapping[str, NDArray[Any]], seed: int) -> Arrays:
    """The arrays, each with a value that is another."""
    rng = np.random.default_rng(seed)
    copies = {name: array.copy() for name, array in arrays.items()}
    for array in copies.values():
        array.reshape(-1)[rng.integers(array.size)] += 1
    return copies


NEW, NEWER = changed(OLD, 1), changed(changed(OLD, 1), 2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a full file, a file against it, and one against that."""
    monkeypatch.chdir(tmp_path)
    save_file(OLD, "old.safetensors")
    save_file(NEW, "new.safetensors", base="old.safetensors")
    save_file(NEWER, Path("newer.safetensors"), base=Path("new.safetensors"))
    return tmp_path


def check_same(actual: Mapping[str, Any], expected: Mapping[str, NDArray[Any]]) -> None:
    assert list(actual) == list(expected)
    for name, array in expected.items():
        checks.check_same_bits(np.asarray(actual[name]), array)


def needs_reference(path: str) -> dict[str, bool]:
    with open_file(path) as file:
        return {name: file.compressed(name).needs_reference for name in file}


def test_a_chain_of_files_is_read_through_its_bases() -> None:
    for path, expected in (("new.safetensors", NEW), ("newer.safetensors", NEWER)):
        check_same(load_file(path), expected)
        check_same(read_any(Path(path)).arrays, expected)
        assert all(needs_reference(path).values())
    with open_file("newer.safetensors") as file:
        assert file.base == Path("new.safetensors")
        checks.check_same_bits(file["weight"], NEWER["weight"])
        assert file.fingerprint != open_file("new.safetensors").fingerprint
    assert open_file("old.safetensors").base is None
    nbytes = {name: Path(f"{name}.safetensors").stat().st_size for name in ("old", "new")}
    assert nbytes["new"] < nbytes["old"] / 5


def test_arrays_without_a_counterpart_are_coded_by_themselves() -> None:
    wide = {name: array.astype(np.float64) for name, array in OLD.items()}
    tensors = {"weight": NEW["weight"], "bias": wide["bias"], "table": NEW["table"][:9], "more": NEW["weight"]}
    save_file(tensors, "x.safetensors", base="old.safetensors")
    assert needs_reference("x.safetensors") == {"weight": True, "bias": False, "table": False, "more": False}
    check_same(load_file("x.safetensors"), tensors)


def test_codecs_without_references_code_as_they_do_without_a_base() -> None:
    rules = [
        Rule(arrcomp.QSGD(4), "weight"),
        Rule(Lossless(predictor="auto"), "bias"),
        Rule(ErrorBounded(abs=1e-3), "table"),
    ]
    save_file(NEW, "x.safetensors", rules, base="old.safetensors")
    assert needs_reference("x.safetensors") == {"weight": False, "bias": False, "table": True, "steps": True}
    checks.check_bound(NEW["table"], load_file("x.safetensors")["table"], ErrorBounded(abs=1e-3))
    save_file(NEW, "y.safetensors", arrcomp.BaseDelta(), base="old.safetensors")
    assert open_file("y.safetensors").base is None  # it needs none
    with open_file("y.safetensors") as file:
        for name, array in NEW.items():
            assert file.compressed(name).to_bytes() == arrcomp.compress(array, arrcomp.BaseDelta()).to_bytes()


def test_a_codec_that_needs_a_reference_needs_a_counterpart() -> None:
    with open_file("new.safetensors") as file:  # as whoever saves again by the codecs of a file does
        codec = file.spec("weight").codec
    save_file(NEW, "x.safetensors", codec, base="old.safetensors")
    check_same(load_file("x.safetensors"), NEW)
    with pytest.raises(
        ValueError, match=r"^reference: expected an array for Lossless\(predictor='reference'\), got none$"
    ):
        save_file(NEW | {"more": np.ones(3)}, "x.safetensors", codec, base="old.safetensors")
    check_same(load_file("x.safetensors"), NEW)


@pytest.mark.parametrize("name", ["old.npz", "plain.safetensors", "small.safetensors"])
def test_a_base_is_any_file_of_arrays(name: str) -> None:
    if name == "small.safetensors":
        save_file(OLD, name, ErrorBounded(abs=0.01))
    else:
        write_arrays(Path(name), Content(OLD))
    save_file(NEW, "x.safetensors", base=name)
    assert all(needs_reference("x.safetensors").values())
    check_same(load_file("x.safetensors"), NEW)


@pytest.mark.parametrize("order", ["C", "F", ">f4"])
def test_a_npy_file_is_a_base_of_one_array(order: str) -> None:
    old = OLD["weight"]
    np.save("old.npy", old.astype(order) if order == ">f4" else np.asarray(old, order=order))  # type: ignore[call-overload]
    save_file({"w": NEW["weight"]}, "x.arrcomp", base="old.npy")
    save_file({"w": NEW["weight"]}, "x.safetensors", base="old.npy")
    assert needs_reference("x.arrcomp") == {"arr_0": True}
    checks.check_same_bits(load_file("x.arrcomp", base="old.npy")["arr_0"], NEW["weight"])
    checks.check_same_bits(load_file("x.safetensors")["w"], NEW["weight"])
    with pytest.raises(ValueError, match=r"^x\.arrcomp: expected a base, which its arrays were .*, got none$"):
        load_file("x.arrcomp")


def test_a_mapping_is_a_base_that_stays_as_it_is() -> None:
    before = {name: array.copy() for name, array in OLD.items()}
    save_file(NEW, "x.safetensors", base=OLD)
    assert open_file("x.safetensors").base is None
    check_same(load_file("x.safetensors", base=OLD), NEW)
    with open_file("x.safetensors", base=open_file("old.safetensors")) as file:
        check_same(file, NEW)
    check_same(OLD, before)
    with pytest.raises(ValueError, match=r"^x\.safetensors: expected a base, "):
        load_file("x.safetensors")
    with pytest.raises(TypeError, match=r"^base: expected a file, or a mapping .*, got 3 \(int\)$"):
        open_file("x.safetensors", base=3)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_arrays_of_other_frameworks_have_bases(framework: str) -> None:
    module = pytest.importorskip(framework)
    make = module.from_numpy if framework == "torch" else module.numpy.asarray
    old, new = ({"weight": make(arrays["weight"].copy())} for arrays in (OLD, NEW))
    save_file(new, "x.safetensors", base="old.safetensors")
    write_arrays(Path("plain.npz"), Content({"weight": OLD["weight"]}))
    save_file(new, "y.safetensors", base="plain.npz")
    for base in (None, "plain.npz", {"weight": OLD["weight"]}, old):
        loaded = load_file("y.safetensors", base=base)["weight"]
        assert type(loaded) is type(new["weight"])
        checks.check_same_bits(np.asarray(loaded), NEW["weight"])
    checks.check_same_bits(np.asarray(old["weight"]), OLD["weight"])  # not written to
    assert Path("x.safetensors").stat().st_size < 26_000
    checks.check_same_bits(load_file("y.safetensors", like="numpy")["weight"], NEW["weight"])


def test_slices_of_an_array_that_needs_its_base_are_those_of_the_array() -> None:
    with open_file("newer.safetensors") as file:
        part = file.slice("weight")
        checks.check_same_bits(part[3:9, ::-2], NEWER["weight"][3:9, ::-2])
    part[3:9][:] = 0  # it is a copy
    assert part[4, 5] == NEWER["weight"][4, 5]
    assert part[..., 2:2].shape == (64, 0)


# What is missing or another


def test_a_missing_base_and_the_file_that_needs_it_are_named(folder: Path) -> None:
    Path("old.safetensors").rename("moved.safetensors")
    with pytest.raises(FileNotFoundError, match=r"expected the base of new\.safetensors, got no such file") as caught:
        load_file("newer.safetensors")
    assert caught.value.filename == "old.safetensors"
    check_same(load_file("new.safetensors", base="moved.safetensors"), NEW)
    check_same(load_file("newer.safetensors", base=NEW), NEWER)
    with open_file("newer.safetensors") as file:  # what needs no base
        assert file.spec("bias").shape == (64,)
        assert file.base == Path("new.safetensors")
    with pytest.raises(FileNotFoundError):
        save_file(NEWER, "x.safetensors", base="newer.safetensors")
    assert not Path("x.safetensors").exists()


def test_another_base_is_refused_before_anything_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    last = OLD | {"steps": np.array(13)}  # all but the last array are the same
    save_file(last, "other.safetensors")
    called: list[str] = []
    monkeypatch.setattr("arrcomp._files.opened.CompressedFile.load_at", spy(called))
    named = r"^new\.safetensors, array 'steps': expected the array that it was coded against in other\.safetensors, got"
    with pytest.raises(WrongReferenceError, match=named):
        load_file("new.safetensors", base="other.safetensors")
    assert "new.safetensors" not in called
    with pytest.raises(WrongReferenceError, match=r"against in base, got another$"):
        load_file("new.safetensors", base=last)
    shutil.copy("other.safetensors", "old.safetensors")
    with pytest.raises(WrongReferenceError, match=r"^new\.safetensors, array 'steps': .* in old\.safetensors, got"):
        load_file("newer.safetensors")
    with pytest.raises(WrongReferenceError, match=r"^new\.safetensors, array 'steps': .* in old\.safetensors, got"):
        open_file("newer.safetensors")["steps"]


def spy(called: list[str]) -> Any:
    """`CompressedFile.load_at`, which notes the file."""
    method = arrcomp.CompressedFile.load_at

    def noted(file: arrcomp.CompressedFile, *arguments: Any) -> Any:
        called.append(Path(str(file.path)).name)
        return method(file, *arguments)

    return noted


@pytest.mark.parametrize("names", [["weight"], ["weight", "bias", "table"]])
def test_a_base_without_an_array_or_with_another_shape_is_refused(names: list[str]) -> None:
    save_file({name: OLD[name] for name in names}, "other.safetensors")
    with pytest.raises(WrongReferenceError, match=r"expected \w+ \(.*\) in other\.safetensors, .*, got none$"):
        load_file("new.safetensors", base="other.safetensors")
    flat = {name: array.reshape(-1) for name, array in OLD.items()}
    with pytest.raises(WrongReferenceError, match=r"^new\.safetensors, array 'weight': .*, got float32 \(6400,\)$"):
        load_file("new.safetensors", base=flat)


def test_a_base_that_is_written_anew_with_equal_arrays_serves() -> None:
    save_file(OLD, "old.safetensors", Lossless(speed="fast"), metadata={"note": "again"})
    check_same(load_file("newer.safetensors"), NEWER)
    save_file(load_file("new.safetensors"), "new.safetensors")  # a full file in place of the second one
    Path("old.safetensors").unlink()
    check_same(load_file("newer.safetensors"), NEWER)


def test_a_file_is_not_written_over_what_its_base_needs(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    Path("link.safetensors").symlink_to("old.safetensors")
    os.link("new.safetensors", "hard.safetensors")
    for path in ("old", "new", "link", "hard"):
        with pytest.raises(ValueError, match=rf"^{path}\.safetensors: expected another file than base and those"):
            save_file(NEWER, f"{path}.safetensors", base="new.safetensors")
    assert {name: Path(name).read_bytes() for name in before} == before
    save_file(NEW, "newer.safetensors", base="new.safetensors")  # nothing that it needs
    check_same(load_file("newer.safetensors"), NEW)


def test_a_circle_of_bases_is_refused() -> None:
    shutil.copy("newer.safetensors", "old.safetensors")
    for path in ("old", "new", "newer"):
        with pytest.raises(WrongReferenceError, match="expected a base that does not lead back to it, got "):
            load_file(f"{path}.safetensors")


def test_a_base_outside_of_the_folder_is_read_only_if_it_is_named(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    save_file(NEW, inner / "x.safetensors", base="old.safetensors")
    with pytest.raises(ValueError, match=r"x\.safetensors: expected a base in its folder, got '\.\./old\.safetensors'"):
        load_file(inner / "x.safetensors")
    check_same(load_file(inner / "x.safetensors", base="old.safetensors"), NEW)
    save_file(OLD, inner / "old.safetensors")
    save_file(NEW, "y.safetensors", base=inner / "old.safetensors")
    folder.rename(folder.with_name("renamed"))
    check_same(load_file(folder.with_name("renamed") / "y.safetensors"), NEW)


def test_a_base_of_other_arrays_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^base: expected an array of the same name, dtype and shape as one to save"):
        save_file({"x": OLD["weight"], "bias": OLD["bias"][1:]}, "x.safetensors", base="old.safetensors")
    np.save("old.npy", OLD["weight"])
    for tensors, path, base in (
        ({"x": OLD["weight"]}, "x.arrcomp", "old.safetensors"),
        ({"x": OLD["weight"], "y": OLD["bias"]}, "x.safetensors", "old.npy"),
    ):
        with pytest.raises(ValueError, match=r"^base: expected an array of the same name"):
            save_file(tensors, path, base=base)
    assert not Path("x.safetensors").exists()
    save_file({}, "x.safetensors", base="old.safetensors")


def test_a_compressed_array_needs_the_base_that_it_was_compressed_against() -> None:
    c = arrcomp.compress(NEW["weight"], reference=OLD["weight"])
    with pytest.raises(ValueError, match=r"base: expected the array that the Compressed 'weight' needs, got none$"):
        save_file({"weight": c}, "x.safetensors")
    for base in ("new.safetensors", {"weight": OLD["bias"]}):
        with pytest.raises(WrongReferenceError, match=r"^array 'weight': base: expected the array that the Compressed"):
            save_file({"weight": c}, "x.safetensors", base=base)
    save_file({"weight": c}, "x.safetensors", base="old.safetensors")
    checks.check_same_bits(load_file("x.safetensors")["weight"], NEW["weight"])


def test_a_compressed_array_gets_a_frame_beside_its_base() -> None:
    pytest.importorskip("zstandard")
    c = arrcomp.compress(NEW["weight"], reference=OLD["weight"])
    save_file({"weight": c}, "x.safetensors", base="old.safetensors", zstd_level=3)
    checks.check_same_bits(load_file("x.safetensors")["weight"], NEW["weight"])


def test_damaged_metadata_is_corrupt() -> None:
    tensors = safetensors_numpy.load_file("new.safetensors")
    about = {"format": "arrcomp", "version": "0.1"}
    for text in ("", "[]", '{"file": 3}', '{"file": "x", "fingerprint": 5}', '{"fingerprint": "x"}', "[" * 9999):
        safetensors_numpy.save_file(tensors, "x.safetensors", about | {"base": text})
        with pytest.raises(CorruptStreamError, match=r"^x\.safetensors: expected a file and its fingerprint as base"):
            open_file("x.safetensors")
    for name in ("/etc/x.npy", "../old.safetensors", "a\0"):
        safetensors_numpy.save_file(tensors, "x.safetensors", about | {"base": json.dumps({"file": name})})
        with pytest.raises(ValueError, match="expected a base in its folder"):
            load_file("x.safetensors")


def test_one_array_and_its_reference_are_in_memory_at_once() -> None:
    values, count = 1 << 18, 8
    source = {f"w{i}": np.random.default_rng(i).random(values, np.float32) for i in range(count)}
    save_file(source, "a.safetensors")
    save_file(source, "b.safetensors", base="a.safetensors")
    lazy = Lazy(source, lambda name: source[name].copy(), lambda name: (source[name].dtype, source[name].shape))  # type: ignore[arg-type,return-value]

    def peak(call: Any) -> int:
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    saving = peak(lambda: save_file(lazy, "c.safetensors", base="b.safetensors", threads=1))
    assert saving < 5 * 4 * values, saving
    with open_file("c.safetensors") as file:
        loading = peak(lambda: [file[name].shape for name in file])
    assert loading < 4 * 4 * values, loading


# Chains


def test_a_chain_has_a_full_file_every_so_often(folder: Path) -> None:
    chain = CheckpointChain(folder / "run", ErrorBounded(abs=1e-3), full_every=3)
    assert chain.steps() == []
    with pytest.raises(ValueError, match=r"run: expected a checkpoint, got none$"):
        chain.load()
    states = [OLD]
    for step in range(0, 70, 10):
        states.append(changed(states[-1], step))
        assert chain.save(states[-1], step, threads=1) == chain.path(step)
    assert chain.steps() == [0, 10, 20, 30, 40, 50, 60]
    full = [step for step in chain.steps() if open_file(chain.path(step)).base is None]
    assert full == [0, 30, 60]
    for step, state in zip(chain.steps(), states[1:], strict=True):
        checks.check_bound(state["weight"], chain.load(step)["weight"], ErrorBounded(abs=1e-3))
    assert chain.load(names=["steps"])["steps"] == states[-1]["steps"]
    with pytest.raises(ValueError, match=r"^step: expected an integer of at least 61, after the last .*, got 60"):
        chain.save(OLD, 60)
    with pytest.raises(ValueError, match=r"^step: expected one of \[0, 10, .*\] in .*run, got 15$"):
        chain.load(15)
    with pytest.raises(ValueError, match=r"^full_every: expected an integer from 1 "):
        CheckpointChain(folder, full_every=0)


def test_what_stays_of_a_chain_can_be_loaded(folder: Path) -> None:
    chain = CheckpointChain(folder / "run", full_every=2)
    states = [OLD]
    for step in range(7):
        states.append(changed(states[-1], step))
        chain.save(states[-1], step)
    assert chain.prune(4) == []
    assert chain.prune(2) == [0, 1, 2, 3]
    assert chain.rewind(5) == [6]
    assert chain.prune(1) == []  # of 4, which 5 needs
    for step in chain.steps():
        check_same(chain.load(step), states[step + 1])
    chain.save(OLD, 6)
    check_same(chain.load(), OLD)
    chain.path(5).unlink()
    with pytest.raises(ValueError, match=r"got 5$"):
        chain.load(5)
    with pytest.raises(ValueError, match=r"^keep: expected an integer from 1 "):
        chain.prune(0)
