"""Training with compressed structures: what does a number format, or a codec, cost in accuracy?

`Compression` works in any loop; `arrcomp.torch.training.run.train` trains on PyTorch Lightning. A model, a data set or
a codec of one's own is a class, decorated with `@MODELS.add`, `@DATASETS.add` or `@CODECS.add`.
"""

from .codecs import CODECS, TrainingCodec
from .data import DATASETS, MODELS, Data, DataSet, Images, Model, Tokens
from .plan import chosen_codecs
from .settings import Settings
from .structures import STRUCTURES, Compression, Meter, Size

__all__ = [
    "CODECS",
    "DATASETS",
    "MODELS",
    "STRUCTURES",
    "Compression",
    "Data",
    "DataSet",
    "Images",
    "Meter",
    "Model",
    "Settings",
    "Size",
    "Tokens",
    "TrainingCodec",
    "chosen_codecs",
]
