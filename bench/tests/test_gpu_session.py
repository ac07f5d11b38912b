"""What runs on a GPU is rehearsed without one: the session's plan, its programs, and the page of its figures."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import arrcomp
import gpu
import gpu_check
import gpu_page
import gpu_profile
from kernels import lines
from kernels.cases import CASES, SIZES, sizes_of

BENCH = Path(__file__).parent.parent
SESSION = BENCH / "gpu_session.sh"
NAMES = r"--only ('[^']*'|\S+)"


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)


def patterns_of(function):
    """What the steps that call a function of the session choose."""
    steps = re.findall(rf"^step_\S+\(\) \{{([^}}]*\b{function} [^}}]*)\}}", SESSION.read_text(), re.MULTILINE)
    return [pattern.strip("'") for step in steps for pattern in re.findall(NAMES, step)]


# --- nothing is forgotten


@pytest.mark.parametrize("name", arrcomp.available_codecs())
def test_every_codec_is_measured_at_all_sizes(name):
    cases = [case for case in CASES.values() if case.codec.name == name]
    assert any(sizes_of(case, SIZES[-1]) == list(SIZES) for case in cases)


@pytest.mark.parametrize(("function", "program"), [("timed", gpu), ("checked", gpu_check)])
def test_the_session_runs_every_task_once(function, program):
    names = list(program.tasks(gpu.FULL if program is gpu else False))
    chosen = [name for pattern in patterns_of(function) for name in lines.chosen(names, [pattern])]
    assert sorted(chosen) == sorted(names)


def test_aims_are_of_cases_that_are_measured():
    assert set(gpu_page.AIMS) <= set(CASES)
    assert all(any(name.startswith(prefix) for name in CASES) for prefix in gpu_page.QUANTIZERS)


def test_every_codec_is_written_for_the_native_program(tmp_path):
    gpu_check.write_examples(tmp_path / "examples.txt")
    written = [line.split(maxsplit=3) for line in (tmp_path / "examples.txt").read_text().splitlines()]
    assert {int(number) for number, *_ in written} == {kind.id for kind in arrcomp.available_codecs().values()}
    for (_, _, count, rest), (name, case) in zip(written, CASES.items(), strict=True):
        words = rest.split(" ", int(count))
        assert [float.fromhex(word) for word in words[:-1]] == list(map(float, case.codec.core_parameters()))
        assert words[-1] == name


# --- the plan


def test_every_step_has_a_limit_below_ten_minutes():
    listed = dict(line.split() for line in run(SESSION, "--list").stdout.splitlines())
    assert set(listed) == set(re.findall(r"^step_([\w-]+)\(\)", SESSION.read_text(), re.MULTILINE))
    assert all(0 < int(seconds) < 600 for seconds in listed.values())


def test_a_step_of_no_name_is_refused(tmp_path):
    found = run(SESSION, "--out", tmp_path, "--only", "bulid")
    assert found.returncode == 1
    assert "no step is named bulid" in found.stderr


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
def test_without_a_gpu_nothing_is_begun(tmp_path):
    assert run(SESSION, "--out", tmp_path).returncode == 2
    assert not (tmp_path / "results.jsonl").exists()


def test_a_dry_run_tells_what_passed_and_what_did_not(tmp_path):
    found = run(
        SESSION,
        "--dry-run",
        "--out",
        tmp_path,
        "--only",
        "check",
        "page",
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"},
    )
    assert found.returncode == 1
    steps = {line["step"]: line["status"] for line in lines.read(tmp_path / "results.jsonl")}
    assert steps == {"check": "failed (1)", "page": "passed"}
    assert "run the step build first" in (tmp_path / "all.log").read_text()
    assert "check: failed (1)" in (tmp_path / "summary.txt").read_text()
    assert (tmp_path / "GPU.md").exists()


# --- its programs, on the CPU


@pytest.mark.parametrize(
    ("program", "task"), [("gpu.py", "case SmaQ nearest"), ("gpu.py", "sums"), ("gpu_check.py", "stress streams")]
)
def test_a_task_is_rehearsed(program, task, tmp_path):
    results = tmp_path / "results.jsonl"
    found = run(sys.executable, BENCH / program, "--rehearse", "--only", task, "--results", results)
    assert found.returncode == 0, found.stdout + found.stderr
    made = lines.read(results)
    assert made
    assert not any(map(lines.is_bad, made))
    assert all(line["machine"].startswith(gpu_page.REHEARSED) for line in made)


def test_what_differs_from_the_cpu_is_found(monkeypatch):
    from kernels.calls import HostCalls
    from kernels.device import HostFramework

    monkeypatch.setattr(HostCalls, "encode", lambda *arguments: None)
    line = next(gpu_check.check_codec(HostFramework(), "smaq", [777]))
    assert "payload" in line["wrong"]


def test_a_task_that_breaks_or_takes_long_costs_itself_alone(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\nif sys.argv[-1] == 'long': time.sleep(60)\nsys.exit(7 if sys.argv[-1] == 'broken' else 0)\n"
    )
    results = tmp_path / "results.jsonl"
    tasks = ["broken", "long", "good"]
    failed = lines.run_each([sys.executable, str(program)], tasks, results, seconds=2, within=60)
    assert failed == ["broken", "long"]
    assert [line["failed"] for line in lines.read(results)] == ["ended with 7", "took more than 2 s"]
    assert lines.run_each([sys.executable, str(program)], ["good"], results, seconds=2, within=0) == ["good"]
    assert lines.read(results)[-1]["failed"] == lines.NOT_BEGUN


# --- the page

MACHINE = "NVIDIA H200, CUDA 13.0"


def half(seconds):
    return {
        "seconds": seconds,
        "bytes_per_second": 1e12,
        "waited": False,
        "moved": 1e12,
        "kernels": {"k": seconds / 2},
        "call": 2 * seconds,
    }


def results_of(*more):
    about = {"machine": MACHINE, "copy": 4e12}
    case = {"kind": "case", "task": "case QSGD 4 bits", "case": "QSGD 4 bits", "ratio": 7.76}
    sizes = [
        case | about | {"nbytes": n, "encode": half(n / 2e12), "decode": half(n / 4e12)} for n in (1 << 20, 1 << 28)
    ]
    peer = {"kind": "other", "task": "other x", "other": "x", "nbytes": 1 << 28, "ratio": 4.0, "error": 0.02} | about
    variant = {"kind": "variant", "variant": "launch bounds 6", "case": "Lossless", "nbytes": 1 << 28} | about
    made = [
        *sizes,
        peer | {"encode": half(1e-4), "decode": half(1e-4)},
        {"kind": "other", "task": "other y", "other": "y", "nbytes": 1 << 28, "missing": "no module y"} | about,
        variant | {"encode": half(1e-3), "decode": half(1e-3)},
        {"kind": "check", "task": "codec qsgd", "what": "QSGD", "passed": True} | about,
        {"kind": "call", "task": "calls", "what": "compress, 1 KiB", "seconds": 1e-5} | about,
    ]
    return [*made, *more]


def write(path, made):
    path.write_text("".join(json.dumps(line) + "\n" for line in made))
    return path


def page_of(folder, made):
    assert gpu_page.main([str(write(folder / "results.jsonl", made)), "--output", str(folder)]) == 0
    return (folder / "GPU.md").read_text()


def test_figures_stand_on_the_page_with_the_machine(tmp_path):
    text = page_of(tmp_path, results_of())
    assert f"Measured on {MACHINE}." in text
    assert gpu_page.NOT_YET not in text
    assert "| QSGD 4 bits | 256 MiB | 7.76 | 2e+03 | 25% | 4e+03 | 1e+03 | 4e+03 |" in text
    assert "| x | 256 MiB | 8.00 | 0.02 |" in text
    assert "| QSGD 4 bits | encode | 80% of a copy | 25% | **no** |" in text
    assert "- y: no module y" in text
    assert "| launch bounds 6 | encode | 268 |" in text
    assert "1 of 1 checks passed" in text
    assert gpu_page.main(["--check", "--output", str(tmp_path)]) == 0


def test_a_page_by_hand_is_found(tmp_path):
    page_of(tmp_path, results_of())
    page = tmp_path / "GPU.md"
    page.write_text(page.read_text().replace("25%", "99%"))
    assert gpu_page.main(["--check", "--output", str(tmp_path)]) == 1


def test_later_results_replace_earlier_ones(tmp_path):
    task = {"task": "case QSGD 4 bits", "machine": MACHINE}
    failed = {"kind": "task", "failed": "ended with -11"} | task
    assert "ended with -11" in page_of(tmp_path, [*results_of(), failed])
    text = page_of(tmp_path, results_of())
    assert "ended with -11" not in text
    assert text.count("| QSGD 4 bits | 256 MiB |") == 1


def test_without_figures_the_page_says_so(tmp_path):
    assert gpu_page.NOT_YET in page_of(tmp_path, [])


def test_a_rehearsal_never_reaches_the_page(tmp_path):
    made = [line | {"machine": "no GPU: a rehearsal"} for line in results_of()]
    assert "these figures mean nothing" in page_of(tmp_path, made)
    with pytest.raises(SystemExit):
        gpu_page.main([str(tmp_path / "results.jsonl")])


def test_the_page_is_what_the_figures_give():
    assert gpu_page.main(["--check"]) == 0


def test_the_profilers_tables_are_read(tmp_path):
    details, raw, results = (tmp_path / name for name in ("details.csv", "raw.csv", "results.jsonl"))
    name = "void arrcomp::cuda::decode_kernel<arrcomp::cuda::Float32>(arrcomp::cuda::DecodeArguments)"
    details.write_text(
        '==PROF== a word of its own\n"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        f'"0","{name}","Compute","Issue Slots Busy","%","61.5"\n"0","{name}","Speed","Duration","us","1,234.5"\n'
        f'"0","{name}","Speed","SM Frequency","Ghz","1.7"\n'
    )
    stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    raw.write_text(
        f'"ID","Kernel Name","{stall.format("long_scoreboard")}","{stall.format("barrier")}"\n"","","inst","inst"\n'
        f'"0","{name}","4.5","0.5"\n'
    )
    assert gpu_profile.main([str(details), str(raw), "--results", str(results)]) == 0
    (line,) = lines.read(results)
    assert line["kernel"] == "decode_kernel"
    assert line["metrics"]["Duration"] == {"value": 1234.5, "unit": "us"}
    assert line["stalls"] == {"long_scoreboard": 4.5, "barrier": 0.5}
    assert "| decode_kernel | 61.5 % | 1234.5 us | long_scoreboard 4.5, barrier 0.5 |" in gpu_page.profile_text([line])
