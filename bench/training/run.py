"""Runs: settings in, results out."""

import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

from arrcomp.torch.training._structures import Size
from training.data import Data, Part
from training.extras import Extras
from training.module import TrainingModule
from training.settings import Settings

__all__ = ["Result", "load", "train"]

_EXPECTED = (
    ".*does not have many workers",  # the data is in memory
    ".*Trying to infer the `batch_size`",
    ".*Total length of `(DataLoader|list)` across ranks",
    ".*The number of training batches.*is smaller than the logging interval",
    ".*`training_step` returned `None`",  # how a diverged run ends
    ".*isinstance\\(treespec, LeafSpec\\).* is deprecated",  # Lightning's own call
)


@dataclass(frozen=True)
class Result:
    """What came of a run.

    Attributes:
        seed: of the run.
        metric: its name.
        value: of the metric, after the last epoch; 0 if the run diverged.
        history: the metric after each epoch.
        sizes: bytes of each structure, over all of the run.
        seconds: that it took.
        diverged: whether its loss became infinite or NaN.
        peak_nbytes: the most memory that tensors took on a GPU (`torch.cuda.max_memory_allocated`); None on the CPU.
        samples: values of each structure, in float32.
    """

    seed: int
    metric: str
    value: float
    history: tuple[float, ...]
    sizes: Mapping[str, Size]
    seconds: float
    diverged: bool
    peak_nbytes: int | None = None
    samples: Mapping[str, Tensor] = field(repr=False, compare=False, default_factory=dict)

    @property
    def bits(self) -> float:
        """Bits for each 32 of what is compressed."""
        original = sum(size.original for size in self.sizes.values())
        return 32 * sum(size.compressed for size in self.sizes.values()) / original if original else 32.0


def load(settings: Settings) -> Data:
    """The data set of a run; errors are those of `DataSet.load`."""
    kind = settings.model_class.kind
    return settings.dataset_class.load(kind, settings.folder, task=settings.task, download=settings.download)


def train(
    settings: Settings,
    *,
    data: Data | None = None,
    extras: Extras | None = None,
    logs: Path | None = None,
    name: str = "run",
    progress: bool = True,
) -> Result:
    """Train a model once.

    Args:
        settings: of the run.
        data: the data set where it is loaded already.
        extras: other kinds of compression, which save memory.
        logs: a folder for Lightning's logs, CSV and TensorBoard; None for none.
        name: of the run in that folder.
        progress: whether to show a bar, where standard error is a terminal.

    Raises:
        DataNotFoundError, ImportError, TypeError, ValueError: as `load`, or the model's and the codecs' own.
    """
    extras = Extras() if extras is None else extras
    extras.check(settings)
    data = load(settings) if data is None else data
    with _quiet(), torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        model = extras.converted(settings.model_class.build(data.inputs))
        module = TrainingModule(model, data, settings, extras.wrap)
        trainer = _trainer(settings, logs, f"{name}-seed{settings.seed}", progress)
        on_gpu = trainer.strategy.root_device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(trainer.strategy.root_device)
        start = time.perf_counter()
        with extras.saved():
            trainer.fit(module, _batches(data.train, settings, True), _batches(data.test, settings, False))
        seconds = time.perf_counter() - start
        peak = torch.cuda.max_memory_allocated(trainer.strategy.root_device) if on_gpu else None
    module.compression.remove()
    meter = module.compression.meter
    history, diverged = tuple(module.history), module.diverged
    value = 0.0 if diverged or not history else history[-1]
    return Result(settings.seed, data.metric, value, history, meter.total, seconds, diverged, peak, meter.samples)


def _trainer(settings: Settings, logs: Path | None, name: str, progress: bool) -> Trainer:
    watched = progress and sys.stderr.isatty()
    loggers: Any = False
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
        table = CSVLogger(logs, name)
        loggers = [table, TensorBoardLogger(logs, name, version=table.version)]
    return Trainer(
        accelerator=settings.accelerator,
        devices=1,
        max_epochs=settings.epochs,
        logger=loggers,
        callbacks=[RichProgressBar()] if watched else None,
        enable_progress_bar=watched,
        enable_checkpointing=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        log_every_n_steps=10,
    )


def _batches(part: Part, settings: Settings, training: bool) -> DataLoader[Any]:
    """Whole batches by one index each; when training in a random order, without a last, smaller one."""
    data = TensorDataset(*part)
    if training:
        order: Any = RandomSampler(data, generator=torch.Generator().manual_seed(settings.seed))
        size, drop = min(settings.batch, len(data)), True
    else:
        order, size, drop = SequentialSampler(data), max(settings.batch, 256), False
    return DataLoader(data, sampler=BatchSampler(order, size, drop), batch_size=None)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Lightning's notes on devices and on what is meant here."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            for message in _EXPECTED:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        logger.setLevel(level)
