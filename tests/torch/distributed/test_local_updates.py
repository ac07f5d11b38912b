"""Outer steps of local-update training: what is refused, and what one process and two make of them."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arrcomp import QSGD, Lossless

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import arrcomp.torch.distributed as collectives

LocalUpdates: Any = collectives.LocalUpdates


@pytest.mark.full
def test_two_processes_train_alone(tmp_path: Path) -> None:
    program = str(Path(__file__).parent / "programs" / "local_updates_processes.py")
    result = subprocess.run(
        [sys.executable, program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=500
    )
    assert result.stdout.endswith("passed\n"), result.stdout + result.stderr


@pytest.fixture
def group() -> Iterator[Any]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def outer(*parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.5, momentum=0.9, nesterov=True)


def test_the_outer_optimizer_steps_from_the_last_outer_step(group: Any) -> None:
    x = torch.nn.Parameter(torch.randn(3, 4))
    y = copy.deepcopy(x)
    updates, optimizer = LocalUpdates(outer(x), QSGD()), outer(y)
    x.grad = before = torch.ones(3, 4)
    for _ in range(3):
        change = torch.randn(3, 4)
        x.data += change
        updates.step()
        y.grad = -change
        optimizer.step()
        torch.testing.assert_close(x, y)
    assert x.grad is before
    assert updates.steps == 3
    assert updates.sent_nbytes == 0


def test_parameters_that_the_optimizer_got_later_are_refused(group: Any) -> None:
    optimizer = outer(torch.nn.Parameter(torch.ones(3)))
    updates = LocalUpdates(optimizer)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))]})
    with pytest.raises(ValueError, match="outer_optimizer: expected the 1 parameters that it had at first, got others"):
        updates.step()


X = torch.nn.Parameter(torch.ones(4, 8))
META = torch.nn.Parameter(torch.ones(2, device="meta"))
WRONG = [
    (lambda: LocalUpdates([X]), TypeError, r"outer_optimizer: expected a torch\.optim\.Optimizer, got list"),
    (lambda: LocalUpdates(outer(X), "qsgd"), TypeError, "codec: expected a codec such as"),
    (lambda: LocalUpdates(outer(X), error_feedback=1), TypeError, "error_feedback: expected True or False, got 1"),
    (lambda: LocalUpdates(outer(X), check_finite=None), TypeError, "check_finite: expected True or False, got None"),
    (lambda: LocalUpdates(outer(X), seed=-1), ValueError, "seed: expected an integer from 0 to .*, got -1"),
    (lambda: LocalUpdates(outer(X), threads=0), ValueError, "threads: expected an integer of at least 1"),
    (lambda: LocalUpdates(outer(X), QSGD(bits=1)), ValueError, "bits: expected at least 2 with error_feedback=True"),
    (
        lambda: LocalUpdates(outer(META)),
        TypeError,
        r"parameters\[0\]: expected a tensor on the CPU or on CUDA, got one on meta",
    ),
]


@pytest.mark.parametrize(
    ("action", "error", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_wrong_arguments_are_refused(group: Any, action: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        action()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (None, TypeError, r"state_dict: expected a mapping with steps, .*, got NoneType"),
        ({"step": 1}, TypeError, r"state_dict: expected a mapping with steps, .*, got \['steps'"),
        ({"steps": -1}, ValueError, r"state_dict\['steps'\]: expected an integer from 0 to .*, got -1"),
        ({"parameters": 5}, TypeError, r"state_dict\['parameters'\]: expected a list of tensors, got int"),
        (
            {"parameters": [torch.ones(4, 9)]},
            ValueError,
            r"state_dict\['parameters'\]: expected shapes \[\[4, 8\]\], got \[\[4, 9\]\]",
        ),
        ({"residuals": []}, ValueError, r"state_dict\['sum_residuals'\]: expected shapes \[\], got \[\[32\]\]"),
        ({"sum_residuals": []}, ValueError, r"state_dict\['sum_residuals'\]: expected shapes \[\[32\]\], got \[\]"),
    ],
)
def test_states_of_something_else_are_refused(group: Any, change: Any, error: type[Exception], message: str) -> None:
    updates = LocalUpdates(outer(X))
    updates.step()
    state = updates.state_dict() | change if change is not None else None
    with pytest.raises(error, match=message):
        updates.load_state_dict(state)
    assert updates.steps == 1


def test_residuals_need_error_feedback(group: Any) -> None:
    state = LocalUpdates(outer(X)).state_dict() | {"residuals": [torch.ones(4, 8)]}
    with pytest.raises(ValueError, match=r"state_dict\['residuals'\]: expected none without error_feedback=True"):
        LocalUpdates(outer(X), Lossless(), error_feedback=False).load_state_dict(state)
