"""Tests of the C library and of HDF5's filter, which run on request alone: `pytest -m c`, or with their path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import library


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these modules out of all other runs: they need what CMake installs."""
    paths = [Path(argument.partition("::")[0]).resolve() for argument in config.invocation_params.args]
    named = any(HERE in (path, *path.parents) for path in paths)
    return None if named or HERE.name in config.getoption("markexpr").split() else True


@pytest.fixture(scope="session")
def lib() -> library.Library:
    """The installed library; a run without one fails."""
    found = sorted((library.PREFIX / "lib").glob("libarrcomp.*"))
    if not library.PREFIX.name or not found:
        pytest.fail("ARRCOMP_C_PREFIX: expected the folder of `cmake --install --prefix`, got none with a library")
    return library.Library(found[0])
