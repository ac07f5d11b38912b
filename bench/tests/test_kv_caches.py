"""The page of KV caches is what its measurements give, and what it says of them holds."""

import pytest

pytest.importorskip("cpuinfo")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import kv_caches
from harness.page import BENCH
from report import kv_caches as report

PAGE = kv_caches.page_of(None)


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / "kv_caches.csv")
    assert report.markdown(document) == (BENCH / "KV_CACHES.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "kv_caches.csv", PAGE.read(BENCH / "kv_caches.csv"))
    assert (tmp_path / "kv_caches.csv").read_text() == (BENCH / "kv_caches.csv").read_text()


def test_lossless_caches_change_no_perplexity():
    found = PAGE.read(BENCH / "kv_caches.csv")["quality"]["found"]
    plain = found[kv_caches.PLAIN][kv_caches.CHANNEL]
    for name in ("Lossless()", "Lossless(speed='fast')"):
        for of in found[name].values():
            assert {**of, "bytes": 0} == {**plain, "bytes": 0}
            assert of["bytes"] < plain["bytes"]


@pytest.mark.parametrize("name", kv_caches.CODINGS)
@pytest.mark.parametrize("layout", kv_caches.LAYOUTS)
def test_a_cache_keeps_bfloat16_and_gives_float32(name, layout):
    own = kv_caches.made_cache(name, layout, 16, 0, 16, short=True)
    keys, values = own.update(*torch.randn(2, 1, 2, 48, 16), 0)
    assert keys.dtype == values.dtype == torch.float32
    assert torch.equal(keys, keys.bfloat16().float())
    assert own.plain_nbytes == 2 * 2 * keys.numel()
    assert own.nbytes < own.plain_nbytes
