"""The page of fields is what its measurements give, and the program measures what it says."""

import csv
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("cpuinfo")

import fields
from harness.page import BENCH
from report import fields as report

PAGE = fields.page_of(None, None)


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / "fields.csv")
    assert report.markdown(document) == (BENCH / "FIELDS.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "fields.csv", PAGE.read(BENCH / "fields.csv"))
    assert (tmp_path / "fields.csv").read_text() == (BENCH / "fields.csv").read_text()


def test_every_real_field_has_a_source():
    document = PAGE.read(BENCH / "fields.csv")
    with (BENCH / "fields_sources.csv").open(newline="") as file:
        sources = {row["field"]: row for row in csv.DictReader(file)}
    names = {name for group in ("real", "aside") for name in document[group]["found"]}
    assert names == set(sources)
    assert all(row["package"] and re.match(r"\d", row["version"]) and row["file"] for row in sources.values())


def test_arrcomp_keeps_every_bound():
    document = PAGE.read(BENCH / "fields.csv")
    for name in ("made", "real", "aside"):
        for settings in document[name]["found"].values():
            for setting in (*map("{:.0e}".format, fields.SHARES), fields.LOSSLESS):
                assert [
                    method for method, found in settings[setting].items() if "arrcomp" in method and "broken" in found
                ] == []


def test_a_gap_is_filled_with_the_value_before_it():
    x = np.array([[np.nan, 1, np.nan, np.nan, 3], [4, np.inf, 6, 7, np.nan]])
    y, mask = fields.filled(x)
    np.testing.assert_array_equal(y, [[4.2, 1, 1, 1, 3], [4, 4, 6, 7, 7]])
    assert len(mask) > 0
    same, nothing = fields.filled(y)
    assert same is y
    assert nothing == b""


def test_fields_are_made_the_same_each_time():
    once, again = (list(fields.made(quick=True)) for _ in range(2))
    assert [name for name, _, _ in once] == ["waves_noise", "turbulence", "smooth_field"]
    for (_, _, x), (_, _, y) in zip(once, again, strict=True):
        assert x.dtype == np.float32
        assert x.ndim == 3
        np.testing.assert_array_equal(x, y)


def test_a_quick_run_measures_every_compressor(tmp_path):
    for module in ("pysz", "zfpy", "fpzip", "pcodec"):
        pytest.importorskip(module)
    x = np.sin(np.arange(4000.0)).reshape(1, 2, 10, 10, 20).astype(np.float32)
    x[0, 0, 0] = np.nan
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "x.npy", x)
    document = fields.page_of(tmp_path / "in", None).measure(["real"], quick=True, folder=tmp_path)
    found = document["real"]["found"]["x"]
    assert set(found["1e-03"]) == {"arrcomp", "arrcomp auto", "arrcomp interpolation", "arrcomp lorenzo", "SZ3", "zfp"}
    assert set(found[fields.LOSSLESS]) >= {"arrcomp auto", "zfp", "fpzip", "pcodec"}
    assert all(result["ratio"] > 0 for setting in ("1e-02", fields.LOSSLESS) for result in found[setting].values())
    assert (tmp_path / "fields.png").exists()
    assert "| x | float32, 1 x 2 x 10 x 10 x 20, 0.0 MB; 5% missing |" in (tmp_path / "FIELDS.md").read_text()
