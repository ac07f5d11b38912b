"""Instructions of each codec, counted, beside the cycles that they take: what holds a codec back.

`.ci/instructions.json` has those of calls on 65,536 values with AVX2, by callgrind. The same calls are timed
here, with AVX2 and with the best instruction set, in the cache: cycles by the least time and the clock.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from arrcomp import cpu
from harness.clock import gigahertz
from harness.timing import least_seconds

_CI = Path(__file__).parent.parent / ".ci"
COUNTED = "avx2"
CALLS = 50


def measured() -> dict[str, Any]:
    """Of each case and direction instructions a value, cycles a value with the same instructions, and with the best.

    Nothing where the processor has no such instructions, or its clock cannot be measured.
    """
    clock, best = gigahertz(), cpu.instruction_sets()[0]
    if clock is None or COUNTED not in cpu.instruction_sets():
        return {}
    counts = json.loads((_CI / "instructions.json").read_text())[COUNTED]
    found: dict[str, dict[str, dict[str, float]]] = {}
    counted = _counted_calls()
    for case, calls in counted.cases():
        for way, call in calls.items():
            figures = {"instructions": counts[case][way]}
            for name, instruction_set in (("cycles", COUNTED), ("best cycles", best)):
                cpu.use_instruction_set(instruction_set)
                figures[name] = least_seconds(call, CALLS) * clock * 1e9 / counted.VALUES
            found.setdefault(case, {})[way] = figures
    cpu.use_instruction_set(best)
    processor = {"clock": {"gigahertz": clock}, "best": {"instruction set": best}}
    return {"processor": processor, "cases": found}


def _counted_calls() -> Any:
    """The module that CI runs under callgrind."""
    spec = importlib.util.spec_from_file_location("counted_calls", _CI / "counted_calls.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
