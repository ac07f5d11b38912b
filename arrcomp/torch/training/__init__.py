"""Training with compressed structures: what does a number format, or a codec, cost in accuracy?

`Compression` works in any loop. A codec of one's own is a class, decorated with `@CODECS.add`.
"""

from ._codecs import CODECS, TrainingCodec
from ._plan import chosen_codecs
from ._structures import STRUCTURES, Compression, Meter, Size

__all__ = ["CODECS", "STRUCTURES", "Compression", "Meter", "Size", "TrainingCodec", "chosen_codecs"]
