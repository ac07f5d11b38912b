"""The page of models with compressed weights is what its measurements give, and the program measures what it says."""

import heapq

import numpy as np
import pytest

pytest.importorskip("cpuinfo")
pytest.importorskip("torch")
pytest.importorskip("transformers")

import compressed_models
from harness.page import BENCH

PAGE = compressed_models.PAGE

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / "compressed_models.csv")
    assert compressed_models.markdown(document) == (BENCH / "COMPRESSED_MODELS.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "figures.csv", PAGE.read(BENCH / "compressed_models.csv"))
    assert (tmp_path / "figures.csv").read_text() == (BENCH / "compressed_models.csv").read_text()


def test_lossless_weights_give_the_same_tokens_in_less_memory():
    found = PAGE.read(BENCH / "compressed_models.csv")[compressed_models.RUNNING]["found"]
    plain = found[compressed_models.PLAIN]
    for name in (name for name in found if name.startswith("Lossless")):
        assert found[name]["equal"] == 1
        assert found[name]["nbytes"] + found[name]["shared_nbytes"] < plain["nbytes"]


def test_a_quick_run_measures_every_kind():
    found = compressed_models.running(quick=True)
    assert found.keys() == {compressed_models.PLAIN, *compressed_models.KINDS}
    assert all(of["equal"] == 1 for name, of in found.items() if name.startswith("Lossless"))


def test_eight_bits_are_scaled_block_by_block():
    x = np.random.default_rng(0).normal(0, 1, (64, 128)).astype(np.float32)
    blocks = compressed_models._cast(x, "float8_e4m3fn").astype(np.float32)
    assert (np.abs(blocks).max(1) == 448).all()
    assert np.abs(blocks / 448 * np.abs(x).max(1, keepdims=True) - x).max() < 0.2


@pytest.mark.parametrize(("name", "mantissa"), [("bfloat16", 7), ("float8_e4m3fn", 3)])
def test_codes_of_exponents_are_as_long_as_those_of_a_tree(name, mantissa):
    x = compressed_models._cast(np.random.default_rng(1).normal(0, 0.02, (100, 128)).astype(np.float32), name)
    words = x.view(f"u{x.dtype.itemsize}").reshape(-1)
    exponents = words >> mantissa & (1 << 8 * x.dtype.itemsize - 1 - mantissa) - 1
    trees = [(int(n), i, [i]) for i, n in enumerate(np.bincount(exponents)) if n]
    depths = dict.fromkeys(range(256), 0)
    heapq.heapify(trees)
    while len(trees) > 1:
        (a, i, left), (b, _, right) = heapq.heappop(trees), heapq.heappop(trees)
        for leaf in left + right:
            depths[leaf] += 1
        heapq.heappush(trees, (a + b, i, left + right))
    bits = sum(depths[int(exponent)] for exponent in exponents) + len(words) * (1 + mantissa)
    assert compressed_models._huffman_nbytes(x, mantissa) == -(-bits // 8)
    flat = np.zeros(80, x.dtype)
    assert compressed_models._huffman_nbytes(flat, mantissa) == 10 * (2 + mantissa)  # no code has no bits
