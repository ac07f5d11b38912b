"""The example that keeps streams in an HDF5 file, and the recipe for whole arrays."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrcomp
import checks

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.full  # the extra test-full has h5py

EXAMPLE = Path(__file__).parents[2] / "examples" / "hdf5_blocks.py"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("hdf5_blocks", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@given(
    name=st.sampled_from(checks.DTYPES),
    count=st.integers(0, 30),
    rows=st.integers(1, 12),
    start=st.integers(0, 30),
    length=st.integers(0, 40),
)
def test_rows_come_back_from_their_blocks(name: str, count: int, rows: int, start: int, length: int) -> None:
    blocks = example()
    x = (np.arange(3 * count).reshape(count, 3) % 2).astype(checks.numpy_dtype(name))
    with h5py.File("x.h5", "w", driver="core", backing_store=False) as file:
        blocks.write(file, "x", x, arrcomp.Lossless(), rows)
        checks.check_same_bits(blocks.read(file["x"], 0, count), x)
        checks.check_same_bits(blocks.read(file["x"], start, start + length), x[start : start + length])


def test_only_the_blocks_of_the_rows_are_read(tmp_path: Path) -> None:
    blocks = example()
    x = np.arange(100.0)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        blocks.write(file, "x", x, arrcomp.Lossless(), 10)
        file["x"][3] = np.zeros(9, np.uint8)
        checks.check_same_bits(blocks.read(file["x"], 10, 30), x[10:30])
        checks.check_same_bits(blocks.read(file["x"], 40, 41), x[40:41])
        with pytest.raises(arrcomp.CorruptStreamError):
            blocks.read(file["x"], 29, 31)


def test_a_stream_is_a_dataset_of_bytes(tmp_path: Path) -> None:
    x = np.arange(12.0).reshape(3, 4)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.frombuffer(arrcomp.compress(x).to_bytes(), np.uint8)
    with h5py.File(tmp_path / "x.h5") as file:
        checks.check_same_bits(arrcomp.decompress(arrcomp.from_bytes(file["x"][:])), x)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example().main()
    assert "largest error of rows 1200 to 1299" in capsys.readouterr().out
