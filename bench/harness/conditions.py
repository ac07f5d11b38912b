"""The machine and the versions that figures come from."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from arrcomp import _core


def machine_found() -> dict[str, str]:
    """What the machine is, by what is said of it."""
    import cpuinfo

    processor = cpuinfo.get_cpu_info()
    return {
        "processor": f"{processor.get('brand_raw', 'unknown')} ({platform.machine()})",
        "cores": str(_core.available_threads()),
        "instruction sets": ", ".join(_core.instruction_sets()),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
    }


def machine_name(machine: dict[str, str]) -> str:
    """What figures call a machine."""
    return f"{machine['processor']} / {machine['cores']} cores"


def version(package: str) -> str:
    """Version of an installed package, or "missing"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


class Watch:
    """The conditions of a measurement: when, how long, how busy the machine was, with which packages."""

    def __init__(self, versions: Sequence[str]) -> None:
        """`versions` are packages."""
        self.versions = versions
        self.start, self.load = time.monotonic(), os.getloadavg()[0]

    def stop(self) -> dict[str, Any]:
        """What is kept beside the figures."""
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "minutes": (time.monotonic() - self.start) / 60,
            "load before": self.load,
            "load after": os.getloadavg()[0],
            "versions": {name: version(name) for name in self.versions},
        }
