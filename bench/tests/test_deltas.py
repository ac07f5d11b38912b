"""The page of deltas is what its measurements give, and the program measures what it says."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cpuinfo")
pytest.importorskip("zstandard")

import deltas
from harness.page import BENCH
from peers.deltas import NAMES, Arrcomp, ways
from report import deltas as report

PAGE = deltas.page_of(None)
OURS = {"arrcomp", "arrcomp, fast", "arrcomp, no reference"}
COPYING = {"zipnn, delta", "z4ai, delta"}

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # by zipnn


def pair(dtype, size=5000, share=0.1):
    rng = np.random.default_rng(1)
    old = rng.standard_normal(size, np.float32)
    return old.astype(dtype), np.where(rng.random(size) < share, np.float32(1.25) * old, old).astype(dtype)


def test_the_page_is_what_the_measurements_give():
    document = PAGE.read(BENCH / "deltas.csv")
    assert report.markdown(document) == (BENCH / "DELTAS.md").read_text()


def test_figures_that_are_read_and_written_are_the_same(tmp_path):
    PAGE.write(tmp_path / "deltas.csv", PAGE.read(BENCH / "deltas.csv"))
    assert (tmp_path / "deltas.csv").read_text() == (BENCH / "deltas.csv").read_text()


def test_nothing_that_was_measured_is_broken():
    document = PAGE.read(BENCH / "deltas.csv")
    found = {name: of for group in PAGE.sections for name, of in document[group]["found"].items()}
    settings = [(name, setting, of[setting]) for name, of in found.items() for setting in of if setting != "values"]
    assert [(name, setting, way) for name, setting, of in settings for way in of if "broken" in of[way]] == []
    assert all(of.keys() >= OURS for _, _, of in settings)


def test_updates_change_the_share_that_they_are_named_for():
    for (name, old, new), share in zip(deltas.made(quick=True), deltas.SHARES, strict=False):
        changed = (old.astype(ml_dtypes.bfloat16) != new.astype(ml_dtypes.bfloat16)).mean()
        assert name == f"{100 * share:g}%"
        assert changed == pytest.approx(share, rel=0.02)


def test_entropy_is_that_of_the_differences_of_the_bits():
    old = np.array([1.0, 2.0, -3.0, 4.0], np.float32)
    assert deltas.entropy(old, old) == 0
    moved = old.view(np.uint32) + np.array([0, 0, 1, 1], np.uint32)
    assert deltas.entropy(old, moved.view(np.float32)) == 1
    before = np.array([0, 65535, 3, 3], np.uint16).view(np.float16)
    after = np.array([1, 0, 5, 3], np.uint16).view(np.float16)
    assert deltas.entropy(before, after) == 1.5  # 1 twice, the second time beyond the end; 2; 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_every_way_gives_the_array_again(name, dtype):
    way = ways().get(name) or pytest.skip("its library is not installed")
    old, new = pair(dtype)
    kept, target = old.copy(), old.copy()
    payload = way.compress(new, old, 0.0)
    assert old.tobytes() == kept.tobytes()
    assert way.apply(payload, target).tobytes() == new.tobytes()
    assert name in COPYING or target.tobytes() == new.tobytes()
    assert payload.nbytes < new.nbytes


def test_only_arrcomp_keeps_a_bound():
    old, new = pair(np.float32)
    assert {name for name, way in ways().items() if way.bounded} == OURS
    restored = Arrcomp().apply(Arrcomp().compress(new, old, 1e-3), old)
    assert np.abs(restored.astype(np.float64) - new).max() <= 1e-3


def test_a_quick_run_measures_every_way(tmp_path):
    pytest.importorskip("torch")
    import trained_steps

    document = deltas.page_of(None).measure(["trained"], quick=True, folder=tmp_path)
    found = document["trained"]["found"]
    assert list(found) == [name for name, _, _ in trained_steps.pairs(trained_steps.QUICK)]
    names = set(ways())
    for of in found.values():
        assert of["bfloat16"].keys() - {deltas.CHANGED, deltas.ENTROPY} == names
        assert of["1e-05"].keys() == OURS
        assert all(of[setting][way]["ratio"] > 0 for setting in ("bfloat16", "float32") for way in names)
    page = (tmp_path / "DELTAS.md").read_text()
    assert "| tuning, lr 1e-04, 1 step | 1e-5 |" in page


def test_weights_that_are_kept_are_those_that_are_measured(tmp_path):
    pytest.importorskip("torch")
    import trained_steps

    size = trained_steps.QUICK
    for name, weights in trained_steps.steps(size):
        np.save(tmp_path / f"{name}.npy", weights)
    read, trained_now = deltas.trained(True, tmp_path), deltas.trained(True)
    for (name, *those), (again, *others) in zip(read, trained_now, strict=True):
        assert name == again
        assert all(x.tobytes() == y.tobytes() for x, y in zip(those, others, strict=True))
