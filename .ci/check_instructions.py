"""Counts the instructions a value that every codec takes; fails where they are many more than instructions.json says.

Times depend on the computer and on who else uses it; instructions, counted by valgrind's callgrind, do not. Under it
the processor has AVX2 and no AVX-512: AVX2 is counted, on one thread.

python -P .ci/check_instructions.py            of the installed package, a minute; needs valgrind and a C compiler
python -P .ci/check_instructions.py --write    writes the table again, after a change that is meant
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TABLE = Path(__file__).with_name("instructions.json")
CALLS = Path(__file__).with_name("counted_calls.py")
VALUES = 1 << 16  # of each array there
MOST = 1.25  # times what the table says is allowed: compilers differ
LESS = 0.8  # times what the table says, or less, is worth writing down
TOTAL = re.compile(r"^desc: Trigger: Client Request: (?P<name>.+?)$.*^(?:totals|summary): (?P<count>\d+)", re.M | re.S)
MARKS = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; }
void begin(void) { CALLGRIND_ZERO_STATS; }
void end(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


def tools():
    """Returns the paths of valgrind and of a C compiler.

    Raises:
        FileNotFoundError: one of them is missing.
    """
    found = shutil.which("valgrind"), shutil.which(os.environ.get("CC", "cc"))
    if None in found:
        raise FileNotFoundError("valgrind and a C compiler are needed: apt-get install valgrind gcc")
    return found


def counted():
    """Returns {isa: {case: {direction: instructions a value}}}."""
    valgrind, compiler = tools()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, library, out = folder / "marks.c", folder / "marks.so", folder / "counts"
        source.write_text(MARKS)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)  # noqa: S603
        callgrind = [valgrind, "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        python = [sys.executable, "-P", CALLS, library]
        subprocess.run([*callgrind, *python], env=os.environ | {"PYTHONHASHSEED": "0"}, check=True)  # noqa: S603
        reports = sorted(folder.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        return read_counts(path.read_text() for path in reports)


def read_counts(reports):
    """Returns `counted` of callgrind's reports, one for each mark."""
    counts = {}
    for match in filter(None, map(TOTAL.search, reports)):
        isa, case, direction = match["name"].split(": ")
        counts.setdefault(isa, {}).setdefault(case, {})[direction] = round(int(match["count"]) / VALUES, 2)
    return counts


def flat(counts):
    """Returns {"isa: case: direction": instructions a value}."""
    return {
        f"{isa}: {case}: {direction}": count
        for isa, cases in counts.items()
        for case, directions in cases.items()
        for direction, count in directions.items()
    }


def verdicts(counts, table):
    """Returns two lists of sentences: what is wrong, and what has become much cheaper than the table says."""
    now, before = flat(counts), flat(table)
    wrong = [f"{name}: is counted, but not in the table" for name in now.keys() - before.keys()]
    wrong += [f"{name}: is in the table, but not counted" for name in before.keys() - now.keys()]
    changes = {name: now[name] / before[name] for name in now.keys() & before.keys()}
    said = {
        name: f"{name}: {now[name]} instructions a value, {change:.2f} x {before[name]}"
        for name, change in changes.items()
    }
    wrong += [said[name] for name, change in changes.items() if change > MOST]
    return sorted(wrong), sorted(said[name] for name, change in changes.items() if change <= LESS)


def text(counts):
    """Returns the table as JSON, a line for each case."""
    isas = []
    for isa, cases in counts.items():
        lines = [f"  {json.dumps(case)}: {json.dumps(directions)}" for case, directions in cases.items()]
        isas.append(f" {json.dumps(isa)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(isas) + "\n}\n"


def main():
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description="Counts the instructions that every codec takes for a value.")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name} instead of comparing with it")
    options = parser.parse_args()
    try:
        counts = counted()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.write:
        TABLE.write_text(text(counts))
        return 0
    wrong, cheaper = verdicts(counts, json.loads(TABLE.read_text()))
    for sentence in cheaper:
        print(f"cheaper now (--write says so): {sentence}")
    for sentence in wrong:
        print(f"error: {sentence}", file=sys.stderr)
    print(f"{len(flat(counts))} counts compared, {len(wrong)} wrong, {len(cheaper)} much less")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
