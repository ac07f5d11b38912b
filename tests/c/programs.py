"""Programs that the tests of what CMake installs call."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def run(*command: object, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints; AssertionError with all of it where it fails."""
    words = [str(part) for part in command]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def tool(name: str) -> str:
    """A tool of this environment, or of the machine; the test is skipped where it is not installed."""
    here = Path(sys.executable).parent / name
    found = str(here) if here.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found
