"""scikit-learn's handwritten digits, which need no files."""

from pathlib import Path

import torch

from training.data import DATASETS, Data, DataSet, Images, Tokens

_MOST = 16  # of the pixels' values, which are integers


@DATASETS.add
class Digits(DataSet):
    """1797 pictures of 8 x 8 pixels, a third of them for testing; or the same as 64 tokens, a pixel each."""

    name = "digits"
    kinds = (Images.kind, Tokens.kind)

    @classmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        try:
            from sklearn.datasets import load_digits
            from sklearn.model_selection import train_test_split
        except ImportError as missing:
            raise ImportError(f"data set digits needs scikit-learn ({missing}): pip install scikit-learn") from None
        pixels, labels = load_digits(return_X_y=True)
        thirds = train_test_split(pixels, labels, test_size=1 / 3, random_state=0, stratify=labels)
        x, tested, y, expected = (torch.from_numpy(part) for part in thirds)
        if kind == Tokens.kind:
            tokens = Tokens(vocabulary=_MOST + 1, length=x.shape[1], outputs=10)
            return Data(tokens, (x.long(), y), (tested.long(), expected))
        images = [part.float().div(_MOST).view(-1, 1, 8, 8) for part in (x, tested)]
        return Data(Images(1, 8, 8, 10), (images[0], y), (images[1], expected))
