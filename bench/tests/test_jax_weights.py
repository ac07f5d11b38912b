"""The page of compressed weights in JAX is what its measurements give, and the program measures what it says."""

import pytest

pytest.importorskip("cpuinfo")
pytest.importorskip("jax")

import jax_weights
from harness.page import BENCH

PAGE = jax_weights.PAGE
LOSSLESS = [name for name in jax_weights.CODECS if name.startswith("Lossless")]


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / PAGE.file)
    assert jax_weights.markdown(document) == (BENCH / "JAX_WEIGHTS.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / PAGE.file, PAGE.read(BENCH / PAGE.file))
    assert (tmp_path / PAGE.file).read_text() == (BENCH / PAGE.file).read_text()


def test_lossless_codecs_gave_the_bits_of_the_plain_model():
    document = PAGE.read(BENCH / PAGE.file)
    for dtype in PAGE.sections:
        found = document[dtype]["found"]
        for count in map(str, jax_weights.SEQUENCES):
            assert all(found[count][name]["difference"] == 0 for name in (jax_weights.PLAIN, *LOSSLESS))


def test_a_quick_run_measures_every_codec(tmp_path):
    document = PAGE.measure(["bfloat16"], quick=True, folder=tmp_path)
    found = document["bfloat16"]["found"]
    for count in map(str, jax_weights.SEQUENCES):
        assert found[count].keys() == {jax_weights.PLAIN, *jax_weights.CODECS}
        assert all(of["ms"] > 0 and of["temporaries"] > 0 for of in found[count].values())
    assert all(found["weights"][name]["ratio"] > 1 for name in jax_weights.CODECS)
    assert "| `Lossless()` |" in (tmp_path / "JAX_WEIGHTS.md").read_text()
