"""The page of integers is what its measurements give, and the program measures what it says."""

import numpy as np
import pytest

pytest.importorskip("cpuinfo")

import integers
from harness.page import BENCH
from report import integers as report

PAGE = integers.page()


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / "integers.csv")
    assert report.markdown(document) == (BENCH / "INTEGERS.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "integers.csv", PAGE.read(BENCH / "integers.csv"))
    assert (tmp_path / "integers.csv").read_text() == (BENCH / "integers.csv").read_text()


def test_every_array_came_back():
    document = PAGE.read(BENCH / "integers.csv")
    for name in report.TITLES:
        for found in document[name]["found"].values():
            assert [method for method in found if "broken" in found[method]] == []


def test_the_page_has_every_array():
    document = PAGE.read(BENCH / "integers.csv")
    assert list(document["columns"]["found"]) == [name for name, _, _ in integers.columns(quick=True)]
    assert list(document["bytes"]["found"]) == [name for name, _, _ in integers.single_bytes(quick=True)]
    assert list(document["words"]["found"]) == [name for name, _, _ in integers.words(quick=True)]
    assert list(document["labels"]["found"]) == [name for name, _, _ in integers.labels(quick=True)]
    assert list(document["volumes"]["found"]) == [name for name, _, _ in integers.volumes(quick=True)]
    assert list(document["pictures"]["found"]) == list(integers.PICTURES)


@pytest.mark.parametrize("predictor", [None, "auto"])
def test_arrays_are_made_the_same_each_time_and_come_back(predictor):
    for arrays in (integers.columns, integers.labels, integers.volumes):
        for (name, about, x), (_, _, again) in zip(arrays(True), arrays(True), strict=True):
            assert np.array_equal(x, again)
            assert about
            found = integers._measured(integers.Ours("lossless", predictor), x)
            assert "broken" not in found, name
            assert found["ratio"] > 1.5, name


def test_png_takes_pictures_alone():
    pytest.importorskip("PIL")
    from peers.png import Png

    picture = np.arange(12 * 31 * 3, dtype=np.uint8).reshape(12, 31, 3)
    payload = Png().compress(picture, 0.0)
    np.testing.assert_array_equal(Png().decompress(payload, np.zeros_like(picture)), picture)
    assert not Png().supports(picture.astype(np.int16))
    assert not Png().supports(picture[..., :2])
