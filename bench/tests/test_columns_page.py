"""The page of arrays by columns is what its measurements give, and the program measures what it says."""

import numpy as np
import pytest

pytest.importorskip("cpuinfo")

import columns
from harness.page import BENCH
from report import columns as report

PAGE = columns.page()


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / "columns.csv")
    assert report.markdown(document) == (BENCH / "COLUMNS.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "columns.csv", PAGE.read(BENCH / "columns.csv"))
    assert (tmp_path / "columns.csv").read_text() == (BENCH / "columns.csv").read_text()


def test_every_array_of_ours_came_back():
    document = PAGE.read(BENCH / "columns.csv")
    for name in report.TITLES:
        for found in document[name]["found"].values():
            assert [method for method in found if "broken" in found[method] and method.startswith("arrcomp")] == []


@pytest.mark.parametrize("arrays", [columns.tables, columns.channels])
def test_arrays_are_made_the_same_each_time_and_come_back(arrays):
    pytest.importorskip("skimage")
    for (name, about, x), (_, _, again) in zip(arrays(True), arrays(True), strict=True):
        assert np.array_equal(x, again), name
        assert about
        assert "broken" not in columns._measured(columns.Ours("lossless", "columns"), x, 0.0), name


def test_the_transposed_array_comes_back():
    pytest.importorskip("pcodec")
    from peers.pco import Pcodec

    compressor = columns.ByHand(Pcodec())
    x = np.arange(60, dtype=np.int32).reshape(4, 5, 3)
    payload = compressor.compress(x, 0.0)
    np.testing.assert_array_equal(compressor.decompress(payload, np.zeros_like(x)), x)
