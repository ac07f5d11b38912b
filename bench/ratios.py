"""Measures arrcomp's ratios and errors in results.csv again, and leaves all else there as it was measured.

python bench/ratios.py      a minute, on any machine: bytes do not depend on it, as speeds do

For a change of the byte format, or of what writers choose, that speeds hardly show.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

import ours
import results
import run
from data import standard_subjects
from harness.page import BENCH
from measure import quality_of

SECTION = "compressors"


def renew(found: Mapping[str, Any], quick: bool = False) -> None:
    """Put ratios and errors of today's bytes in place of those that were `found` of all settings of arrcomp."""
    for subject in standard_subjects(quick):
        for setting in subject.settings():
            for compressor in ours.standard(1):
                if compressor.kind != run.kind_of(setting) or not compressor.supports(subject.values):
                    continue
                payload = compressor.compress(subject.values, setting.bound or 0.0)
                restored = compressor.decompress(payload, np.zeros_like(subject.values))
                figures = quality_of(subject.values, payload, restored, setting)
                for name, measured in found[subject.name][setting.label].items():
                    if name.startswith(ours.NAME) and ours.is_fast(name) == ours.is_fast(compressor.name):
                        measured.update(figures)


def main() -> None:
    """Renew the file and the pages."""
    path = BENCH / results.PAGE.file
    document = results.PAGE.read(path)
    renew(document[SECTION]["found"])
    document[SECTION]["ratios"] = datetime.now(UTC).date().isoformat()
    results.PAGE.write(path, document)
    results.PAGE.show(BENCH, [SECTION])


if __name__ == "__main__":
    main()
