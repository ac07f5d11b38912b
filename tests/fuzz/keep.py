"""Keeps of many inputs the fewest that reach as much, in the tree.

python tests/fuzz/keep.py PROGRAM CODEC FOLDER...    the fuzzer; the inputs of a codec's in these, and those kept before
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("support", "independent")]

import fuzz_inputs


def keep(program: str, name: str, folders: list[str]) -> int:
    """Write the corpus; how many inputs it has."""
    with tempfile.TemporaryDirectory() as work:
        kept, before = Path(work, "kept"), Path(work, "before")
        kept.mkdir()
        before.mkdir()
        if (fuzz_inputs.FOLDER / "corpus" / f"{name}.zip").exists():
            for entry, data in fuzz_inputs.corpus(name).items():
                (before / entry).write_bytes(data)
        # Without counters an input that only reaches code more often is not kept.
        command = [program, "-merge=1", "-use_counters=0", "-max_len=4096", str(kept), *folders, str(before)]
        number = 1 + list(fuzz_inputs.VARIANTS).index(name)
        subprocess.run(command, env=os.environ | {"ARRCOMP_FUZZ_CODEC": str(number)}, check=True)
        inputs = [path.read_bytes() for path in kept.iterdir()]
    fuzz_inputs.write_corpus(name, inputs)
    return len(inputs)


if __name__ == "__main__":
    print(f"{keep(sys.argv[1], sys.argv[2], sys.argv[3:])} inputs are kept")
