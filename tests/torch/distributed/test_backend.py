"""The backend "arrcomp" of torch.distributed, all-reduce in two levels, FSDP2: settings, and programs of processes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrcomp import QSGD, ErrorBounded, Lossless
from ordinary import then_full

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import arrcomp.torch.distributed as compressed
from arrcomp.torch.distributed import BackendOptions, options_from_environment
from arrcomp.torch.distributed._backend import environment
from arrcomp.torch.distributed._backend import group as backend_group
from arrcomp.torch.distributed._backend.layers import Layers
from arrcomp.torch.distributed._backend.segments import Segment, fused, segments
from arrcomp.torch.distributed.fsdp import QuantizedAllGather, QuantizedReduceScatter, compress_fsdp

STOCHASTIC = QSGD(rounding="stochastic")


@pytest.fixture
def group() -> Iterator[Any]:
    """The default group, of one process."""
    dist.init_process_group("arrcomp", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


# Several processes


@pytest.mark.parametrize("name", then_full(["backend"], ["hierarchy", "fsdp"]))
def test_processes(name: str, tmp_path: Path) -> None:
    program = Path(__file__).parent / "programs" / f"{name}_processes.py"
    command = [sys.executable, str(program), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert result.stdout.endswith("passed\n"), result.stdout + result.stderr


# The group


def test_what_python_may_override_is_overridden() -> None:
    """PyTorch would do it holding the interpreter's lock, and wait for ever."""
    header = Path(torch.__file__).parent / "include/torch/csrc/distributed/c10d/PyProcessGroup.hpp"
    if not header.exists():
        pytest.skip("this PyTorch came without its headers")
    source = header.read_text()
    old = re.findall(r"WORK_OVERRIDE\(\s*(?://[^\n]*\n\s*)?ProcessGroup,[^\n]*\n\s*(\w+)", source)
    new = re.findall(r'static_cast<const ProcessGroup\*>\(this\),\s*"(\w+)"', source)
    assert len(old) > 5
    assert {"allreduce", "broadcast"} <= set(old)
    for name in [*old, *new]:
        assert name in vars(compressed.CompressingGroup.__base__), name


def test_a_group_of_one_process_changes_nothing(group: Any) -> None:
    compressed.configure(codec=QSGD(bits=1), minimal_size=0)
    x = torch.randn(1000)
    dist.all_reduce(y := x.clone())
    assert torch.equal(x, y)
    assert dist.get_backend(group) == "arrcomp"


def test_options_are_of_the_backend() -> None:
    with pytest.raises(TypeError, match=r"pg_options: expected a BackendOptions, got 5 \(int\)"):
        dist.init_process_group("arrcomp", store=dist.HashStore(), rank=0, world_size=1, pg_options=5)
    assert not dist.is_initialized()


def test_processes_with_other_options_are_refused() -> None:
    store = dist.HashStore()
    backend_group._compare(BackendOptions(QSGD(), threads=1), store, 0)
    backend_group._compare(BackendOptions(QSGD(), threads=2), store, 1)
    with pytest.raises(
        ValueError, match=r"pg_options: expected rank 0's \{'codec': .*'bits': 4.*, got \{'codec': .*'bits': 3"
    ):
        backend_group._compare(BackendOptions(QSGD(bits=3)), store, 1)


def test_settings_are_for_groups_of_the_backend(group: Any) -> None:
    assert compressed.configure() == options_from_environment({})
    assert compressed.configure(codec=QSGD(bits=3)).codec == QSGD(bits=3)
    with pytest.raises(ValueError, match="changes: expected options that can change, got backends"):
        compressed.configure(backends="cpu:gloo")
    with pytest.raises(ValueError, match="local_size: expected a divisor of the group's size 1, got 2"):
        compressed.configure(local_size=2)
    with pytest.raises(TypeError, match="bits"):
        compressed.configure(bits=4)
    with pytest.raises(KeyError, match=r"'layer: expected a registered \(bucket, layer\) of \[\], got \(0, 1\)'"):
        compressed.set_quantization_bits(0, 1, 4)
    for name in ("gloo", "arrcomp"):
        with pytest.raises(
            TypeError, match=f"group: expected one of the backend arrcomp with options, got backend {name}"
        ):
            compressed.register_layer(0, 0, 10, 4, group=dist.new_group([0], backend=name))


def test_settings_need_a_group() -> None:
    with pytest.raises(RuntimeError, match="not initialized"):
        compressed.register_layer(0, 0, 10, 4)


