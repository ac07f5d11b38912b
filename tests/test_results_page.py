"""The pages of figures are what the measurements give: `bench/results.json`, RESULTS.md and the README."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")  # what is needed to measure, of which some is not in every environment
pytest.importorskip("rich")

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture(scope="module")
def bench():
    """The programs' modules, which import each other by their own names."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCH))
    try:
        import readme
        import report
        import targets
        from measure import Result

        document = json.loads((BENCH / "results.json").read_text())
        results = [Result(**fields) for fields in document["compressors"]["found"]["results"]]
        yield {"readme": readme, "report": report, "targets": targets, "document": document, "results": results}
    finally:
        sys.path.remove(str(BENCH))
        for name in set(sys.modules) - before:
            if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def test_the_page_is_what_the_measurements_give(bench):
    assert bench["report"].markdown(bench["document"], bench["results"]) == (BENCH / "RESULTS.md").read_text()


def test_the_readme_quotes_the_measurements(bench):
    text = bench["readme"].README.read_text()
    assert bench["readme"].with_block(text, bench["results"]) == text


def test_another_measurement_is_another_readme(bench):
    import dataclasses

    faster = [dataclasses.replace(result, encode=2 * result.encode) for result in bench["results"]]
    text = bench["readme"].README.read_text()
    assert bench["readme"].with_block(text, faster) != text


def test_a_readme_without_marks_or_results_without_a_line_are_errors(bench):
    with pytest.raises(ValueError, match="once each"):
        bench["readme"].with_block("no marks", bench["results"])
    with pytest.raises(LookupError, match="zipnn"):
        bench["readme"].block([result for result in bench["results"] if result.compressor != "zipnn"])


def test_what_is_asked_is_met_at_the_limit_and_missed_beyond(bench):
    target = bench["targets"].Target
    assert target("x", "GB/s", {"encode": 4, "decode": 9}, {"encode": 4, "decode": 8.9}).missed() == ["decode"]
    assert target("x", "microseconds", {"": 10}, {"": 10}, at_most=True).missed() == []
    assert target("x", "microseconds", {"": 10}, {"": 10.1}, at_most=True).row()[-1] == "no"


def test_every_miss_of_a_quantizer_has_its_instructions_counted(bench):
    found = list(bench["targets"].asked(bench["document"], bench["results"]))
    counted = bench["document"]["instructions"]["found"]["cases"]
    missed = [target for target in found if target.case and target.missed()]
    assert missed
    assert [target.case for target in missed if target.case not in counted] == []
