"""Writes what was measured on a GPU into GPU.md, between two marks, from results that bench/gpu_session.sh appended.

    python bench/gpu_page.py RESULTS            keeps the figures in gpu.jsonl, and writes the section of GPU.md
    python bench/gpu_page.py                    the section once more, of the figures that are kept
    python bench/gpu_page.py --check            fails where the page is not what these give
    python bench/gpu_page.py RESULTS --print    prints the section, and keeps nothing

Of what was measured twice the last counts. A rehearsal's figures are kept nowhere but in a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.tables import between_marks, table
from kernels import lines
from kernels.lines import Line

BENCH = Path(__file__).parent
PAGE, FIGURES = "GPU.md", "gpu.jsonl"
BEGIN, END = "<!-- measured: written by bench/gpu_page.py -->", "<!-- /measured -->"
NOT_YET = """\
**Not yet measured.** `bench/gpu_session.sh` measures on a machine with a GPU; `bench/gpu_page.py` writes its figures
here."""
REHEARSED = "no GPU"  # the machine of a rehearsal begins with it
COMMON = 256 << 20  # bytes of the arrays of the first table
# What the project aims at on an H200 with arrays of that size: GB/s of their bytes; of quantizers a share of a copy.
AIMS = {
    "ErrorBounded 1e-3": {"encode": 1000, "decode": 1500},
    "ErrorBounded 1e-3 fast": {"encode": 2000, "decode": 2000},
    "Lossless, bfloat16": {"encode": 600, "decode": 800},
}
QUANTIZERS = ("QSGD 4 bits", "SmaQ nearest", "FloatFormat", "S2FP8", "Codebook")
AIM_OF_COPY = 0.8
_KEYS = ("kind", "task", "case", "what", "other", "variant", "step", "launch", "nbytes")
_KEPT = ("machine", "case", "sum", "activation", "call", "other", "variant", "profile")


def latest(found: Iterable[Line]) -> list[Line]:
    """Of lines of the same measurement the last; no failure of a task that was run again, and passed."""
    by_key: dict[tuple[Any, ...], Line] = {}
    for line in found:
        key = tuple(line.get(key) for key in _KEYS)
        by_key.pop(key, None)
        by_key[key] = line
    last = {line["task"]: line for line in by_key.values() if "task" in line}
    return [line for line in by_key.values() if line["kind"] != "task" or last[line["task"]] is line]


def is_rehearsal(found: Iterable[Line]) -> bool:
    """Whether the CPU stood in for a GPU."""
    return any(str(line.get("machine", "")).startswith(REHEARSED) or "rehearsed" in line for line in found)


# --- text


def gigabytes(nbytes: float, seconds: float) -> str:
    """A speed in GB/s."""
    return f"{nbytes / seconds / 1e9:.3g}" if seconds > 0 else "-"


def size_text(nbytes: int) -> str:
    """Bytes in MiB or GiB."""
    mebibytes = nbytes / (1 << 20)
    return f"{mebibytes / 1024:g} GiB" if mebibytes >= 1024 else f"{mebibytes:g} MiB"


def of_kind(found: Iterable[Line], kind: str) -> list[Line]:
    """The good lines of a kind."""
    return [line for line in found if line["kind"] == kind and not lines.is_bad(line) and "missing" not in line]


def share(half: Mapping[str, Any], copy: float) -> str:
    """Bytes moved in a second, against a copy's."""
    mark = "*" if half.get("waited") else ""
    return f"{100 * half['moved'] / copy:.0f}%{mark}" if "moved" in half else "-"


def machine_text(found: Sequence[Line]) -> str:
    """Where it was measured, and what a copy moves there."""
    names = sorted({line["machine"] for line in found if isinstance(line.get("machine"), str)})
    about = [f"Measured on {' and '.join(names)}."] if names else []
    for line in of_kind(found, "machine"):
        about.append(f"{line['framework']}; arrcomp {line['arrcomp']}; {line['processors']} processors.")
        about.append(f"A copy on the device reads and writes {line['copy'] / 1e12:.2f} TB/s.")
        about += [f"`nvidia-smi`: {line['nvidia_smi'][1]}."] if len(line.get("nvidia_smi", [])) > 1 else []
    return " ".join(about)


_ABOUT_CASES = """\
GB/s of the array's bytes, float32 of N(0, 0.02) where nothing else is said. The first figure of a half is by events
around the call's launches into preallocated memory (`*`: the device may have waited for the host); the third by the
profiler's times of the kernels; the fourth by the host's clock around the public call, until the device is done."""
_HALF_HEADS = ("GB/s", "% copy", "kernels alone", "call")


def _half_cells(half: Mapping[str, Any], nbytes: int, copy: float) -> list[str]:
    kernels = sum(half.get("kernels", {}).values())
    call = gigabytes(nbytes, half["call"]) if "call" in half else "-"
    return [gigabytes(nbytes, half["seconds"]), share(half, copy), gigabytes(nbytes, kernels), call]