def test_hierarchies_need_the_size_of_a_node(group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    with pytest.raises(
        ValueError,
        match="local_size: expected an integer, got None, and LOCAL_WORLD_SIZE and OMPI_COMM_WORLD_LOCAL_SIZE",
    ):
        compressed.Hierarchy.of()


# Options


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"codec": "qsgd"}, TypeError, "codec"),
        ({"layer_codec": Lossless()}, TypeError, "layer_codec"),
        ({"minimal_size": -1}, ValueError, "minimal_size: expected an integer from 0 to .*, got -1"),
        ({"minimal_size": 1.5}, TypeError, r"minimal_size: expected an integer from 0 to .*, got 1\.5 \(float\)"),
        ({"fusion_nbytes": 0}, ValueError, "fusion_nbytes: expected an integer from 1 to .*, got 0"),
        ({"local_size": 0}, ValueError, "local_size: expected an integer from 1 to .*, got 0"),
        ({"algorithm": "tree"}, ValueError, "algorithm: expected 'scatter' or 'ring', got 'tree'"),
        ({"seed": -1}, ValueError, "seed: expected an integer from 0 to .*, got -1"),
        ({"threads": 0}, ValueError, "threads: expected an integer of at least 1, or None for all cores, got 0"),
        ({"fake_ratio": 0.0}, ValueError, r"fake_ratio: expected a number above 0 and at most 1, got 0\.0"),
        ({"fake_ratio": 1.5}, ValueError, r"fake_ratio: expected a number above 0 and at most 1, got 1\.5"),
        (
            {"backends": 5},
            TypeError,
            r"backends: expected pairs of a device and a backend \(gloo, nccl, mpi\), such as",
        ),
        (
            {"backends": "gloo"},
            ValueError,
            r"backends: expected pairs of a device and a backend \(gloo, nccl, mpi\), such as",
        ),
        (
            {"backends": "cpu:nccl"},
            ValueError,
            r"backends: expected pairs of a device and a backend \(gloo, nccl, mpi\), such as",
        ),
        ({"backends": "cpu:gloo,cpu:gloo"}, ValueError, "one backend for each device"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BackendOptions(**arguments)


@pytest.mark.skipif(dist.is_mpi_available(), reason="this PyTorch has MPI")
def test_backends_that_pytorch_lacks_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"backends: expected backends that PyTorch was built with \(mpi is not one\), got 'cpu:mpi'"
    ):
        BackendOptions(backends="cpu:mpi")


def test_without_variables_nothing_is_compressed() -> None:
    options = options_from_environment({})
    assert options == BackendOptions(minimal_size=16)
    assert environment.without_effect({"PATH": "/bin"}) == []


def test_the_variables_of_cgx() -> None:
    values = {"QUANTIZATION_BITS": 4, "BUCKET_SIZE": 1024, "MINIMAL_SIZE": 32, "FAKE_RATIO": 0.5}
    variables = {f"CGX_COMPRESSION_{name}": str(value) for name, value in values.items()}
    variables |= {"CGX_COMPRESSION_SKIP_INCOMPLETE_BUCKETS": "1", "CGX_FUSION_BUFFER_SIZE_MB": "2"}
    variables |= {"CGX_INTRA_COMPRESS": "0", "LOCAL_WORLD_SIZE": "8", "CGX_INNER_REDUCTION_TYPE": "SRA"}
    variables |= {"CGX_CROSS_REDUCTION_TYPE": "Ring"}
    assert options_from_environment(variables) == BackendOptions(
        QSGD(bits=4, bucket_size=1024, skip_incomplete=True),
        minimal_size=32,
        layer_codec=QSGD(bucket_size=1024, skip_incomplete=True),
        fusion_nbytes=2 << 20,
        algorithm="ring",
        local_size=8,
        fake_ratio=0.5,
    )
    assert environment.without_effect(variables) == []
    assert options_from_environment(variables | {"CGX_INTRA_COMPRESS": "1"}).algorithm == "scatter"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CGX_COMPRESSION_QUANTIZATION_BITS", "0"),
        ("CGX_COMPRESSION_QUANTIZATION_BITS", "four"),
        ("CGX_COMPRESSION_BUCKET_SIZE", "8"),
        ("CGX_COMPRESSION_SKIP_INCOMPLETE_BUCKETS", "2"),
        ("CGX_COMPRESSION_FAKE_RATIO", "0"),
        ("CGX_COMPRESSION_FAKE_RATIO", "half"),
        ("CGX_FUSION_BUFFER_SIZE_MB", "-1"),
        ("CGX_INTRA_COMPRESS", ""),
        ("CGX_INNER_REDUCTION_TYPE", "Tree"),
    ],
)
def test_variables_with_wrong_values_are_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected .*, got .?{value}"):
        options_from_environment({name: value})
    with pytest.raises(
        ValueError,
        match="local_size: expected an integer, got None, and LOCAL_WORLD_SIZE and OMPI_COMM_WORLD_LOCAL_SIZE",
    ):
        options_from_environment({"CGX_INTRA_COMPRESS": "0"})


