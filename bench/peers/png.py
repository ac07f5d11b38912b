"""PNG, which stores pictures without loss, as Pillow writes it (zlib at its usual level)."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from . import Array, Kind, Payload

_COLOURS = (3, 4)


class Png:
    """Pictures of 8 bits, grey or in colours."""

    name = "PNG"
    kind: Kind = "lossless"

    def supports(self, array: Array) -> bool:
        is_picture = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in _COLOURS)
        return array.dtype == np.uint8 and is_picture

    def compress(self, array: Array, bound: float) -> Payload:
        file = io.BytesIO()
        Image.fromarray(array).save(file, "png")
        return Payload(file.getvalue(), file.tell())

    def decompress(self, payload: Payload, out: Array) -> Array:
        out[...] = Image.open(io.BytesIO(payload.data))
        return out