def at_common_size(found: Iterable[Line], kind: str, key: str) -> dict[str, Line]:
    """Of each name the line with the largest arrays up to COMMON."""
    largest: dict[str, Line] = {}
    for line in of_kind(found, kind):
        if COMMON >= line["nbytes"] >= largest.get(line[key], line)["nbytes"]:
            largest[line[key]] = line
    return largest


def aims_text(found: Sequence[Line]) -> str:
    """What the project aims at, beside what was measured."""
    rows = []
    for name, line in at_common_size(found, "case", "case").items():
        for half in ("encode", "decode"):
            timed = line[half]
            speed, moved = timed["bytes_per_second"] / 1e9, timed["moved"] / line["copy"]
            if name in AIMS:
                aim, text = AIMS[name][half], f"{AIMS[name][half]} GB/s"
                rows.append([name, half, text, f"{speed:.0f} GB/s", "yes" if speed >= aim else "**no**"])
            elif name.startswith(QUANTIZERS):
                cells = [f"{AIM_OF_COPY:.0%} of a copy", f"{moved:.0%}", "yes" if moved >= AIM_OF_COPY else "**no**"]
                rows.append([name, half, *cells])
    heads = ["<", "<", "aim", "measured", "<met"]
    return f"### Aims\n\n{table(heads, rows)}" if rows else ""


def cases_text(found: Sequence[Line]) -> str:
    """Every case at one size."""
    of_case = at_common_size(found, "case", "case")
    if not of_case:
        return ""
    heads = [f"{half} {head}" for half in ("encode", "decode") for head in _HALF_HEADS]
    rows = []
    for name, line in of_case.items():
        cells = [
            cell for half in ("encode", "decode") for cell in _half_cells(line[half], line["nbytes"], line["copy"])
        ]
        rows.append([name, size_text(line["nbytes"]), f"{line['ratio']:.2f}", *cells])
    return f"### Every codec\n\n{_ABOUT_CASES}\n\n{table(['<case', 'array', 'ratio', *heads], rows)}"


def sizes_text(found: Sequence[Line]) -> str:
    """GB/s by size."""
    measured = of_kind(found, "case")
    sizes = sorted({line["nbytes"] for line in measured})
    by_case: dict[str, dict[int, Line]] = {}
    for line in measured:
        by_case.setdefault(line["case"], {})[line["nbytes"]] = line
    rows = []
    for name, by_size in by_case.items():
        for half in ("encode", "decode"):
            cells = [gigabytes(n, by_size[n][half]["seconds"]) if n in by_size else "" for n in sizes]
            rows.append([name, half, *cells])
    if not rows:
        return ""
    return f"### By size\n\nGB/s.\n\n{table(['<case', '<', *map(size_text, sizes)], rows)}"


def parts_text(found: Sequence[Line], kind: str, title: str, halves: Sequence[str]) -> str:
    """Measurements of several halves: microseconds and the share of a copy."""
    rows = []
    for line in of_kind(found, kind):
        cells = []
        for half in halves:
            timed = line.get(half)
            cells += [f"{timed['seconds'] * 1e6:.1f}", share(timed, line["copy"])] if timed else ["-", "-"]
        rows.append([line["what"], size_text(line["nbytes"]), *cells])
    heads = [head for half in halves for head in (f"{half}, us", "% copy")]
    return f"### {title}\n\n{table(['<', 'array', *heads], rows)}" if rows else ""


def calls_text(found: Sequence[Line]) -> str:
    """Public calls on the host's clock."""
    rows = [[line["what"], f"{line['seconds'] * 1e6:.1f}"] for line in of_kind(found, "call")]
    return f"### Calls\n\n{table(['<call', 'microseconds'], rows)}" if rows else ""


def others_text(found: Sequence[Line]) -> str:
    """What a user would pick instead, at the size of the first table, and what is not there."""
    largest = at_common_size(found, "other", "other")
    rows = []
    for name, line in largest.items():
        halves = [
            cell for half in ("encode", "decode") for cell in _half_cells(line[half], line["nbytes"], line["copy"])[:2]
        ]
        bits = f"{32 / line['ratio']:.2f}"
        rows.append([name, size_text(line["nbytes"]), bits, f"{line['error']:.2g}", *halves])
    absent = {line["other"]: line["missing"] for line in found if line["kind"] == "other" and "missing" in line}
    heads = ["<", "array", "bits a value", "relative error", "encode GB/s", "% copy", "decode GB/s", "% copy"]
    text = [table(heads, rows)] if rows else []
    text += (
        ["Not there, or failed:\n\n" + "\n".join(f"- {name}: {why}" for name, why in absent.items())] if absent else []
    )
    return "### What else one could pick\n\n" + "\n\n".join(text) if text else ""


