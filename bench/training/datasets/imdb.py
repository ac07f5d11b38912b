"""IMDB's film reviews (A. Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011)."""

from pathlib import Path

import torch

from training.data import DATASETS, Data, DataSet, Tokens

from .source import fetched, require
from .text import Text, Words

_HOME, _OPINIONS, _LENGTH = "aclImdb", ("neg", "pos"), 256
_ARCHIVE = "aclImdb_v1.tar.gz"
_HINT = (
    f"--data DIR must hold {_HOME}/train/pos, train/neg, test/pos and test/neg with a .txt file a review: "
    f"curl -O https://ai.stanford.edu/~amaas/data/sentiment/{_ARCHIVE}; tar xzf {_ARCHIVE} -C DIR. "
    "Or let --download fetch the data set"
)
_Reviews = tuple[list[Text], list[int]]


@DATASETS.add
class Imdb(DataSet):
    """50000 reviews, half of them for testing, for or against a film."""

    name = "imdb"
    kinds = (Tokens.kind,)

    @classmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        folders = [folder / _HOME / part / opinion for part in ("train", "test") for opinion in _OPINIONS]
        if download and not all(path.is_dir() for path in folders):
            train, test = _fetched("train"), _fetched("test")
        else:
            require(folders, cls.name, _HINT)
            train, test = _read(folders[:2]), _read(folders[2:])
        words = Words(train[0])
        parts = [(words.encode(texts, _LENGTH), torch.tensor(labels)) for texts, labels in (train, test)]
        return Data(words.tokens(_LENGTH, 2, pairs=False), parts[0], parts[1])


def _read(folders: list[Path]) -> _Reviews:
    texts: list[Text] = []
    labels: list[int] = []
    for label, folder in enumerate(folders):
        paths = sorted(folder.glob("*.txt"))
        if not paths:
            raise ValueError(f"{folder} has no .txt files, a review each")
        texts += [(path.read_text(encoding="utf-8"),) for path in paths]
        labels += [label] * len(paths)
    return texts, labels


def _fetched(part: str) -> _Reviews:
    rows = list(fetched("stanfordnlp/imdb", part))
    return [(row["text"],) for row in rows], [int(row["label"]) for row in rows]
