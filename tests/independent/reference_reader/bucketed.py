"""The codecs of section 5: the modules of this folder that have a CODEC, its id and its name, and a layout."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from .buckets import Layout
from .config import Parameters
from .dtypes import Dtype


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f".{found.name}", __package__)
        if hasattr(module, "CODEC"):
            yield module


NAMES: dict[int, str] = dict(module.CODEC for module in _modules())
LAYOUTS: dict[str, Callable[[Parameters, Dtype, int], Layout]] = {
    module.CODEC[1]: module.layout for module in _modules()
}
