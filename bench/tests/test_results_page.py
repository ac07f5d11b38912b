"""The pages of figures are what the measurements give: `bench/results.csv`, RESULTS.md, PLANS.md and the README."""

import copy
import csv
import re
from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")  # what is needed to measure, of which some is not in every environment
pytest.importorskip("rich")
pytest.importorskip("torch")
pytest.importorskip("sklearn")

import accuracy
import results
from harness import figures
from harness.page import BENCH
from report import plans, readme
from run import results_of


@pytest.fixture(scope="module")
def measured() -> SimpleNamespace:
    """What results.csv holds."""
    document = results.PAGE.read(BENCH / "results.csv")
    return SimpleNamespace(document=document, results=results_of(document["compressors"]["found"]))


def test_the_page_is_what_the_measurements_give(measured):
    assert results.markdown(measured.document) == (BENCH / "RESULTS.md").read_text()


def test_the_page_of_plans_is_what_the_measurements_give(measured):
    assert plans.page(measured.document, measured.results) == (BENCH / "PLANS.md").read_text()


def test_what_users_read_says_nothing_of_plans():
    assert "planned" not in (BENCH / "RESULTS.md").read_text()


def test_the_readme_quotes_the_measurements(measured):
    text = readme.README.read_text()
    assert readme.with_block(text, measured.document) == text


def test_another_measurement_is_another_readme(measured):
    document = copy.deepcopy(measured.document)
    document["accuracy"]["found"][accuracy.MODEL]["error at most 0.001"]["file"] *= 2
    text = readme.README.read_text()
    assert readme.with_block(text, document) != text


def test_the_readme_is_right_that_an_error_bound_beats_fp8_in_size_and_in_accuracy(measured):
    found = measured.document["accuracy"]["found"][accuracy.MODEL]
    bounded = found["error at most 0.001"]
    for name in (name for name in found if "FP8" in name):
        assert bounded["file"] < found[name]["file"]
        assert bounded["mean cosine"] > found[name]["mean cosine"]
        assert bounded["least cosine"] > found[name]["least cosine"]


def test_a_readme_without_marks_or_results_without_a_line_are_errors(measured):
    with pytest.raises(ValueError, match="once each"):
        readme.with_block("no marks", measured.document)
    with pytest.raises(LookupError, match="lossless"):
        readme.block({})


def test_a_plan_is_reached_at_the_limit_and_missed_beyond():
    target = plans.Target
    assert target("x", "GB/s", {"encode": 4, "decode": 9}, {"encode": 4, "decode": 8.9}).missed() == ["decode"]
    assert target("x", "microseconds", {"": 10}, {"": 10}, at_most=True).missed() == []
    assert target("x", "microseconds", {"": 10}, {"": 10.1}, at_most=True).missed() == [""]


def test_every_miss_of_a_quantizer_has_its_instructions_counted(measured):
    found = list(plans.plans(measured.document, measured.results))
    counted = measured.document["instructions"]["found"]["cases"]
    missed = [target for target in found if target.case and target.missed()]
    assert missed
    assert [target.case for target in missed if target.case not in counted] == []


def test_figures_that_are_read_and_written_are_the_same(measured, tmp_path):
    results.PAGE.write(tmp_path / "results.csv", measured.document)
    assert (tmp_path / "results.csv").read_text() == (BENCH / "results.csv").read_text()


def test_every_line_names_a_benchmark_a_metric_and_a_machine(measured):
    with (BENCH / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == figures.COLUMNS
    assert {row["benchmark"] for row in rows} == {"machine", *results.SECTIONS}
    assert {row["machine"] for row in rows} == set(measured.document["machines"])
    assert all(row["metric"] and row["value"] for row in rows)


def test_the_table_of_contents_leads_to_every_section():
    text = (BENCH / "RESULTS.md").read_text()
    links = re.findall(r"^- \[(.+)\]\(#(.+)\)$", text, re.MULTILINE)
    assert [title for title, _ in links] == re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [anchor for _, anchor in links] == [
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title, _ in links
    ]


def test_a_page_of_one_section_shows_that_one(measured, tmp_path):
    document = {name: measured.document[name] for name in ("machines", "few bit")}
    text = results.markdown(document)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["How it is measured", "Few-bit activations"]
