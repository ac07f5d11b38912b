"""Write the golden streams: `python tests/support/write_golden.py`. Only for a new input or a new major version."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "independent"))

import golden_inputs

if __name__ == "__main__":
    sys.stdout.write("\n".join(golden_inputs.write()) + "\n")
