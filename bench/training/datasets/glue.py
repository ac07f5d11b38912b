"""GLUE's tasks (A. Wang et al., arXiv:1804.07461)."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from arrcomp.errors import UnknownNameError
from training.data import DATASETS, Data, DataSet, Part, Tokens

from .source import fetched, require
from .text import Text, Words

_LENGTH = 128
_ENTAILED = ("entailment", "not_entailment")


@dataclass(frozen=True)
class _Task:
    """Where a task's texts and labels are.

    Attributes:
        folder: of its files, as the benchmark's archives have it.
        texts: columns of one text or two; numbers where the files have no heads.
        label: that column.
        classes: the labels' words, or how many numbers there are; 1 for a number that is asked for.
        hub: the columns of texts as the Hub has them.
        metric: of the benchmark; where that is a pair of them, accuracy.
        test: the part that has labels and is not trained on.
    """

    folder: str
    texts: tuple[str | int, ...]
    label: str | int
    classes: tuple[str, ...] | int
    hub: tuple[str, ...]
    metric: str = "accuracy"
    test: str = "dev"

    @property
    def outputs(self) -> int:
        """Of the model."""
        return self.classes if isinstance(self.classes, int) else len(self.classes)


_PAIR = ("sentence1", "sentence2")
_QUESTIONS = ("question1", "question2")
_TASKS = {
    "cola": _Task("CoLA", (3,), 1, 2, ("sentence",), "matthews"),
    "sst2": _Task("SST-2", ("sentence",), "label", 2, ("sentence",)),
    "mrpc": _Task("MRPC", ("#1 String", "#2 String"), "Quality", 2, _PAIR),
    "qqp": _Task("QQP", _QUESTIONS, "is_duplicate", 2, _QUESTIONS),
    "stsb": _Task("STS-B", _PAIR, "score", 1, _PAIR, "pearson"),
    "mnli": _Task(
        "MNLI",
        _PAIR,
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        ("premise", "hypothesis"),
        test="dev_matched",
    ),
    "qnli": _Task("QNLI", ("question", "sentence"), "label", _ENTAILED, ("question", "sentence")),
    "rte": _Task("RTE", _PAIR, "label", _ENTAILED, _PAIR),
    "wnli": _Task("WNLI", _PAIR, "label", 2, _PAIR),
}


@DATASETS.add
class Glue(DataSet):
    """Nine tasks on English sentences; the part for development is what is tested."""

    name = "glue"
    kinds = (Tokens.kind,)
    tasks = tuple(_TASKS)

    @classmethod
    def load(cls, kind: str, folder: Path, *, task: str | None = None, download: bool = False) -> Data:
        if task not in _TASKS:
            raise UnknownNameError(f"task {task!r} of glue is unknown; there are {', '.join(_TASKS)}")
        about = _TASKS[task]
        paths = [folder / about.folder / f"{part}.tsv" for part in ("train", about.test)]
        if download and not all(path.exists() for path in paths):
            test = "validation_matched" if task == "mnli" else "validation"
            rows = [_fetched(task, part, about) for part in ("train", test)]
        else:
            hint = (
                f"--data DIR must hold {about.folder}/train.tsv and {about.test}.tsv, as the archives of "
                "https://gluebenchmark.com/tasks have them. Or let --download fetch the data set"
            )
            require(paths, f"glue, task {task}", hint)
            rows = [_read(path, about) for path in paths]
        words = Words(text for text, _ in rows[0])
        parts = [_encoded(part, words, about) for part in rows]
        return Data(words.tokens(_LENGTH, about.outputs, len(about.texts) > 1), parts[0], parts[1], about.metric)


_Rows = list[tuple[Text, float]]


def _encoded(rows: _Rows, words: Words, task: _Task) -> Part:
    numbers = torch.tensor([label for _, label in rows])
    labels: Tensor = numbers.float() if task.outputs == 1 else numbers.long()
    return words.encode([text for text, _ in rows], _LENGTH), labels


def _read(path: Path, task: _Task) -> _Rows:
    """A file's rows; those that are incomplete, as some of the benchmark's are, are left out."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    heads = [] if isinstance(task.label, int) else lines[:1]
    columns = [_column(path, name, heads) for name in (*task.texts, task.label)]
    complete = [line for line in lines[len(heads) :] if len(line) > max(columns)]
    rows = [(tuple(line[c] for c in columns[:-1]), line[columns[-1]]) for line in complete]
    found = [(text, _label(path, label, task)) for text, label in rows if label != "-"]  # "-": nobody agreed
    if not found:
        raise ValueError(f"{path} has no rows with {', '.join(map(str, (*task.texts, task.label)))}")
    return found


def _column(path: Path, name: str | int, heads: Sequence[Sequence[str]]) -> int:
    if isinstance(name, int):
        return name
    found = list(heads[0]) if heads else []
    if name not in found:
        raise ValueError(f"{path} has no column {name!r}; its first line names {', '.join(found) or 'none'}")
    return found.index(name)


def _label(path: Path, text: str, task: _Task) -> float:
    if isinstance(task.classes, tuple):
        if text not in task.classes:
            raise ValueError(f"{path}: label {text!r}; {', '.join(task.classes)} are expected")
        return task.classes.index(text)
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{path}: label {text!r}; a number is expected") from None
    if task.classes > 1 and number not in range(task.classes):
        raise ValueError(f"{path}: label {text!r}; 0 to {task.classes - 1} are expected")
    return number


def _fetched(task: str, part: str, about: _Task) -> _Rows:
    rows: list[Mapping[str, Any]] = list(fetched("nyu-mll/glue", part, configuration=task))
    return [(tuple(row[name] for name in about.hub), float(row["label"])) for row in rows]
