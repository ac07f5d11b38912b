"""A run as Lightning has it."""

from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.optim import lr_scheduler

from arrcomp.torch.training._structures import Compression
from training.data import METRICS, Data
from training.settings import Settings

Wrap = Callable[[torch.optim.Optimizer], torch.optim.Optimizer]


class TrainingModule(LightningModule):
    """Trains a model whose structures go through codecs, and logs what they take.

    Logged: `train_loss`, `test_loss` and `test_METRIC`; for each structure, of each epoch, `original_bytes/STRUCTURE`,
    `compressed_bytes/STRUCTURE` and `ratio/STRUCTURE`.

    `wrap` makes another optimizer of the settings' own, as `CompressedOptimizer` does; None for that itself.
    """

    def __init__(self, model: nn.Module, data: Data, settings: Settings, wrap: Wrap | None = None) -> None:
        super().__init__()
        self.model, self.data, self.settings, self.wrap = model, data, settings, wrap
        master = settings.master_weights
        self.compression = Compression(model, settings.codecs, seed=settings.seed, master_weights=master)
        self.history: list[float] = []  # the metric after each epoch
        self.diverged = False  # whether the loss became infinite or NaN, which ends the training
        self._outputs: list[Tensor] = []
        self._labels: list[Tensor] = []

    def configure_optimizers(self) -> Any:
        optimizer = self.settings.optimizer_of(self.model)
        if self.wrap is not None:
            optimizer = self.wrap(optimizer)
        self.compression.attach(optimizer)
        if self.settings.milestones:
            steps = self.trainer.estimated_stepping_batches / self.settings.epochs
            milestones = [int(epoch * steps) for epoch in self.settings.milestones]
            schedule: Any = lr_scheduler.MultiStepLR(optimizer, milestones, self.settings.gamma)
        else:
            schedule = lr_scheduler.CosineAnnealingLR(optimizer, int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        self.compression.measuring = self.global_step % self.settings.measure_every == 0
        last_epoch = self.current_epoch == self.settings.epochs - 1
        self.compression.sampling = last_epoch and batch_idx == 0

    def training_step(self, batch: Any, batch_idx: int) -> Tensor | None:
        x, labels = batch
        loss = self._loss(self.model(self.data.prepare(x, True)), labels)
        self.log("train_loss", loss.detach(), prog_bar=True)
        if not bool(loss.detach().isfinite()):
            self.diverged = self.trainer.should_stop = True
            return None
        return loss

    def on_train_epoch_end(self) -> None:
        for structure, size in self.compression.meter.take().items():
            self.log(f"original_bytes/{structure}", float(size.original))
            self.log(f"compressed_bytes/{structure}", float(size.compressed))
            self.log(f"ratio/{structure}", size.ratio)

    def on_validation_epoch_start(self) -> None:
        self.compression.measuring = self.compression.sampling = False

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, labels = batch
        outputs = self.model(self.data.prepare(x, False))
        self._outputs.append(outputs.float())
        self._labels.append(labels)

    def on_validation_epoch_end(self) -> None:
        outputs, labels = torch.cat(self._outputs), torch.cat(self._labels)
        self._outputs, self._labels = [], []
        value = METRICS[self.data.metric](outputs, labels)
        self.history.append(value)
        self.log("test_loss", self._loss(outputs, labels))
        self.log(f"test_{self.data.metric}", value, prog_bar=True)

    def _loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        if self.data.inputs.outputs == 1:
            return mse_loss(outputs.squeeze(1), labels)
        return cross_entropy(outputs, labels)
