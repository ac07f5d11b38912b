"""The machine and the versions that figures come from."""

from __future__ import annotations

import platform
from importlib import metadata

import cpuinfo

from arrcomp import _core, cpu


def machine_found() -> dict[str, str]:
    """What the machine is, by what is said of it."""
    processor = cpuinfo.get_cpu_info()
    return {
        "processor": f"{processor.get('brand_raw', 'unknown')} ({platform.machine()})",
        "cores": str(_core.available_threads()),
        "instruction sets": ", ".join(cpu.instruction_sets()),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
    }


def version(package: str) -> str:
    """Version of an installed package, or "missing"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"
