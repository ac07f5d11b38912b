"""A process group for torchft: what is refused, and, with two replicas, what comes back.

The program of two replicas runs with the interface as it stands in the sources of torchft 0.2.0, written again in
`programs/torchft_interface.py`; and with torchft itself, its Manager and DiLoCo too, where it is installed, which the
extras of this package do not do. It was, with 0.2.0 on a computer without a GPU.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arrcomp import QSGD

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import arrcomp.torch.distributed.torchft as arrcomp_torchft

PROGRAMS = Path(__file__).parent / "programs"
compressing_process_group: Any = arrcomp_torchft.compressing_process_group


@pytest.mark.full
@pytest.mark.parametrize("kind", ["interface", "package"])
def test_two_replicas_reduce(kind: str, tmp_path: Path) -> None:
    if kind == "package":
        pytest.importorskip("torchft")
    command = [sys.executable, str(PROGRAMS / "torchft_processes.py"), str(tmp_path), kind]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert result.stdout.endswith("passed\n"), result.stdout + result.stderr


@pytest.fixture
def pg(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PROGRAMS))
    import torchft_interface

    for name in ("torchft", "torchft.process_group"):
        monkeypatch.setitem(sys.modules, name, None)
    torchft_interface.install()
    return torchft_interface.ProcessGroupGloo()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"pg": None},
            TypeError,
            r"pg: expected a process group of torchft, such as ProcessGroupGloo\(\), got None",
        ),
        ({"codec": "qsgd"}, TypeError, "codec: expected a codec such as"),
        ({"minimal_size": -1}, ValueError, "minimal_size: expected an integer from 0 to .*, got -1"),
        ({"error_feedback_calls": 0}, ValueError, "error_feedback_calls: expected an integer from 1 to .*, got 0"),
        (
            {"codec": QSGD(bits=1), "error_feedback_calls": 3},
            ValueError,
            "bits: expected at least 2 with error_feedback_calls, got 1",
        ),
        ({"seed": -1}, ValueError, "seed: expected an integer from 0 to .*, got -1"),
        ({"threads": 0}, ValueError, "threads: expected an integer of at least 1"),
    ],
)
def test_wrong_arguments_are_refused(pg: Any, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compressing_process_group(**{"pg": pg} | arguments)


def test_without_torchft_the_import_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torchft", "torchft.process_group"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="torchft"):
        compressing_process_group(None)
