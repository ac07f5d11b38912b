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
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def table(layers: Mapping[str, LayerStatistics], step: int, tracks_error: bool) -> str:
    """A plain-text table of all layers and their total; errors if they are measured, else how to measure them."""
    summed = total(layers)
    unit = next((unit for unit in _UNITS if summed.plain_nbytes >= unit[0]), _UNITS[-1])  # one for all rows
    name, values, _codec, *figures = _row("all", summed, unit)
    rows = [_HEADERS, *(_row(name, layer, unit) for name, layer in layers.items())]
    rows += [(name, values, f"step {step}", *figures)]
    columns = [column for column, header in enumerate(_HEADERS) if header != "error" or tracks_error]
    widths = {column: max(len(row[column]) for row in rows) for column in columns}
    signs = {column: "<" if _HEADERS[column] in ("layer", "codec") else ">" for column in columns}
    lines = ["  ".join(f"{row[c]:{signs[c]}{widths[c]}}" for c in columns).rstrip() for row in rows]
    lines[1:1] = ["  ".join("-" * widths[column] for column in columns)]
    note = [] if tracks_error else ["(for each layer's error, create the state with track_error=True)"]
    return "\n".join(lines + note)


def amount(nbytes: int) -> str:
    """A number of bytes in the largest unit in which it is at least 1."""
    return _amount(nbytes, next((unit for unit in _UNITS if nbytes >= unit[0]), (1.0, "bytes")))


def _amount(nbytes: int, unit: tuple[float, str]) -> str:
    size, name = unit
    return f"{nbytes / size:,.{0 if size == 1 else 3}f} {name}"


def _row(name: str, layer: LayerStatistics, unit: tuple[float, str]) -> tuple[str, ...]:
    sizes = [_amount(nbytes, unit) for nbytes in (layer.sent_nbytes, layer.saved_nbytes)]
    ratios = ["" if math.isnan(value) else f"{value:.3g}" for value in (layer.ratio, layer.error)]
    bits = getattr(layer.codec, "bits", None)
    codec = "-" if layer.codec is None else layer.codec.name if bits is None else f"{layer.codec.name}, {bits} bits"
    return name, f"{layer.values:,}", codec, *sizes, *ratios