def test_variables_without_use_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGX_INNER_COMMUNICATOR_TYPE", "SHM")
    monkeypatch.setenv("CGX_INTRA_BROADCAST", "1")
    monkeypatch.setenv("CGX_COMPRESION_BITS", "4")
    with pytest.warns(UserWarning, match="^without effect: ") as found:
        options = backend_group._chosen(None, is_first=True)
    (message,) = [str(warning.message) for warning in found]
    for name in ("CGX_INNER_COMMUNICATOR_TYPE (", "CGX_INTRA_BROADCAST (", "CGX_COMPRESION_BITS (CGX has no such"):
        assert name in message
    assert options.codec is None
    backend_group._chosen(None, is_first=False)
    with pytest.warns(UserWarning, match="results are wrong"):
        backend_group._chosen(BackendOptions(fake_ratio=0.5), is_first=True)


# Layers and exchanges


def test_buckets_are_known_by_their_sizes_and_take_turns() -> None:
    layers = Layers()
    for bucket, sizes in enumerate([(60, 40), (100,), (70,)]):
        for layer, size in enumerate(sizes):
            layers.register(bucket, layer, size, 4, 64)
    assert layers.of(99) is None
    assert [[layer.elements for layer in layers.of(100) or []] for _ in range(3)] == [[60, 40], [100], [60, 40]]
    layers.set_bits(0, 1, 32)
    layers.set_bucket_size(0, 0, 1024)
    layers.of(100)
    assert layers.of(100) == [(60, 4, 1024), (40, 32, 64)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, 0, 10, 4, 64), ValueError),
        ((0, "a", 10, 4, 64), TypeError),
        ((0, 0, -1, 4, 64), ValueError),
        ((0, 0, 10, 0, 64), ValueError),
        ((0, 0, 10, 4, 8), ValueError),
    ],
)
def test_wrong_layers_are_refused(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Layers().register(*arguments)


def test_segments_are_compressed_as_options_and_layers_say() -> None:
    layers = Layers()
    for number, (size, bits) in enumerate([(2000, 2), (300, 32), (99, 2), (601, 8)]):
        layers.register(0, number, size, bits, 64)
    options = BackendOptions(QSGD(bits=4), minimal_size=100, layer_codec=QSGD(skip_incomplete=True))
    codecs = [segment.codec for segment in segments([torch.zeros(3000)], options, layers)]
    layer: dict[str, Any] = {"bucket_size": 64, "skip_incomplete": True}
    assert codecs == [QSGD(bits=2, **layer), None, None, QSGD(bits=8, **layer)]
    tensors = [torch.zeros(2999), torch.zeros(99), torch.zeros(3000, dtype=torch.int32)]
    assert [segment.codec for segment in segments(tensors, options, layers)] == [QSGD(bits=4), None, None]


@given(
    sizes=st.lists(st.integers(0, 3000), max_size=5),
    nbytes=st.integers(1, 20_000),
    dtype=st.sampled_from([torch.float16, torch.float64]),
)
def test_exchanges_hold_every_element_once_and_no_more_than_they_may(sizes: list[int], nbytes: int, dtype: Any) -> None:
    codec = QSGD(bucket_size=64)
    tensors = [torch.zeros(size, dtype=dtype) for size in sizes]
    batches = list(fused([Segment(x, codec) for x in tensors], nbytes))
    for batch in batches:
        assert sum(x.nbytes for x, _ in batch) <= nbytes or (len(batch) == 1 and batch[0].values.numel() <= 64)
        for x, _ in batch:
            assert x.storage_offset() % 64 == 0
            x += 1
    assert all((x == 1).all() for x in tensors)


# FSDP2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: QuantizedReduceScatter("qsgd"), TypeError, "codec"),  # type: ignore[arg-type]
        (
            lambda: QuantizedReduceScatter(QSGD(), min_size=-1),
            ValueError,
            "min_size: expected an integer from 0 to .*, got -1",
        ),
        (lambda: QuantizedReduceScatter(QSGD(), seed=-1), ValueError, "seed: expected an integer from 0 to .*, got -1"),
        (
            lambda: QuantizedReduceScatter(QSGD(), threads=0),
            ValueError,
            "threads: expected an integer of at least 1, or None for all cores, got 0",
        ),
        (
            lambda: QuantizedAllGather(STOCHASTIC),
            ValueError,
            "reduce_scatter: expected the module's QuantizedReduceScatter for stochastic rounding by",
        ),
        (
            lambda: QuantizedAllGather(QSGD(), reduce_scatter=3),  # type: ignore[arg-type]
            TypeError,
            r"reduce_scatter: expected a QuantizedReduceScatter, got 3 \(int\)",
        ),
        (lambda: compress_fsdp(3), TypeError, r"model: expected a torch\.nn\.Module, got 3 \(int\)"),  # type: ignore[arg-type]
        (lambda: compress_fsdp(torch.nn.Linear(3, 3), all_gather=ErrorBounded(abs=1.0)), ValueError, "fully_shard"),
    ],
)
def test_wrong_arguments_of_fsdp_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
