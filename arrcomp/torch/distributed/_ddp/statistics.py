"""Statistics of the communication hook, for each layer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....codecs import Codec


@dataclass
class LayerStatistics:
    """Statistics of one layer, or of all, since the state was created or loaded.

    Attributes:
        values: of its gradient.
        codec: of the last step; None if it was not compressed.
        sent_nbytes: bytes that this rank sent.
        plain_nbytes: bytes that an uncompressed ring all-reduce would have sent.
        squared_error: sum over steps of the squared L2 norm of the compression error: a number, or a scalar tensor.
        squared_norm: the same of the gradients.
    """

    values: int = 0
    codec: Codec | None = None
    sent_nbytes: int = 0
    plain_nbytes: int = 0
    squared_error: Any = 0.0
    squared_norm: Any = 0.0

    @property
    def saved_nbytes(self) -> int:
        """Bytes saved by compression."""
        return self.plain_nbytes - self.sent_nbytes

    @property
    def ratio(self) -> float:
        """Bytes of an uncompressed ring all-reduce divided by bytes sent; NaN if nothing was sent."""
        return self.plain_nbytes / self.sent_nbytes if self.sent_nbytes else math.nan

    @property
    def error(self) -> float:
        """Relative L2 norm of the compression error; NaN if it was not tracked. Synchronizes CUDA."""
        norm = float(self.squared_norm)
        return math.sqrt(float(self.squared_error) / norm) if norm else math.nan


def ring_nbytes(nbytes: int, world: int) -> int:
    """Bytes that each rank of a ring all-reduce sends."""
    return 2 * nbytes * (world - 1) // world


def total(layers: Mapping[str, LayerStatistics]) -> LayerStatistics:
    """Statistics of all layers together."""
    every = layers.values()
    values, sent, plain = (sum(getattr(x, name) for x in every) for name in ("values", "sent_nbytes", "plain_nbytes"))
    squares = (sum(float(getattr(x, name)) for x in every) for name in ("squared_error", "squared_norm"))
    return LayerStatistics(values, None, sent, plain, *squares)


_HEADERS = ("layer", "values", "codec", "sent", "saved", "ratio", "error")


def table(layers: Mapping[str, LayerStatistics], step: int) -> str:
    """A plain-text table of all layers and their total."""
    name, values, _codec, *figures = _row("all", total(layers))
    rows = [_HEADERS, *(_row(name, layer) for name, layer in layers.items())]
    rows += [(name, values, f"step {step}", *figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADERS))]
    signs = ["<" if header in ("layer", "codec") else ">" for header in _HEADERS]
    template = "  ".join(f"{{:{sign}{width}}}" for sign, width in zip(signs, widths, strict=True))
    lines = [template.format(*row).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _row(name: str, layer: LayerStatistics) -> tuple[str, ...]:
    sizes = [f"{nbytes / 1e6:,.3f} MB" for nbytes in (layer.sent_nbytes, layer.saved_nbytes)]
    ratios = ["" if math.isnan(value) else f"{value:.3g}" for value in (layer.ratio, layer.error)]
    bits = getattr(layer.codec, "bits", None)
    codec = "-" if layer.codec is None else layer.codec.name if bits is None else f"{layer.codec.name}, {bits} bits"
    return name, f"{layer.values:,}", codec, *sizes, *ratios
