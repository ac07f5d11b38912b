"""How keys and values are compressed: by which codecs, and in which order of their elements."""

from typing import Any, Literal

from torch import Tensor

from .._arguments import check_choice
from ..codecs import Codec, ErrorBounded, FloatFormat, Lossless

Layout = Literal["channel", "token"]

_LAYOUTS = ("channel", "token")


def checked_layout(name: str, layout: Any, codec: Codec) -> Layout:
    """The layout; for None the better one for the codec where both were measured (bench/KV_CACHES.md).

    By channel, a scale belongs to values of one range. Codecs that see each value alone are faster by token, as nothing
    is transposed, and their streams are as short.
    """
    if layout is None:
        alone = isinstance(codec, Lossless | ErrorBounded) or (isinstance(codec, FloatFormat) and codec.scaling is None)
        return "token" if alone else "channel"
    check_choice(name, layout, _LAYOUTS)
    checked: Layout = layout
    return checked


def turned(x: Tensor, layout: Layout) -> Tensor:
    """A view of (..., tokens, channels) with the axes in the order of the layout, or back."""
    return x.transpose(-1, -2) if layout == "channel" and x.ndim > 1 else x
