"""Checkpoints of a run: full files, and files of what has changed since the one before."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._arguments import checked_integer, shown
from ..codecs import Codec
from ..codecs._rules import Rule, checked_rules
from .content import checked_path
from .locations import Location
from .models import load_file, save_file
from .opened import open_file

_NAME = re.compile(r"step-([0-9]{10,})\.arrcomp\.safetensors")
_LAST = (1 << 63) - 1


class CheckpointChain:
    """Checkpoints of a run in a folder: one full file in `full_every`, between them files of what has changed.

    Each file between has the one before as its base (`save_file(..., base=)`). So a checkpoint needs those before it
    back to the last full one, and saving or loading it decompresses all of these, array by array. The files are plain
    ones, "step-0000000100.arrcomp.safetensors" for step 100, which `load_file` reads, too.

    Args:
        folder: of the checkpoints, and of nothing else with such names. It is made when the first one is saved.
        codec: same as in `save_file`. Errors do not add up: every checkpoint is within the bound of what was saved.
        full_every: how many files there are from one full one to the next, at least 1, where all are full.

    Raises:
        TypeError, ValueError: an argument is of a wrong type or value.

    >>> import numpy, tempfile, arrcomp
    >>> chain = arrcomp.CheckpointChain(tempfile.mkdtemp(), full_every=3)
    >>> for step in range(5):
    ...     path = chain.save({"w": numpy.full((30, 40), step, numpy.float32)}, step)
    >>> chain.steps(), float(chain.load(1)["w"][0, 0])
    ([0, 1, 2, 3, 4], 1.0)
    >>> chain.prune(1), chain.steps()
    ([0, 1, 2], [3, 4])
    """

    def __init__(
        self, folder: str | Path, codec: Codec | Sequence[Rule] | None = None, *, full_every: int = 10
    ) -> None:
        checked_rules(codec)
        self._folder, self._codec = checked_path(folder, "folder"), codec
        self._full_every = checked_integer("full_every", full_every, 1, _LAST)

    def steps(self) -> list[int]:
        """The steps of which there are checkpoints, in order."""
        if not self._folder.exists():
            return []
        found = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self._folder / f"step-{step:010}.arrcomp.safetensors"

    def save(self, tensors: Mapping[str, Any], step: int, **options: Any) -> Path:
        """Save a checkpoint, and return its file.

        Args:
            tensors: same as in `save_file`.
            step: its number, above that of the last checkpoint. (`rewind` removes later ones of an earlier run.)
            options: further arguments of `save_file`.

        Raises:
            ValueError: `step` is not above that of the last checkpoint; or no array is like one of the last checkpoint,
                which is then of another model.
            Others: same as in `save_file`.
        """
        steps = self.steps()
        least = steps[-1] + 1 if steps else 0
        expected = f"an integer of at least {least}, after the last checkpoint"
        step = checked_integer("step", step, least, _LAST, expected)
        self._folder.mkdir(parents=True, exist_ok=True)
        base = self.path(steps[-1]) if steps and len(self._needed(steps[-1])) < self._full_every else None
        save_file(tensors, self.path(step), self._codec, base=base, **options)
        return self.path(step)

    def load(self, step: int | None = None, **options: Any) -> dict[str, Any]:
        """Load the checkpoint of a step, or the last one.

        `options` are those of `load_file`, and so are the errors. ValueError if there is no such checkpoint.
        """
        steps = self.steps()
        if not steps:
            raise ValueError(f"{self._folder}: expected a checkpoint, got none")
        wanted = steps[-1] if step is None else step
        if wanted not in steps:
            raise ValueError(f"step: expected one of {shown(steps)} in {self._folder}, got {shown(wanted)}")
        return load_file(self.path(wanted), **options)

    def prune(self, keep: int) -> list[int]:
        """Remove old checkpoints, and return their steps.

        The last `keep` full ones, at least 1, stay, with all that follow the first of these. No checkpoint that stays
        needs one that is removed. Raises TypeError or ValueError for another `keep`.
        """
        keep, steps = checked_integer("keep", keep, 1, _LAST), self.steps()
        full = [step for step in steps if len(self._needed(step)) == 1]
        if len(full) <= keep:
            return []
        kept = [step for step in steps if step >= full[-keep]]
        needed = {path for step in kept for path in self._needed(step)}
        return self._remove([step for step in steps if self.path(step) not in needed])

    def rewind(self, step: int) -> list[int]:
        """Remove the checkpoints after a step, from which a run starts again, and return their steps."""
        step = checked_integer("step", step, 0, _LAST)
        return self._remove([each for each in self.steps() if each > step])

    def _needed(self, step: int) -> list[Location | None]:
        """The files that a checkpoint is made of: its own, and those of its chain of bases."""
        with open_file(self.path(step)) as file:
            return [each.location for each in file.chain()]

    def _remove(self, steps: list[int]) -> list[int]:
        for step in reversed(steps):  # the last first: if this is interrupted, the others are complete
            self.path(step).unlink()
        return steps
