"""The machine and the versions that figures come from."""

from __future__ import annotations

import os
import platform
import textwrap
import time
from collections.abc import Mapping, Sequence
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
    """What figures call a machine. Processors of one name may have different instruction sets."""
    best = machine["instruction sets"].split(", ")[0]
    return f"{machine['processor']} with {best} / {machine['cores']} cores"


def version(package: str) -> str:
    """Version of an installed package, or "missing"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def said_of(document: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """The machines of a document, and when, how busy and with what each of its parts was measured, by its title."""
    parts = ["\n".join(_filled(f"- {name}: {value}") for name, value in about.items()) for about in _machines(document)]
    for name in (name for name in titles if name in document):
        made = document[name]
        versions = ", ".join(f"{package} {version}" for package, version in made["versions"].items())
        load = f"load average {made['load before']:.1f} before, {made['load after']:.1f} after"
        parts.append(_filled(f"{titles[name]}: {made['date']}, {load}; {versions}."))
    return "\n\n".join(parts)


def _machines(document: Mapping[str, Any]) -> list[dict[str, str]]:
    return list(document["machines"].values())


def _filled(line: str) -> str:
    return textwrap.fill(line, 120)


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
