"""CI's guard against codecs that take more instructions: `.ci/check_instructions.py`."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / ".ci" / "check_instructions.py"
TABLE = {"avx2": {"QSGD(), float32": {"encode": 4.0, "decode": 2.0}}}


@pytest.fixture(scope="module")
def check() -> Any:
    spec = importlib.util.spec_from_file_location("check_instructions", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counts(**changes: float) -> dict[str, Any]:
    return {"avx2": {"QSGD(), float32": TABLE["avx2"]["QSGD(), float32"] | changes}}


def test_little_more_is_allowed(check: Any) -> None:
    assert check.verdicts(counts(encode=4.9), TABLE) == ([], [])


def test_much_more_is_wrong_and_said_with_both_figures(check: Any) -> None:
    wrong, cheaper = check.verdicts(counts(encode=5.2), TABLE)
    assert wrong == ["avx2: QSGD(), float32: encode: 5.2 instructions a value, 1.30 x 4.0"]
    assert cheaper == []


def test_much_less_is_said_and_not_wrong(check: Any) -> None:
    wrong, cheaper = check.verdicts(counts(decode=1.5), TABLE)
    assert wrong == []
    assert cheaper == ["avx2: QSGD(), float32: decode: 1.5 instructions a value, 0.75 x 2.0"]


def test_what_the_table_lacks_or_has_too_much_is_wrong(check: Any) -> None:
    (lacking,), _ = check.verdicts(counts(both=6.0), TABLE)
    (too_much,), _ = check.verdicts(TABLE, counts(both=6.0))
    assert "counted, but not in the table" in lacking
    assert "in the table, but not counted" in too_much


def test_reports_are_read_by_mark_and_the_end_of_the_program_is_none(check: Any) -> None:
    report = "version: 1\ndesc: Trigger: {}\n\nfn=(1) call\n2 3\ntotals: {}\n"
    marked = report.format("Client Request: plain: QSGD(), float32: encode", 3 << 15)
    assert check.read_counts([marked, report.format("Program termination", 7)]) == {
        "plain": {"QSGD(), float32": {"encode": 1.5}}
    }


def test_missing_tools_are_an_error_that_says_what_to_install(
    check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["check_instructions.py"])
    assert check.main() == 2
    assert "apt-get install valgrind" in capsys.readouterr().err


def test_the_table_has_both_ways_in_the_form_that_is_written(check: Any) -> None:
    table = check.json.loads(check.TABLE.read_text())
    assert list(table) == ["avx2"]
    assert check.text(table) == check.TABLE.read_text()
