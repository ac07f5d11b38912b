"""Texts as numbers of words."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from training.data import Tokens

PADDING, UNKNOWN, START, SEPARATOR = range(4)
_MOST_WORDS = 30_522  # as BERT's vocabulary
_WORD = re.compile(r"\w+|[^\w\s]")
Text = tuple[str, ...]  # one, or two that belong together


class Words:
    """The words that are frequent in some texts, in small letters, with their numbers."""

    def __init__(self, texts: Iterable[Text]) -> None:
        """`texts` are those of the training part."""
        counts = Counter(word for text in texts for part in text for word in _words(part))
        frequent = [word for word, _ in counts.most_common(_MOST_WORDS - SEPARATOR - 1)]
        self.numbers = {word: number for number, word in enumerate(frequent, SEPARATOR + 1)}

    def tokens(self, length: int, outputs: int, pairs: bool) -> Tokens:
        """What a model takes."""
        size = SEPARATOR + 1 + len(self.numbers)
        return Tokens(size, length, outputs, PADDING, SEPARATOR if pairs else None)

    def encode(self, texts: Sequence[Text], length: int) -> Tensor:
        """Texts as int64 numbers of shape (texts, length), as in BERT: a start, and a separator after each part.

        What is too long loses words at the ends of its parts, each about as many as the others keep.
        """
        rows = torch.full((len(texts), length), PADDING)
        for row, text in zip(rows, texts, strict=True):
            room = (length - 1) // len(text) - 1
            numbers = [START]
            for part in text:
                numbers += [self.numbers.get(word, UNKNOWN) for word in _words(part)[:room]]
                numbers.append(SEPARATOR)
            row[: len(numbers)] = torch.tensor(numbers)
        return rows


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
