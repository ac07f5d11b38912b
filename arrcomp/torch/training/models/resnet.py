"""Residual networks."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..inputs import Images
from .base import MODELS, Model

_SMALL = 64  # pictures below this size are not made smaller before the first block


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut (K. He et al., arXiv:1512.03385, figure 5, left)."""

    expansion: ClassVar[int] = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        """`channels` come in, `width` go out."""
        super().__init__()
        self.conv1, self.bn1 = _conv(channels, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3), nn.BatchNorm2d(width)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.downsample = _shortcut(channels, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y)) + self.downsample(x)
        return torch.as_tensor(self.relu2(y))


class Bottleneck(nn.Module):
    """Three convolutions and a shortcut (arXiv:1512.03385, figure 5, right); the stride is that of the second one."""

    expansion: ClassVar[int] = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        """`channels` come in, four times `width` go out."""
        super().__init__()
        outer = width * self.expansion
        self.conv1, self.bn1 = _conv(channels, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = _conv(width, outer, 1), nn.BatchNorm2d(outer)
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()
        self.downsample = _shortcut(channels, outer, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.relu2(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y)) + self.downsample(x)
        return torch.as_tensor(self.relu3(y))


class ResidualNetwork(nn.Module):
    """Stages of blocks, each half as large and, after the first, twice as wide as the one before.

    Large pictures are made four times smaller first (arXiv:1512.03385, table 1); small ones are not (section 4.2).

    Args:
        inputs: pictures of any size.
        block: `BasicBlock` or `Bottleneck`.
        depths: how many blocks each stage has.
        width: of the first stage.
    """

    def __init__(
        self, inputs: Images, block: type[BasicBlock | Bottleneck], depths: Sequence[int], width: int = 64
    ) -> None:
        super().__init__()
        large = min(inputs.height, inputs.width) >= _SMALL
        self.conv1 = _conv(inputs.channels, width, 7 if large else 3, 2 if large else 1)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        channels, stages = width, []
        for number, depth in enumerate(depths):
            inner = width << number
            for step in range(depth):
                stages.append(block(channels, inner, 2 if number and not step else 1))
                channels = inner * block.expansion
        self.blocks = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, inputs.outputs)
        initialize(self)

    def forward(self, x: Tensor) -> Tensor:
        y = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return torch.as_tensor(self.fc(self.avgpool(self.blocks(y)).flatten(1)))


def initialize(model: nn.Module) -> None:
    """Weights of convolutions before ReLUs (K. He et al., arXiv:1502.01852, section 2.2)."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def _conv(channels: int, width: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, width, size, stride, size // 2, bias=False)


def _shortcut(channels: int, width: int, stride: int) -> nn.Module:
    if stride == 1 and channels == width:
        return nn.Identity()
    return nn.Sequential(_conv(channels, width, 1, stride), nn.BatchNorm2d(width))


@MODELS.add
class ResNet8(Model):
    """Three blocks, 16 to 64 channels: for small pictures, in seconds on a CPU."""

    name = "resnet8"
    kind = Images.kind

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        return ResidualNetwork(inputs, BasicBlock, (1, 1, 1), 16)


@MODELS.add
class ResNet18(Model):
    """18 layers."""

    name = "resnet18"
    kind = Images.kind

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        return ResidualNetwork(inputs, BasicBlock, (2, 2, 2, 2))


@MODELS.add
class ResNet34(Model):
    """34 layers."""

    name = "resnet34"
    kind = Images.kind

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        return ResidualNetwork(inputs, BasicBlock, (3, 4, 6, 3))


@MODELS.add
class ResNet50(Model):
    """50 layers."""

    name = "resnet50"
    kind = Images.kind

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        return ResidualNetwork(inputs, Bottleneck, (3, 4, 6, 3))
