"""The page of climate data is what its measurements give, and the program measures what it says."""

import numpy as np
import pytest

pytest.importorskip("cpuinfo")
pytest.importorskip("zarr", "3.1")
pytest.importorskip("distributed")

import arrcomp
import climate
from arrcomp.stores.zarr import ArrcompCodec
from climate_data import Shape, lazy
from harness.page import BENCH
from report import climate as report

PAGE = climate.page_of()
BOUND = 0.1


def test_the_page_is_what_the_measurements_give():
    assert report.markdown(PAGE.read(BENCH / "climate.csv")) == (BENCH / "CLIMATE.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "climate.csv", PAGE.read(BENCH / "climate.csv"))
    assert (tmp_path / "climate.csv").read_text() == (BENCH / "climate.csv").read_text()


def test_nothing_is_beyond_its_bound():
    (found,) = PAGE.read(BENCH / "climate.csv")["codecs"]["found"].values()
    for name, of in found.items():
        last = name.rpartition(", ")[2]
        if last.replace(".", "").isdigit():
            assert 0 < of["error"] <= float(last)
        else:
            assert of.get("error", 0) == 0
        assert max(of["write memory"], of["mean memory"]) < climate.MEMORY


def test_a_cluster_writes_and_reads(tmp_path):
    codec = ArrcompCodec(arrcomp.ErrorBounded(abs=BOUND))
    ways = {"ours": {"serializer": codec, "compressors": None}}
    (found,) = climate.measured(0.002, tmp_path, ways.items(), latitudes=36, longitudes=72).values()
    assert list(found) == [climate.SOURCE, "ours"]
    ours, plain = found["ours"], found[climate.SOURCE]
    assert 0 < ours["error"] <= BOUND
    assert 2 * ours["bytes"] < plain["bytes"]
    assert min(ours[key] for key in ("write", "series", "mean")) > 0
    assert min(ours["write memory"], ours["mean memory"]) > 1 << 24
    assert list(tmp_path.iterdir()) == []


def test_the_data_are_the_same_each_time():
    shape = Shape.of(1e5, latitudes=18, longitudes=36)
    once, again = (lazy(shape).compute(scheduler="synchronous") for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert once.shape == shape.axes
    assert 0.1 < np.isnan(once).mean() < 0.6
    assert (np.isnan(once) == np.isnan(once[0, 0])).all()


@pytest.mark.parametrize("peer", ["zfp", "SZ3"])
def test_a_peer_keeps_its_bound_and_the_gaps(peer):
    pytest.importorskip("zfpy")
    pytest.importorskip("pysz")
    from peers.zarr_codec import PeerCodec

    codec = PeerCodec(peer, BOUND)
    x = lazy(Shape.of(1e5, latitudes=18, longitudes=36)).compute(scheduler="synchronous")[:24, :1]
    out = np.empty_like(x)
    codec.decode_into(codec.encoded(x), out)
    assert (np.isnan(out) == np.isnan(x)).all()
    assert 0 < np.nanmax(np.abs(out.astype(float) - x)) <= BOUND
    assert PeerCodec.from_dict(codec.to_dict()) == codec
