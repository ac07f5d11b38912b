"""Counts of machine code: what is read of a listing, loops and the ways around them, marks in the source, budgets."""

from pathlib import Path

import pytest

import gpu_instructions
from gpu_instructions import Case, Count, Part
from machine_code.listing import kernels_of
from machine_code.loops import Flow
from machine_code.regions import regions_of

# A loop at .L_1 whose rare part (.L_3) is longer than what is ordinary, behind a branch that no warp takes together.
LISTING = """
.text._Z6kernelv:
	//## File "/s/a.h", line 1
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_1:
	//## File "/s/lanes.h", line 70 inlined at "/s/a.h", line 3
	//## File "/s/a.h", line 3
        /*0010*/                   LDG.E.128 R4, desc[UR8][R2.64] ;
        /*0020*/                   BRA.DIV UR4, `(.L_3) ;
	//## File "/s/a.h", line 4
        /*0030*/               @P0 BRA `(.L_2) ;
        /*0040*/                   STG.E.U16 desc[UR8][R2.64], R4 ;
        /*0050*/                   VIADD R2, R2, 0x1 ;
.L_2:
        /*0060*/              @!P1 BRA `(.L_1) ;
        /*0070*/                   EXIT ;
.L_3:
        /*0080*/                   WARPSYNC.COLLECTIVE R12, `(.L_2) ;
        /*0090*/                   BRA `(.L_2) ;
"""
SOURCE = """void f() {
  int unused;
  for (int r = 0; r < n; r += 8) {  // counted: store row, 8 rows
    g(r, [&] { return 1; });
  }
  if (exponent) return f<true>(a,  // counted as: exponent
                               b);
}
"""


@pytest.fixture
def flow():
    (kernel,) = kernels_of(LISTING.splitlines())
    return Flow(kernel)


def test_the_listing_is_read(flow):
    code = flow.kernel.code
    assert flow.kernel.name == "_Z6kernelv"
    assert [i.opcode for i in code[:4]] == ["MOV", "LDG.E.128", "BRA.DIV", "BRA"]
    assert [i.nbytes() for i in (code[0], code[1], code[4])] == [4, 16, 2]
    assert code[1].places == {("/s/lanes.h", 70), ("/s/a.h", 3)}
    assert code[3].conditional
    assert code[3].places == {("/s/a.h", 4)}


def test_the_shortest_way_around_is_counted(flow):
    (loop,) = flow.loops
    assert [i.opcode for i in loop.way_around({})] == ["LDG.E.128", "BRA.DIV", "BRA", "BRA"]
    assert len(loop.way_around({"STG": 1})) == 6
    assert loop.share(frozenset({("/s/a.h", 3)})) == pytest.approx(2 / 6)


def test_a_way_that_does_not_do_what_is_needed_is_no_way(flow):
    with pytest.raises(ValueError, match="no way around"):
        flow.loops[0].way_around({"STG": 2})


def test_narrow_accesses_to_device_memory_are_seen(flow):
    assert [gpu_instructions.is_narrow(i) for i in flow.kernel.code] == [False] * 4 + [True] + [False] * 5


def test_marks_are_statements(tmp_path: Path):
    (tmp_path / "a.h").write_text(SOURCE)
    loop, mode = regions_of(tmp_path)
    assert (loop.name, loop.rows, {line for _, line in loop.places}) == ("store row", 8, {3, 4, 5})
    assert (mode.name, mode.rows, {line for _, line in mode.places}) == ("exponent", 0, {6, 7})


@pytest.mark.parametrize(
    ("count", "before", "wrong"),
    [
        (Count({"a": 50.0}, 0, 64), 50.0, []),
        (Count({"a": 30.0, "b": 26.0}, 0, 64), 56.0, ["x: expected at most 55 instructions for a row, got 56.0"]),
        (Count({"a": 50.0}, 0, 65), 50.0, ["x: expected at most 64 registers, got 65"]),
        (Count({"a": 50.0}, 0, 64), 45.0, ["x: 50.0 instructions for a row, 45.0 before"]),
        (Count({"a": 50.0}, 0, 64), None, ["x: gpu_instructions.json has no count of it"]),
    ],
)
def test_what_is_too_much_is_told(monkeypatch: pytest.MonkeyPatch, count, before, wrong):
    monkeypatch.setattr(gpu_instructions, "CASES", (Case("x", "float32", "kernel", (Part("a"),), 55),))
    recorded = {} if before is None else {"x": {"parts": {"a": before}, "narrow": 0, "registers": 64}}
    assert list(gpu_instructions.problems({"x": count}, recorded)) == wrong


def test_the_page_shows_a_budget_that_is_missed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_instructions, "CASES", (Case("x", "float32", "kernel", (Part("a"),), 55),))
    page = f"before\n{gpu_instructions.BEGIN}\n{gpu_instructions.END}\nafter\n"
    written = gpu_instructions.with_section(page, {"x": {"parts": {"a": 60.0}, "narrow": 0.5, "registers": 64}})
    assert "| x | 60.0 | 55 **missed** | a 60.0 | 0.50 | 64 |" in written
    assert written.endswith(f"{gpu_instructions.END}\nafter\n")


def test_sources_are_written_as_cmake_does():
    assert "kernels_of<Float32>()" in gpu_instructions.text_of("float32")
    assert '#include "codecs/bucketed/qsgd.h"' in gpu_instructions.text_of("qsgd")
