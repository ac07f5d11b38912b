"""`arrcomp.torch.distributed`: real processes on this machine, whose sums are compared with plain ones."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arrcomp import QSGD, S2FP8, ErrorBounded, FloatFormat
from arrcomp._methods.seeds import derived
from arrcomp._methods.shards import Shards, split
from ordinary import then_slow

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import arrcomp
import arrcomp.torch.distributed as collectives


def output_of(program: str, folder: Path, *arguments: str) -> str:
    """What one of the programs prints, which starts several processes."""
    command = [sys.executable, str(Path(__file__).parent / "programs" / program), str(folder), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("most", then_slow(["2"], ["4"], ["8"]))
def test_groups_of_one_to_some_processes(most: str, tmp_path: Path) -> None:
    assert output_of("collectives.py", tmp_path, most).endswith("passed\n")


def test_what_is_wrong_with_one_process_is_an_error_on_all(tmp_path: Path) -> None:
    text = output_of("failures.py", tmp_path)
    assert "rank 0 survived" in text
    assert "rank 2 survived" in text


# Arguments, in a group of one process


@pytest.fixture
def group(tmp_path: Path) -> Any:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


X = torch.ones(10)
STOCHASTIC = QSGD(rounding="stochastic")
SUM, AVG, MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX
WRONG = [
    (lambda: collectives.all_reduce([1.0]), TypeError, r"tensor: expected a torch\.Tensor, got list"),  # type: ignore[arg-type]
    (
        lambda: collectives.all_reduce(X, "qsgd"),  # type: ignore[arg-type]
        TypeError,
        r"codec: expected a codec such as ErrorBounded\(abs=1e-4\), got 'qsgd' \(str\)",
    ),
    (
        lambda: collectives.all_reduce(torch.ones(3, dtype=torch.int32), QSGD()),
        TypeError,
        "dtype: expected float16, bfloat16, float32, float64 for QSGD, got int32",
    ),
    (
        lambda: collectives.all_reduce(torch.ones(3, dtype=torch.complex64)),
        TypeError,
        "tensor: expected one of float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8,",
    ),
    (
        lambda: collectives.all_reduce(torch.ones(3, dtype=torch.int32), op=AVG),
        ValueError,
        "op: expected SUM, MAX or MIN for int32, got AVG",
    ),
    (
        lambda: collectives.all_reduce(X, op=dist.ReduceOp.PRODUCT),
        ValueError,
        r"op: expected one of SUM, AVG, MAX, MIN, got RedOpType\.PRODUCT",
    ),
    (
        lambda: collectives.all_reduce(X, STOCHASTIC, MAX, seed=1),
        ValueError,
        r"op: expected SUM or AVG, got MAX, which stochastic rounding of QSGD\(bits=4, rounding='stochastic'\)",
    ),
    (
        lambda: collectives.all_reduce(X, STOCHASTIC),
        TypeError,
        r"seed: expected an integer, or a 0-dimensional integer array, for .*, got None",
    ),
    (
        lambda: collectives.all_reduce(X, STOCHASTIC, seed=torch.tensor(1)),
        TypeError,
        r"seed: expected an integer, got torch\.Tensor",
    ),
    (
        lambda: collectives.all_reduce(X, STOCHASTIC, seed=-1),
        ValueError,
        "seed: expected an integer from 0 to .*, got -1",
    ),
    (
        lambda: collectives.all_reduce(X, threads=0),
        ValueError,
        "threads: expected an integer of at least 1, or None for all cores, got 0",
    ),
    (
        lambda: collectives.all_reduce(X, algorithm="tree"),  # type: ignore[arg-type]
        ValueError,
        "algorithm: expected 'scatter' or 'ring', got 'tree'",
    ),
    (
        lambda: collectives.all_reduce(X.to("meta")),
        TypeError,
        "tensor: expected a tensor on the CPU or on CUDA, got one on meta",
    ),
    (lambda: collectives.all_reduce(X.to_sparse()), TypeError, "tensor is sparse|layout"),
    (lambda: collectives.all_reduce(torch.full((3,), torch.inf), check_finite=True), ValueError, r"ranks \[0\]"),
    (
        lambda: collectives.all_reduce_coalesced(X),
        TypeError,
        r"tensors: expected a list or tuple of tensors, got torch\.Tensor",
    ),
    (lambda: collectives.all_reduce_coalesced([]), ValueError, "tensors: expected at least one, got none"),
    (
        lambda: collectives.all_reduce_coalesced([X, X], [QSGD()]),
        ValueError,
        "codecs: expected one codec, or one for each of 2 tensors, got 1",
    ),
    (
        lambda: collectives.reduce_scatter(X, torch.ones(11)),
        ValueError,
        r"input: expected 10 elements \(1 times those of output\), got 11",
    ),
    (
        lambda: collectives.reduce_scatter(X, X.half()),
        ValueError,
        r"input: expected torch\.float32 on cpu, as output, got torch\.float16 on cpu",
    ),
    (
        lambda: collectives.reduce_scatter(torch.ones(20)[::2], X),
        ValueError,
        "output: expected a C-contiguous tensor, got another layout",
    ),
    (
        lambda: collectives.all_gather(X, torch.ones(3)),
        ValueError,
        r"output: expected 3 elements \(1 times those of input\), got 10",
    ),
    (lambda: collectives.broadcast(X, src=3), ValueError, r"src: expected a rank of the group, one of \[0\], got 3"),
    (lambda: collectives.broadcast(X, src="0"), TypeError, r"src: expected an integer, got '0' \(str\)"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(
    ("action", "error", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_wrong_arguments_are_refused(group: Any, action: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        action()


def test_without_a_group_the_error_says_what_to_call() -> None:
    with pytest.raises(RuntimeError, match="init_process_group"):
        collectives.all_reduce(X)


def test_a_tensor_that_requires_a_gradient_is_changed_in_place(group: Any) -> None:
    x = torch.ones(10, requires_grad=True)
    collectives.broadcast(x, ErrorBounded(abs=0.1))
    assert (x.detach() - 1).abs().max() <= 0.1
    assert x.grad_fn is None


# What all processes calculate for themselves


def test_pieces_cover_all_arrays_and_are_cut_at_buckets() -> None:
    rng = random.Random(0)  # noqa: S311 - not for secrets
    for _ in range(3000):
        world, arrays = rng.randint(1, 8), rng.randint(1, 5)
        counts = [rng.choice([0, 1, 5, 100, 1000, 5000]) for _ in range(arrays)]
        multiples = [rng.choice([1, 32, 100, 512]) for _ in counts]
        shares = split(counts, multiples, world)
        assert len(shares) == world
        ends = [0] * arrays
        for piece in (piece for share in shares for piece in share):
            assert piece.first == ends[piece.array]
            assert piece.elements > 0
            assert piece.end % multiples[piece.array] == 0 or piece.end == counts[piece.array]
            ends[piece.array] = piece.end
        assert ends == counts
        assert max(sum(p.elements for p in share) for share in shares) <= sum(counts) / world + 2 * max(multiples) + 1


def test_shards_cover_an_array() -> None:
    for elements in (0, 1, 511, 512, 513, 10_000):
        for world in range(1, 9):
            shards = Shards.of(elements, world, 512)
            bounds = [shards.bounds(rank) for rank in range(world)]
            assert [first for first, _ in bounds] == [0, *[end for _, end in bounds[:-1]]]
            assert bounds[-1][1] == elements
            assert sum(shards.length(rank) for rank in range(world)) == elements


def test_derived_seeds_differ() -> None:
    seeds = {derived(seed, a, b) for seed in range(20) for a in range(20) for b in range(20)}
    assert len(seeds) == 8000
    assert all(0 <= seed < 1 << 64 for seed in seeds)
    assert derived(7) == 7


# Their numbers are not of all of an array.
LOCAL = [
    codec
    for kind in arrcomp.available_codecs().values()
    for codec in kind.examples()
    if not (codec in (S2FP8(), FloatFormat("nvfp4")) or (isinstance(codec, ErrorBounded) and codec.rel is not None))
]


@pytest.mark.parametrize("codec", LOCAL, ids=repr)
def test_a_codec_says_where_arrays_can_be_cut(codec: arrcomp.Codec) -> None:
    x = torch.randn(4096 * 6, generator=torch.Generator().manual_seed(0))
    at = 3 * codec.granularity
    parts = [arrcomp.decompress(arrcomp.compress(part, codec)) for part in (x[:at], x[at:])]
    assert torch.equal(torch.cat(parts), arrcomp.decompress(arrcomp.compress(x, codec)))
