"""Small models and a data set of the tests' own, as users add theirs to the training harness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn

from training.data import DATASETS, MODELS, Data, DataSet, Images, Model, Tokens
from training.settings import Settings


@MODELS.add
class SmallNet(Model):
    """Two convolutions."""

    name = "small-net"
    kind = "images"

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        first = (nn.Conv2d(inputs.channels, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        second = (nn.Conv2d(16, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        pixels = inputs.height * inputs.width // 4
        return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(64 * pixels, inputs.outputs))


class Block(nn.Module):
    """A perceptron for each token, with a residual sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(width), nn.Linear(width, 4 * width)
        self.activation, self.outer = nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.outer(self.activation(self.inner(self.norm(x))))


class Mean(nn.Module):
    """Of the tokens."""

    def forward(self, x: Any) -> Any:
        return x.mean(1)


@MODELS.add
class SmallPerceptron(Model):
    """Two layers for tokens."""

    name = "small-perceptron"
    kind = "tokens"

    @classmethod
    def build(cls, inputs: Tokens) -> nn.Module:
        layers = (Block(64), Block(64), nn.LayerNorm(64), Mean())
        return nn.Sequential(nn.Embedding(inputs.vocabulary, 64), *layers, nn.Linear(64, inputs.outputs))


@DATASETS.add
class Pictures(DataSet):
    """scikit-learn's digits; or the same as tokens, a pixel each."""

    name = "pictures"
    kinds = ("images", "tokens")

    @classmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        pixels, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
        inputs: Any = Images(1, 8, 8, 10) if kind == "images" else Tokens(17, 64, 10)
        x = pixels.float().view(-1, 1, 8, 8) / 16 if kind == "images" else pixels.long()
        return Data(inputs, (x[:1200], labels[:1200]), (x[1200:], labels[1200:]))


@DATASETS.add
class Texts(DataSet):
    """A data set with tasks, which is not there."""

    name = "texts"
    kinds = ("tokens",)
    tasks = ("first", "second")

    @classmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        raise FileNotFoundError(folder)


def settings_of(model: str = "small-net", **options: Any) -> Settings:
    """Settings of a run on the pictures."""
    return Settings("pictures", model, **options)
