"""Names of kernels as people read them."""

from __future__ import annotations

import re

_ARGUMENTS = re.compile(r"<([^<>]*)>")


def short_name(kernel: str) -> str:
    """A kernel's name without namespaces, template parameters, parameters and what it returns."""
    name = kernel
    while (shorter := _ARGUMENTS.sub("", name)) != name:
        name = shorter
    plain = name.partition("(")[0].strip().rpartition(" ")[2]
    return plain.rpartition("::")[2] or kernel
