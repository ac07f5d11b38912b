"""Inception v3 (C. Szegedy et al., arXiv:1512.00567), as torchvision has it, for pictures of any size."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from training.data import MODELS, Images, Model

_SMALL = 75  # pictures below this size are not made smaller before the first mixed block
_Sizes = int | tuple[int, int]


class Branches(nn.Module):
    """Several ways for one input, whose outputs' channels stand one after the other."""

    def __init__(self, *branches: nn.Module) -> None:
        """`branches` give pictures of one size."""
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class InceptionV3(nn.Module):
    """The network without its auxiliary classifier; small pictures meet a stem of stride 1."""

    def __init__(self, inputs: Images) -> None:
        """`inputs` are pictures of any size."""
        super().__init__()
        small = min(inputs.height, inputs.width) < _SMALL
        self.stem = _stem(inputs.channels, small)
        mixed: list[nn.Module] = [_mixed_a(192, 32), _mixed_a(256, 64), _mixed_a(288, 64), _reduce_b(288)]
        mixed += [_mixed_c(width) for width in (128, 160, 160, 192)]
        mixed += [_reduce_d(768), _mixed_e(1280), _mixed_e(2048)]
        self.mixed = nn.Sequential(*mixed)
        self.avgpool, self.dropout = nn.AdaptiveAvgPool2d(1), nn.Dropout(0.5)
        self.fc = nn.Linear(2048, inputs.outputs)
        for module in self.modules():  # weights before ReLUs (K. He et al., arXiv:1502.01852, section 2.2)
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        y = self.avgpool(self.mixed(self.stem(x))).flatten(1)
        return torch.as_tensor(self.fc(self.dropout(y)))


def _conv(channels: int, width: int, size: _Sizes, stride: int = 1, padding: _Sizes | None = None) -> nn.Sequential:
    """A convolution, by default of padding that keeps the size, with batch normalization and ReLU."""
    sizes = (size, size) if isinstance(size, int) else size
    around = (sizes[0] // 2, sizes[1] // 2) if padding is None else padding
    convolution = nn.Conv2d(channels, width, sizes, stride, around, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width, eps=1e-3), nn.ReLU())


def _chain(channels: int, steps: Sequence[tuple[int, _Sizes]]) -> nn.Sequential:
    layers = []
    for width, size in steps:
        layers.append(_conv(channels, width, size))
        channels = width
    return nn.Sequential(*layers)


def _pooled(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _conv(channels, width, 1))


def _stem(channels: int, small: bool) -> nn.Sequential:
    stride, padding = (1, 1) if small else (2, 0)
    pools = [nn.Identity() if small else nn.MaxPool2d(3, 2) for _ in range(2)]
    first = [_conv(channels, 32, 3, stride, padding), _conv(32, 32, 3, 1, padding), _conv(32, 64, 3)]
    return nn.Sequential(*first, pools[0], _conv(64, 80, 1), _conv(80, 192, 3, 1, padding), pools[1])


def _mixed_a(channels: int, pooled: int) -> nn.Module:
    """Figure 5."""
    return Branches(
        _conv(channels, 64, 1),
        _chain(channels, [(48, 1), (64, 5)]),
        _chain(channels, [(64, 1), (96, 3), (96, 3)]),
        _pooled(channels, pooled),
    )


def _reduce_b(channels: int) -> nn.Module:
    """Figure 10; tiny pictures are padded."""
    tall = _chain(channels, [(64, 1), (96, 3)])
    return Branches(
        _conv(channels, 384, 3, 2),
        nn.Sequential(tall, _conv(96, 96, 3, 2)),
        nn.MaxPool2d(3, 2, 1),
    )


def _mixed_c(width: int) -> nn.Module:
    """Figure 6, with n = 7."""
    wide, tall = (1, 7), (7, 1)
    return Branches(
        _conv(768, 192, 1),
        _chain(768, [(width, 1), (width, wide), (192, tall)]),
        _chain(768, [(width, 1), (width, tall), (width, wide), (width, tall), (192, wide)]),
        _pooled(768, 192),
    )


def _reduce_d(channels: int) -> nn.Module:
    """Figure 10, once more."""
    return Branches(
        nn.Sequential(_conv(channels, 192, 1), _conv(192, 320, 3, 2)),
        nn.Sequential(_chain(channels, [(192, 1), (192, (1, 7)), (192, (7, 1))]), _conv(192, 192, 3, 2)),
        nn.MaxPool2d(3, 2, 1),
    )


def _mixed_e(channels: int) -> nn.Module:
    """Figure 7."""
    return Branches(
        _conv(channels, 320, 1),
        nn.Sequential(_conv(channels, 384, 1), _split()),
        nn.Sequential(_chain(channels, [(448, 1), (384, 3)]), _split()),
        _pooled(channels, 192),
    )


def _split() -> nn.Module:
    return Branches(_conv(384, 384, (1, 3)), _conv(384, 384, (3, 1)))


@MODELS.add
class Inception(Model):
    """Inception v3."""

    name = "inception"
    kind = Images.kind

    @classmethod
    def build(cls, inputs: Images) -> nn.Module:
        return InceptionV3(inputs)