def variants_text(found: Sequence[Line]) -> str:
    """Variants of the kernels side by side: GB/s."""
    measured = of_kind(found, "variant")
    columns = sorted({(line["case"], line["nbytes"]) for line in measured if "encode" in line})
    by_variant: dict[str, dict[tuple[str, int], Line]] = {}
    for line in measured:
        if "encode" in line:
            by_variant.setdefault(line["variant"], {})[line["case"], line["nbytes"]] = line
    rows = [
        [name, half, *(gigabytes(n, of[case, n][half]["seconds"]) if (case, n) in of else "" for case, n in columns)]
        for name, of in by_variant.items()
        for half in ("encode", "decode")
    ]
    heads = [f"{case}, {size_text(n)}" for case, n in columns]
    return f"### Variants of the kernels\n\nGB/s.\n\n{table(['<variant', '<', *heads], rows)}" if rows else ""


def profile_text(found: Sequence[Line]) -> str:
    """What the profiler says of one launch of each kernel."""
    measured = of_kind(found, "profile")
    names = list(dict.fromkeys(name for line in measured for name in line["metrics"]))
    rows = []
    for line in measured:
        metrics = [line["metrics"].get(name) for name in names]
        waits = ", ".join(f"{name} {value:.1f}" for name, value in line["stalls"].items())
        rows.append([line["kernel"], *(f"{each['value']:g} {each['unit']}" if each else "" for each in metrics), waits])
    if not rows:
        return ""
    about = "One launch each; stalls are cycles that a warp waits between two instructions, the most frequent reasons."
    return f"### The profiler\n\n{about}\n\n{table(['<kernel', *names, '<stalls'], rows)}"


def bad_text(found: Sequence[Line]) -> str:
    """What is wrong, failed or ran out of time."""
    rows = []
    for line in found:
        why = line.get("wrong") or line.get("failed")
        if line["kind"] == "step" and line["status"] != "passed":
            why = line["status"]
        if why:
            name = line.get("step") or line.get("task") or line["kind"]
            rows.append(f"- {name} {line.get('case') or line.get('what') or ''}: {why}".replace(" :", ":"))
    return "### What did not pass\n\n" + "\n".join(rows) if rows else ""


def checks_text(found: Sequence[Line]) -> str:
    """How much was compared with the CPU's bytes."""
    checks = [line for line in found if line["kind"] == "check"]
    passed = sum(not lines.is_bad(line) for line in checks)
    return f"Compared with the CPU's bytes: {passed} of {len(checks)} checks passed." if checks else ""


def section(found: Sequence[Line]) -> str:
    """All of it, in Markdown; the figures are `latest`."""
    if not any(line["kind"] in _KEPT and not lines.is_bad(line) for line in found):
        return "\n\n".join(part for part in (NOT_YET, checks_text(found), bad_text(found)) if part)
    parts = [
        "**A rehearsal without a GPU: these figures mean nothing.**" if is_rehearsal(found) else "",
        machine_text(found),
        checks_text(found),
        bad_text(found),
        aims_text(found),
        cases_text(found),
        sizes_text(found),
        others_text(found),
        variants_text(found),
        profile_text(found),
        parts_text(found, "sum", "Sums of payloads", ("accumulate", "encode_sum")),
        parts_text(found, "activation", "Few-bit activations", ("forward", "backward", "pytorch")),
        calls_text(found),
    ]
    return "\n\n".join(part for part in parts if part)


def with_section(text: str, found: Sequence[Line]) -> str:
    """The page with its section as these figures give it.

    Raises:
        ValueError: as `between_marks`.
    """
    return between_marks(text, BEGIN, END, f"\n\n{section(found)}\n\n")


# --- files


def write(folder: Path, found: Sequence[Line]) -> None:
    """Keep the figures, and write the page beside them."""
    page = folder / PAGE
    text = page.read_text() if page.exists() else (BENCH / PAGE).read_text()
    if found:
        (folder / FIGURES).write_text("".join(json.dumps(line) + "\n" for line in found))
    page.write_text(with_section(text, found))
    print(f"{page}: written")


def check(folder: Path) -> int:
    """Compare the page with what the figures give."""
    text = (folder / PAGE).read_text()
    if with_section(text, latest(lines.read(folder / FIGURES))) != text:
        print(f"{PAGE}: not what {FIGURES} gives; run bench/gpu_page.py", file=sys.stderr)
        return 1
    print(f"{PAGE}: as {FIGURES} gives")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, write or compare; gives the exit status."""
    parser = argparse.ArgumentParser(description="Writes what was measured on a GPU into GPU.md.")
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS", help="files of lines of JSON")
    parser.add_argument("--output", type=Path, default=BENCH, metavar="FOLDER", help="of the page and its figures")
    parser.add_argument("--print", action="store_true", help="print the section of these results, and write nothing")
    parser.add_argument("--check", action="store_true", help="compare the page with the figures that are kept")
    options = parser.parse_args(arguments)
    added = [line for path in options.results for line in lines.read(path)]
    if options.print:
        print(section(latest(added)))
        return 0
    if options.check:
        return check(options.output)
    if is_rehearsal(added) and options.output.resolve() == BENCH.resolve():
        parser.error("these results are a rehearsal's: --output names a folder for them")
    write(options.output, latest([*lines.read(options.output / FIGURES), *added]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
