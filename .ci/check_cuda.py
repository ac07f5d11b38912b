"""Reads the log of a CUDA build made with `-Xptxas -v`: prints each kernel's registers, fails on any spill.

Usage: check_cuda.py LOG ARCHITECTURE... [--page PAGE]    (for instance: check_cuda.py build.log 75 80 90 100 120)
With --page the table of bench/GPU.md is written too, between its marks: of several types the most.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ENTRY = re.compile(r"Compiling entry function '(?P<name>\S+)' for 'sm_(?P<architecture>\w+)'")
PROPERTIES = re.compile(r"Function properties for '?(?P<name>[\w$.]+)'?")
SPILLS = re.compile(r"bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (?P<registers>\d+) registers")
SHARED = re.compile(r"(?P<shared>\d+) bytes smem")


def demangle(names):
    """Returns the C++ name of each mangled name, without its parameters where c++filt is at hand."""
    program = shutil.which("c++filt")
    if program is None:
        return dict(zip(names, names, strict=True))
    mangled = "\n".join(names)
    plain = subprocess.run([program, "-p"], input=mangled, capture_output=True, text=True, check=True)  # noqa: S603
    return dict(zip(names, plain.stdout.splitlines(), strict=True))


def read_report(lines):
    """Returns {kernel: {architecture: "registers"}} and the list of spills, as sentences."""
    kernels, spills = {}, []
    kernel = function = architecture = None
    for line in lines:
        if match := ENTRY.search(line):
            kernel, architecture = match["name"], match["architecture"]
        elif match := PROPERTIES.search(line):
            function = match["name"]
        elif match := SPILLS.search(line):
            stores, loads = int(match["stores"]), int(match["loads"])
            if stores or loads:
                spills.append(f"{function} for sm_{architecture} spills: {stores} bytes stored, {loads} loaded")
        elif match := REGISTERS.search(line):
            shared = SHARED.search(line)
            used = match["registers"] + (f"+{int(shared['shared'])} B" if shared else "")
            kernels.setdefault(kernel, {})[architecture] = used
    return kernels, spills


def print_table(kernels, architectures):
    """Prints registers (and bytes of static shared memory) for each kernel and architecture."""
    names = demangle(list(kernels))
    print("registers + static shared memory".ljust(60), *(f"sm_{a}".rjust(12) for a in architectures))
    for kernel, used in kernels.items():
        print(names[kernel][:60].ljust(60), *(used.get(a, "missing").rjust(12) for a in architectures))


def kind_of(name):
    """Returns a kernel's name without its types' names, and whether it calculates with 64 bits."""
    plain = re.sub(r"^void |arrcomp::cuda::|\(.*$", "", name)
    kernel = plain.partition("<")[0].removesuffix("_kernel").replace("_", " ")
    coder = re.search(r"<(Qsgd|Smaq|FloatFormat|S2fp8|Codebook)\b", plain)
    wide = re.search(r"Float64|Lanes<double>", plain) is not None
    return kernel + (f", {coder[1]}" if coder else ""), wide


def table_of(kernels, architectures):
    """Returns the page's table."""
    names = demangle(list(kernels))
    most = {}
    for kernel, used in kernels.items():
        line = most.setdefault(kind_of(names[kernel]), dict.fromkeys(architectures, 0))
        for architecture in architectures:
            line[architecture] = max(line[architecture], int(used.get(architecture, "0").partition("+")[0]))
    lines = [f"| kernel | elements | {' | '.join(f'sm_{a}' for a in architectures)} |"]
    lines.append("|---|---|" + "---:|" * len(architectures))
    for (kernel, wide), used in sorted(most.items()):
        of = "64 bits" if wide else "8 to 32 bits"
        lines.append(f"| {kernel} | {of} | {' | '.join(str(used[a]) for a in architectures)} |")
    return "\n".join(lines)


def write_page(page, table):
    """Puts the table between its marks."""
    begin, end = "<!-- registers: written by .ci/check_cuda.py -->", "<!-- /registers -->"
    before, _, rest = Path(page).read_text().partition(begin)
    Path(page).write_text(f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}")


def main(log, *architectures, page=None):
    """Returns the exit status: 0 when every kernel is there for every architecture and nothing spills."""
    kernels, problems = read_report(Path(log).read_text(errors="replace").splitlines())
    if not kernels:
        problems.append(f"{log} reports no kernel: was it built with -Xptxas -v?")
    print_table(kernels, architectures)
    if page is not None:
        write_page(page, table_of(kernels, architectures))
    for kernel, used in kernels.items():
        problems += [f"{kernel} was not compiled for sm_{a}" for a in architectures if a not in used]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("architectures", nargs="+")
    parser.add_argument("--page")
    options = parser.parse_args()
    sys.exit(main(options.log, *options.architectures, page=options.page))
