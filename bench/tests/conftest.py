"""The benchmarks import each other by their own names."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as tests/conftest.py
sys.path[:0] = [str(HERE.parent), str(HERE)]
