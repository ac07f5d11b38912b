"""Ctrl-C ends long calls at once, and a signal whose handler returns changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ordinary import then_full

pytest.importorskip("zstandard")  # some cases have frames

PROGRAM = Path(__file__).with_name("interrupted_calls.py")
MOST_SECONDS = 10.0  # a second on an idle machine
TIMEOUT = 300  # seconds; a case takes 5

Run = Callable[[str], dict[str, Any]]
CALLS = then_full(
    ["compress, 2 threads", "decompress, buckets"],
    [
        *("compress", "compress, base-delta", "decompress", "decompress, 2 threads"),
        *("compress_many", "compress_sum", "save_file, with a frame"),
    ],
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a case of interrupted_calls.py."""

    def run(case: str) -> dict[str, Any]:
        (tmp_path / "files").mkdir()
        command = [sys.executable, str(PROGRAM), case, str(tmp_path / "files")]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_a_call_in_its_midst(call: str, run: Run, record_property: Callable[[str, object], None]) -> None:
    found = run(call)
    *_, last = found["attempts"]
    assert last["reaction"] is not None, f"every call ended before its signal was handled: {found}"
    assert last["reaction"] < MOST_SECONDS
    # By the processors' time, which other processes do not lengthen.
    assert last["cpu"] < found["early"], f"the work went on to its end: {found}"
    assert found["works afterwards"]
    assert set(found["left behind"]) <= {"framed.safetensors"}  # of the call that was not interrupted
    record_property("seconds", last["reaction"])


def test_ctrl_c_does_not_wait_for_a_frame_to_be_read(run: Run, record_property: Callable[[str, object], None]) -> None:
    found = run("a frame")
    assert found["framed"]
    assert found["still going on"]
    assert found["reaction"] is not None
    assert found["reaction"] < MOST_SECONDS
    record_property("seconds", found["reaction"])


def test_a_handler_that_returns_does_not_change_what_is_made(run: Run) -> None:
    found = run("a handler that returns")
    assert found["same"]
    assert found["handled during the call"] >= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_handler_may_fork(run: Run) -> None:
    found = run("a handler that forks")
    assert found == {"same": True, "children": ["told, and works"]}
