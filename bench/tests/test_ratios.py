"""Ratios are measured anew, and speeds stay."""

import copy

import pytest

pytest.importorskip("rich")
pytest.importorskip("torch")
pytest.importorskip("sklearn")

import ratios
from data import standard_subjects


def test_ratios_and_errors_are_those_of_todays_bytes_and_all_else_stays():
    figures = {"ratio": 0.0, "error": 9.0, "broken": True, "encode": 1.25, "failure": None}
    names = ("arrcomp", "arrcomp fast, 2 threads, avx512", "SZ3")
    found = {
        subject.name: {setting.label: {name: dict(figures) for name in names} for setting in subject.settings()}
        for subject in standard_subjects(True)
    }
    before = copy.deepcopy(found)
    ratios.renew(found, quick=True)
    for array, settings in found.items():
        for setting, compressors in settings.items():
            default, fast, peer = (compressors[name] for name in names)
            assert default["ratio"] >= fast["ratio"] > 0.9
            assert not default["broken"]
            assert setting == "lossless" or 0 < default["error"] <= 1
            assert (default["encode"], peer) == (1.25, before[array][setting]["SZ3"])
