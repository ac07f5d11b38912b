"""All-to-all of rows: what is refused, and, in three processes, what comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arrcomp import QSGD
from ordinary import then_full

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import arrcomp.torch.distributed as collectives

all_to_all: Any = collectives.all_to_all
all_to_all_autograd: Any = collectives.all_to_all_autograd


@pytest.mark.parametrize("checks", then_full(["eager"], ["compiled"]))
def test_three_processes_exchange_rows(checks: str, tmp_path: Path) -> None:
    program = str(Path(__file__).parent / "programs" / "all_to_all_processes.py")
    command = [sys.executable, program, str(tmp_path), checks]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert result.stdout.endswith("passed\n"), result.stdout + result.stderr


@pytest.fixture
def group() -> Any:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


X = torch.ones(4, 32)
WRONG = [
    (lambda: all_to_all([1.0], X), TypeError, r"output: expected a torch\.Tensor, got list"),
    (lambda: all_to_all(X, [1.0]), TypeError, r"input: expected a torch\.Tensor, got list"),
    (lambda: all_to_all(X.T, X), ValueError, "output: expected a C-contiguous tensor, got another layout"),
    (
        lambda: all_to_all(X.half(), X),
        ValueError,
        r"output: expected torch\.float32 on cpu, as input, got torch\.float16 on cpu",
    ),
    (
        lambda: all_to_all(torch.ones(4, 33), X),
        ValueError,
        r"output: expected rows of shape \(32,\), as input, got \(33,\)",
    ),
    (lambda: all_to_all(torch.tensor(1.0), X), ValueError, "output: expected a tensor with rows, got a scalar"),
    (lambda: all_to_all_autograd(torch.tensor(1.0)), ValueError, "input: expected a tensor with rows, got a scalar"),
    (
        lambda: all_to_all(X, X, None, [3]),
        ValueError,
        "output_split_sizes: expected a sum of 4, the rows of output, got 3",
    ),
    (
        lambda: all_to_all_autograd(X, None, [4], [5]),
        ValueError,
        "input_split_sizes: expected a sum of 4, the rows of input, got 5",
    ),
    (
        lambda: all_to_all(X, X, None, None, [2, 2]),
        ValueError,
        "input_split_sizes: expected 1 sizes, one for each rank, got 2",
    ),
    (
        lambda: all_to_all(X, X, None, None, [-4]),
        ValueError,
        r"input_split_sizes\[0\]: expected an integer from 0 to .*, got -4",
    ),
    (
        lambda: all_to_all(X, X, None, [4.0]),
        TypeError,
        r"output_split_sizes\[0\]: expected an integer from 0 to .*, got 4\.0 \(float\)",
    ),
    (
        lambda: all_to_all_autograd(X, None, [-4]),
        ValueError,
        r"output_split_sizes\[0\]: expected an integer from 0 to .*, got -4",
    ),
    (
        lambda: all_to_all_autograd(X, None, torch.tensor([4])),
        TypeError,
        r"output_split_sizes: expected a list or tuple of integers, or None, got torch\.Tensor",
    ),
    (
        lambda: all_to_all_autograd(X, None, backward_codec="qsgd"),
        TypeError,
        r"codec: expected a codec such as ErrorBounded\(abs=1e-4\), got 'qsgd' \(str\)",
    ),
    (
        lambda: all_to_all_autograd(X.long(), QSGD()),
        TypeError,
        "dtype: expected float16, bfloat16, float32, float64 for QSGD, got int64",
    ),
    (
        lambda: all_to_all_autograd(X, QSGD(), backward_codec=QSGD(rounding="stochastic")),
        TypeError,
        "seed: expected an integer, or a 0-dimensional integer array, for .*, got None",
    ),
]


@pytest.mark.parametrize(
    ("action", "error", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_wrong_arguments_are_refused(group: Any, action: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        action()


def test_one_process_codes_its_own_rows(group: Any) -> None:
    x = torch.randn(3, 16)
    all_to_all(out := torch.empty_like(x), x, QSGD(bits=2, bucket_size=16))
    assert 0 < (out - x).abs().max() <= 0.5001 * (x.amax() - x.amin()) / 3
    assert torch.equal(out, all_to_all_autograd(x, QSGD(bits=2, bucket_size=16)))
