"""What bench/trust.py says of tests is what they did."""

import subprocess
import sys
from pathlib import Path

import pytest

from proofs import evidence

BENCH = Path(__file__).parent.parent

TESTS = """
import pytest

@pytest.mark.parametrize("seconds", [0.5, 0.25])
def test_that_it_holds(seconds, record_property):
    record_property("kills", 20)
    record_property("seconds", seconds)

@pytest.mark.parametrize("broken", [False, True])
def test_that_it_breaks(broken):
    assert not broken

def test_of_what_is_missing():
    pytest.skip("no GPU")

@pytest.mark.slow
def test_that_takes_long():
    pass
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tests") / "test_promises.py"
    path.write_text(TESTS)
    return path


def rows(found):
    return [line.strip("| ").split(" | ") for line in evidence.evidence_table(found).splitlines()[2:]]


def test_outcomes_counts_and_reasons_are_told(file):
    found = evidence.evidence([str(file)], quick=True)
    assert found["failures"] == 1
    assert rows(found) == [
        ["that it holds", "2", "kills 40, seconds 0.5", "held"],
        ["that it breaks", "1", "", "**1 failed**"],
        ["of what is missing", "0", "", "1 skipped: no GPU"],
    ]


def test_what_takes_long_is_tried_unless_time_is_short(file):
    found = evidence.evidence([str(file)], quick=False)
    assert rows(found)[-1] == ["that takes long", "1", "", "held"]


def test_tests_that_cannot_run_are_no_evidence(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 4"):
        evidence.evidence([str(tmp_path / "missing.py")], quick=True)


def test_the_page_is_what_the_figures_give():
    program = f"import sys; sys.path.insert(0, {str(BENCH)!r}); import trust; trust.PAGE.main()"
    subprocess.run([sys.executable, "-P", "-c", program, "--check"], check=True)
