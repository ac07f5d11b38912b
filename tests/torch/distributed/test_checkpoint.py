"""`torch.distributed.checkpoint` with arrcomp's planner and extension: shards come back, from smaller files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import arrcomp
from arrcomp import ErrorBounded, Rule

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")

from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

import arrcomp.torch
from arrcomp.torch.distributed import checkpoint as extension
from arrcomp.torch.distributed.checkpoint import DeltaReader, SavePlanner

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:ComplexHalf")

ERROR = 1e-3
BOUNDED = ErrorBounded(abs=ERROR)
SHAPES = {"model.layer.weight": (200, 300), "model.layer.bias": (300,), "step": (), "empty": (0, 3)}


def nested(fill: Any) -> dict[str, Any]:
    """A state as users have it: tensors by nested names, and what is no tensor."""
    tensors = {name: fill(shape) for name, shape in SHAPES.items()}
    return {
        "model": {"layer": {key: tensors[f"model.layer.{key}"] for key in ("weight", "bias")}},
        "others": [tensors["step"], tensors["empty"]],
        "transposed": fill((30, 40)).T,
        "epoch": 7,
    }


def saved(path: Path, planner: Any = None, **options: Any) -> dict[str, Any]:
    state = nested(torch.randn)
    writer = dcp.FileSystemWriter(path, **options)
    dcp.save(state, storage_writer=writer, planner=planner, no_dist=True)
    return state


def loaded(path: Path, registry: Any = None) -> dict[str, Any]:
    state = nested(torch.zeros) | {"epoch": 0}
    dcp.load(state, storage_reader=dcp.FileSystemReader(path, _extension_registry=registry), no_dist=True)
    return state


def check_same(actual: Any, expected: Any, bound: float = 0.0) -> None:
    flat, structure = torch.utils._pytree.tree_flatten(expected)
    found, same = torch.utils._pytree.tree_flatten(actual)
    assert same == structure
    for mine, theirs in zip(found, flat, strict=True):
        if isinstance(theirs, torch.Tensor):
            assert mine.shape == theirs.shape
            assert mine.numel() == 0 or (mine - theirs).abs().max() <= bound
        else:
            assert mine == theirs


def nbytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("*.distcp"))


PLAIN_NBYTES = 4 * (200 * 300 + 300 + 1 + 30 * 40)


# The planner


@pytest.mark.parametrize("options", [{}, {"thread_count": 2}, {"single_file_per_rank": False}], ids=str)
def test_every_writer_of_files_takes_compressed_tensors(tmp_path: Path, options: dict[str, Any]) -> None:
    state = saved(tmp_path, SavePlanner(), **options)
    check_same(loaded(tmp_path), state)
    state = saved(tmp_path / "bounded", SavePlanner(BOUNDED), **options)
    check_same(loaded(tmp_path / "bounded"), state, ERROR)
    assert nbytes(tmp_path / "bounded") < 0.5 * PLAIN_NBYTES


def test_rules_see_names_and_whole_shapes(tmp_path: Path) -> None:
    rules = [Rule(ErrorBounded(abs=10.0), "model.layer.weight", min_size=200 * 300, min_ndim=2)]
    state = saved(tmp_path, SavePlanner(rules))
    again = loaded(tmp_path)
    assert not again["model"]["layer"]["weight"].any(), "the bound is larger than all values"
    again["model"]["layer"]["weight"] = state["model"]["layer"]["weight"]
    check_same(again, state)


def test_a_seed_reaches_the_codec(tmp_path: Path) -> None:
    codec = arrcomp.QSGD(bits=8, rounding="stochastic")
    with pytest.raises(
        TypeError, match=r"seed: expected an integer, or a 0-dimensional integer array, for .*, got None"
    ):
        SavePlanner(codec)
    state = saved(tmp_path, SavePlanner(codec, seed=5))
    weight = state["model"]["layer"]["weight"]
    expected = arrcomp.decompress(arrcomp.compress(weight, codec, seed=5))
    assert torch.equal(loaded(tmp_path)["model"]["layer"]["weight"], expected)


def test_what_is_no_plain_tensor_is_left_to_pytorch(tmp_path: Path) -> None:
    z = torch.randn(20, dtype=torch.complex64)
    state = {"conjugated": z.conj(), "complex32": z.to(torch.complex32), "expanded": torch.ones(1).expand(1000)}
    dcp.save(state, checkpoint_id=tmp_path, planner=SavePlanner(), no_dist=True)
    again = {name: torch.zeros(x.shape, dtype=x.dtype) for name, x in state.items()}
    dcp.load(again, checkpoint_id=tmp_path, no_dist=True)
    for name, x in state.items():
        assert torch.equal(again[name].to(torch.complex64), x.to(torch.complex64))


def test_a_checkpoint_becomes_one_file_of_pytorch(tmp_path: Path) -> None:
    state = saved(tmp_path / "parts", SavePlanner())
    dcp_to_torch_save(tmp_path / "parts", tmp_path / "whole.pt")
    check_same(torch.load(tmp_path / "whole.pt", weights_only=True), state)


def test_writers_of_other_formats_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    kind = dcp.filesystem.SerializationFormat.SAFETENSORS
    with pytest.raises(CheckpointException, match="serialization_format: expected TORCH_SAVE"):
        saved(tmp_path, SavePlanner(), serialization_format=kind)


@pytest.mark.parametrize("kind", ["planner", "extension"])
def test_damage_is_found(tmp_path: Path, kind: str) -> None:
    options = {"_extensions": [extension.StreamCompression()]} if kind == "extension" else {}
    saved(tmp_path, SavePlanner() if kind == "planner" else None, **options)
    (path,) = tmp_path.glob("*.distcp")
    content = bytearray(path.read_bytes())
    content[content.find(b"ARRC") + 5000] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointException, match="CorruptStreamError: checksum: expected"):
        loaded(tmp_path, extension.extension_registry())


@pytest.mark.parametrize("kind", [SavePlanner, extension.StreamCompression])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"codec": "lossless"}, TypeError, r"codec: expected a codec, a list of Rule, or None, got 'lossless' \(str\)"),
        ({"threads": 0}, ValueError, "threads: expected an integer of at least 1, or None for all cores, got 0"),
        (
            {"codec": arrcomp.S2FP8(rounding="stochastic")},
            TypeError,
            r"seed: expected an integer, or a 0-dimensional integer array, for .*, got None",
        ),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(kind: Any, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kind(**arguments)


# Bases


def changed(state: dict[str, Any], row: int) -> dict[str, Any]:
    """A state with one row of its matrix changed."""
    weight = state["model"]["layer"]["weight"].clone()
    weight[row] += 1
    return state | {"model": {"layer": state["model"]["layer"] | {"weight": weight}}}


@pytest.fixture
def chain(tmp_path: Path) -> list[dict[str, Any]]:
    """The states of three checkpoints, "run/0" to "run/2", each with the one before as its base."""
    states = [saved(tmp_path / "run" / "0", SavePlanner())]
    for step in (1, 2):
        states.append(changed(states[-1], step))
        planner = SavePlanner(base=tmp_path / "run" / str(step - 1))
        writer = dcp.FileSystemWriter(tmp_path / "run" / str(step), thread_count=step)
        dcp.save(states[-1], storage_writer=writer, planner=planner, no_dist=True)
    return states


def loaded_by(reader: Any) -> dict[str, Any]:
    state = nested(torch.zeros) | {"epoch": 0}
    dcp.load(state, storage_reader=reader, no_dist=True)
    return state


def test_shards_are_coded_against_those_of_a_base(tmp_path: Path, chain: list[dict[str, Any]]) -> None:
    for step, state in enumerate(chain):
        check_same(loaded_by(DeltaReader(tmp_path / "run" / str(step))), state)
    assert nbytes(tmp_path / "run" / "1") < nbytes(tmp_path / "run" / "0") / 5
    check_same(loaded_by(DeltaReader(tmp_path / "run" / "1", base=tmp_path / "run" / "0")), chain[1])
    other = changed(chain[0], 3) | {"transposed": torch.ones(40, 31), "more": torch.ones(3)}
    planner = SavePlanner([Rule(arrcomp.BaseDelta(), "model.*")], base=tmp_path / "run" / "0")
    dcp.save(other, checkpoint_id=tmp_path / "run" / "x", planner=planner, no_dist=True)
    again = {name: torch.zeros_like(other[name]) for name in ("transposed", "more")}
    dcp.load(again, storage_reader=DeltaReader(tmp_path / "run" / "x"), no_dist=True)
    assert torch.equal(again["transposed"], other["transposed"])


def test_another_base_of_a_checkpoint_is_refused(tmp_path: Path, chain: list[dict[str, Any]]) -> None:
    run = tmp_path / "run"
    for call, message in (
        (lambda: loaded(run / "2"), "base: expected arrcomp.torch.load or .*DeltaReader"),
        (lambda: loaded_by(DeltaReader(run / "2", base=run / "0")), "coded against in .*run/0, got another"),
        (lambda: loaded_by(DeltaReader(run / "1", base=run / "1")), "a base that does not lead back to it"),
        (lambda: saved(run / "1", SavePlanner(base=run / "1")), "expected another folder than base, got the same"),
    ):
        with pytest.raises(CheckpointException, match=message):
            call()
    with pytest.raises(FileNotFoundError):
        SavePlanner(base=run / "none")
    with pytest.raises(TypeError, match=r"^base: expected the path of a checkpoint's folder, got 3 \(int\)$"):
        DeltaReader(run / "1", base=3)  # type: ignore[arg-type]
    (run / "0").rename(tmp_path / "moved")
    with pytest.raises(CheckpointException, match=r"expected the base of .*run/1, got no such checkpoint"):
        loaded_by(DeltaReader(run / "2"))
    check_same(loaded_by(DeltaReader(run / "1", base=tmp_path / "moved")), chain[1])


# The extension


def test_the_extension_compresses_for_other_planners(tmp_path: Path) -> None:
    state = saved(tmp_path / "lossless", _extensions=[extension.StreamCompression()])
    check_same(loaded(tmp_path / "lossless", extension.extension_registry()), state)
    assert nbytes(tmp_path / "lossless") < 0.95 * PLAIN_NBYTES
    state = saved(tmp_path / "bounded", _extensions=[extension.StreamCompression(BOUNDED)])
    check_same(loaded(tmp_path / "bounded", extension.extension_registry()), state, ERROR)
    assert nbytes(tmp_path / "bounded") < 0.5 * PLAIN_NBYTES


def test_extensions_stand_behind_each_other(tmp_path: Path) -> None:
    zstandard = dcp._extension.ZStandard
    if not zstandard.is_available():
        pytest.skip("zstandard is not installed")
    state = saved(tmp_path, _extensions=[zstandard(), extension.StreamCompression()])
    check_same(loaded(tmp_path, extension.extension_registry()), state)


def test_a_reader_without_the_extension_says_so(tmp_path: Path) -> None:
    saved(tmp_path, _extensions=[extension.StreamCompression()])
    with pytest.raises(CheckpointException, match=r"Unknown extension name='stream\.arrcomp'"):
        loaded(tmp_path)
    assert extension.StreamCompression.from_descriptor("1.5").get_descriptor() == "stream.arrcomp/1"
    with pytest.raises(ValueError, match=r"version of stream\.arrcomp: expected '1', got '2'"):
        extension.StreamCompression.from_descriptor("2")


@pytest.mark.parametrize("content", [b"", b"PK\3\4 no archive", b"text", json.dumps({"a": 1}).encode()], ids=repr)
def test_other_bytes_pass_unchanged(tmp_path: Path, content: bytes) -> None:
    with (tmp_path / "x").open("wb") as file:
        item = extension.StreamCompression().transform_to(file)
        item.write(content)
        item.close()
        item.close()
    assert (tmp_path / "x").read_bytes() == content


# Several processes


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
@pytest.mark.full
def test_two_processes_save_and_load_and_one_loads_what_two_saved(tmp_path: Path) -> None:
    program = Path(__file__).parent / "programs" / "two_processes.py"
    command = [sys.executable, str(program), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert result.stdout.endswith("passed\n"), result.stdout + result.stderr
    expected = torch.load(tmp_path / "expected.pt", weights_only=True)
    for kind, bound in (("lossless", 0.0), ("bounded", 1e-3)):
        state = {"model": {name: torch.zeros_like(x) for name, x in expected.items()}}
        dcp.load(state, checkpoint_id=tmp_path / kind, no_dist=True)
        check_same(state["model"], dict(expected), bound)
    assert nbytes(tmp_path / "bounded") < nbytes(tmp_path / "lossless")
    state = {"model": {name: torch.zeros_like(x) for name, x in expected.items()}}
    dcp.load(state, storage_reader=DeltaReader(tmp_path / "delta"), no_dist=True)
    check_same(state["model"], dict(expected))
    assert nbytes(tmp_path / "delta") < nbytes(tmp_path / "lossless") / 2  # the rest is PyTorch's own
