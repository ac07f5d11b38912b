"""What asv measures is what `bench/run.py` measures."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("typer")

from data import Subject
from harness.page import BENCH
from trends import benchmarks


def test_asv_finds_the_benchmarks():
    text = (BENCH.parent / "asv.conf.json").read_text()
    settings = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert BENCH.parent / settings["benchmark_dir"] == BENCH / "trends"


@pytest.fixture
def subjects():
    values = np.random.default_rng(0).normal(0, 0.02, 10000).astype(np.float32)
    halves = values.astype(np.float16)
    return {"single": Subject("single", values, "normal", weights=True), "half": Subject("half", halves, "normal")}


@pytest.mark.parametrize(("label", "most"), [(benchmarks.BOUND, 1.0), ("lossless", 0.0)])
def test_error_and_ratio_are_those_of_the_setting(subjects, label, most):
    measured = benchmarks.Arrays()
    measured.setup(subjects, "single", label, "default")
    assert measured.track_error() <= most
    assert measured.track_ratio() > 1.1
    measured.time_compress()
    measured.time_decompress()


def test_a_setting_that_an_array_has_not_is_not_measured(subjects):
    with pytest.raises(NotImplementedError, match="half: 1e-03"):
        benchmarks.Arrays().setup(subjects, "half", benchmarks.BOUND, "default")


@pytest.mark.parametrize("call", benchmarks.CALLS)
def test_the_small_calls_are_those_of_overhead(call):
    measured = benchmarks.SmallCalls()
    measured.setup(1024, call)
    measured.time_call()
