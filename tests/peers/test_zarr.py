"""zarr's own tests, from its source distribution, with arrcomp's codecs as zarr's defaults (`swapped_codecs.py`).

ARRCOMP_ZARR_SOURCE is the unpacked source distribution of the version that is installed; `.ci/run` fetches it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import checks

zarr = pytest.importorskip("zarr", "3.1")

pytestmark = pytest.mark.peers

MODULES = ["test_array.py", "test_codecs", "test_indexing.py", "test_properties.py", "test_v2.py"]
LEFT_OUT = [
    # These say what zarr's default codecs are, or how many bytes its serializer makes.
    "test_array.py::TestInfo",
    "test_array.py::test_roundtrip_numcodecs",
    "test_codecs/test_sharding.py::test_delete_empty_shards",
    # These name all codecs, and take a third of the time.
    "test_codecs/test_sharding.py::test_nested_sharding",
    "test_codecs/test_sharding.py::test_nested_sharding_create_array",
    # These take long, and others show the same.
    "test_array.py::test_multiprocessing",
    "test_indexing.py::test_set_orthogonal_selection_3d",
]


@pytest.fixture
def source() -> Path:
    """The unpacked source distribution of zarr."""
    folder = os.environ.get("ARRCOMP_ZARR_SOURCE")
    if folder is None:
        pytest.skip("ARRCOMP_ZARR_SOURCE is not set: CONTRIBUTING.md says how to fetch zarr's tests")
    path = Path(folder).resolve()
    assert f"\nVersion: {zarr.__version__}\n" in (path / "PKG-INFO").read_text(), f"{path} is not {zarr.__version__}"
    return path


@pytest.mark.parametrize("way", ["serializer", "compressor"])
def test_what_zarr_tests_does_not_hold(way: str, source: Path) -> None:
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "swapped_codecs", "-p", "no:cacheprovider"]
    command += ["--codec", way, "--hypothesis-profile", "few", "-o", "addopts="]
    command += [f"--deselect=tests/{name}" for name in LEFT_OUT]
    command += [f"tests/{name}" for name in MODULES]
    environment = checks.environment_with(Path(__file__).parent)
    run = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False, timeout=500)
    print(run.stdout[-20_000:], run.stderr[-2000:])
    assert run.returncode == 0
    assert int(re.findall(r"(\d+) passed", run.stdout)[-1]) > 1500
