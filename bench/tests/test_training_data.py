"""Data sets in the layouts of their archives, made here, and what models make of them."""

from __future__ import annotations

import builtins
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import training.models  # noqa: F401 - which adds them
from arrcomp.errors import UnknownNameError
from training.choice import settings_for
from training.data import DATASETS, MODELS, Images, Tokens
from training.datasets.source import DataNotFoundError
from training.datasets.text import PADDING, SEPARATOR, START, UNKNOWN, Words
from training.models.encoder import Encoder

RNG = np.random.default_rng(3)


def test_digits_come_as_pictures_and_as_tokens() -> None:
    pytest.importorskip("sklearn")
    digits = DATASETS.find("digits")
    images, tokens = digits.load("images", Path()), digits.load("tokens", Path())
    assert images.inputs == Images(1, 8, 8, 10)
    assert tokens.inputs == Tokens(17, 64, 10)
    assert len(images.train[0]) + len(images.test[0]) == 1797
    for pictures, numbers in ((images.train, tokens.train), (images.test, tokens.test)):
        assert torch.equal(pictures[0].view(-1, 64) * 16, numbers[0].float())
        assert torch.equal(pictures[1], numbers[1])


def write_cifar(folder: Path, name: str, labels: int, count: int = 4) -> dict[str, Any]:
    """Files of the binary version: what is in them, by file."""
    home = {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}[name]
    files = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    written = {}
    (folder / home).mkdir()
    for file in files if name == "cifar10" else ["train.bin", "test.bin"]:
        rows = RNG.integers(0, 256, (count, labels + 3072), dtype=np.uint8)
        rows[:, :labels] %= 10
        rows.tofile(folder / home / file)
        written[file] = rows
    return written


@pytest.mark.parametrize(("name", "labels"), [("cifar10", 1), ("cifar100", 2)])
def test_cifar_is_read_from_its_binary_version(name: str, labels: int, tmp_path: Path) -> None:
    written = write_cifar(tmp_path, name, labels)
    data = DATASETS.find(name).load("images", tmp_path)
    assert data.inputs == Images(3, 32, 32, 10 if labels == 1 else 100)
    trained = np.concatenate([rows for file, rows in written.items() if not file.startswith("test")])
    tested = next(rows for file, rows in written.items() if file.startswith("test"))
    for (x, y), rows in ((data.train, trained), (data.test, tested)):
        assert np.array_equal(x.numpy(), rows[:, labels:].reshape(-1, 3, 32, 32))
        assert y.tolist() == rows[:, labels - 1].tolist()


def test_cifar_is_normalized_and_moved_or_mirrored_for_training_alone(tmp_path: Path) -> None:
    write_cifar(tmp_path, "cifar10", 1)
    data = DATASETS.find("cifar10").load("images", tmp_path)
    x = data.train[0]
    plain = data.prepare(x, False)
    expected = (x.double() / 255 - torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)) / torch.tensor(
        [0.2470, 0.2435, 0.2616]
    ).view(1, 3, 1, 1)
    torch.testing.assert_close(plain.double(), expected, atol=1e-5, rtol=0)
    padded = torch.nn.functional.pad(plain, [4] * 4)
    crops = {
        padded[i, :, top : top + 32, left : left + 32].flip(2 if mirrored else ()).numpy().tobytes()
        for i in range(len(x))
        for top in range(9)
        for left in range(9)
        for mirrored in (False, True)
    }
    torch.manual_seed(0)
    augmented = data.prepare(x, True)
    assert all(picture.contiguous().numpy().tobytes() in crops for picture in augmented)
    assert not torch.equal(augmented, plain)


def test_corrupt_cifar_files_are_refused(tmp_path: Path) -> None:
    write_cifar(tmp_path, "cifar10", 1)
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"data_batch_2.bin has 12,291 bytes; a multiple of 3,073"):
        DATASETS.find("cifar10").load("images", tmp_path)
    file.write_bytes(bytes([10]) + bytes(3072))
    with pytest.raises(ValueError, match="labels of 10 and more"):
        DATASETS.find("cifar10").load("images", tmp_path)


def test_imdb_is_read_from_its_folders(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for opinion in ("neg", "pos"):
            home = tmp_path / "aclImdb" / part / opinion
            home.mkdir(parents=True)
            for i in range(2):
                (home / f"{i}_7.txt").write_text(f"A {opinion} film, number {i}.", encoding="utf-8")
    data = DATASETS.find("imdb").load("tokens", tmp_path)
    assert data.train[1].tolist() == [0, 0, 1, 1]
    assert data.inputs.padding == PADDING
    assert data.inputs.separator is None
    assert data.train[0].shape == (4, 256)
    assert int(data.train[0].max()) < data.inputs.vocabulary
    assert len({tuple(row.tolist()) for row in data.train[0]}) == 4


ROWS = {
    "cola": ("CoLA", None, ["gj04", "1", "", "They drank the pub dry."]),
    "sst2": ("SST-2", ["sentence", "label"], ["a fine film", "1"]),
    "mrpc": ("MRPC", ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"], ["1", "7", "8", 'He said "no".', "No!"]),
    "stsb": ("STS-B", ["index", "sentence1", "sentence2", "score"], ["0", "A plane.", "A bird.", "2.500"]),
    "mnli": ("MNLI", ["sentence1", "sentence2", "gold_label"], ["One.", "Two.", "contradiction"]),
    "rte": ("RTE", ["index", "sentence1", "sentence2", "label"], ["0", "One.", "Two.", "entailment"]),
}
LABELS = {"cola": 1, "sst2": 1, "mrpc": 1, "stsb": 2.5, "mnli": 2, "rte": 0}
METRICS = {"cola": "matthews", "stsb": "pearson"}


def write_glue(folder: Path, task: str, *more: list[str]) -> None:
    home, heads, row = ROWS[task]
    (folder / home).mkdir(exist_ok=True)
    lines = [*([heads] if heads else []), row, *more]
    for part in ("train", "dev_matched" if task == "mnli" else "dev"):
        text = "".join("\t".join(line) + "\n" for line in lines)
        (folder / home / f"{part}.tsv").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("task", ROWS)
def test_glue_is_read_from_its_files(task: str, tmp_path: Path) -> None:
    write_glue(tmp_path, task, ["incomplete"])
    data = DATASETS.find("glue").load("tokens", tmp_path, task=task)
    pairs = task not in ("cola", "sst2")
    assert data.test[1].tolist() == [LABELS[task]]
    assert data.test[1].dtype == (torch.float32 if task == "stsb" else torch.int64)
    assert data.metric == METRICS.get(task, "accuracy")
    assert data.inputs.separator == (SEPARATOR if pairs else None)
    row = data.test[0][0].tolist()
    assert row[0] == START
    assert row.count(SEPARATOR) == 1 + pairs
    assert UNKNOWN not in row


def test_wrong_glue_files_are_refused(tmp_path: Path) -> None:
    write_glue(tmp_path, "mnli", ["One.", "Two.", "-"], ["One.", "Two.", "perhaps"])
    with pytest.raises(ValueError, match=r"label 'perhaps'; entailment, neutral, contradiction"):
        DATASETS.find("glue").load("tokens", tmp_path, task="mnli")
    (tmp_path / "SST-2").mkdir()
    for part in ("train", "dev"):
        (tmp_path / "SST-2" / f"{part}.tsv").write_text("text\tlabel\ngood\t1\n")
    with pytest.raises(ValueError, match=r"no column 'sentence'; its first line names text, label"):
        DATASETS.find("glue").load("tokens", tmp_path, task="sst2")
    (tmp_path / "SST-2" / "train.tsv").write_text("sentence\tlabel\ngood\t7\n")
    with pytest.raises(ValueError, match=r"label '7'; 0 to 1"):
        DATASETS.find("glue").load("tokens", tmp_path, task="sst2")


def test_downloads_go_by_way_of_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def load_dataset(path: str, configuration: str | None, *, split: str) -> list[dict[str, Any]]:
        calls.append((path, configuration, split))
        picture = np.full((32, 32, 3), 7, np.uint8)
        return [{"img": picture, "label": 3, "text": "Good.", "sentence": "Good.", "fine_label": 3}]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    for name, task in (("cifar10", None), ("imdb", None), ("glue", "cola")):
        dataset = DATASETS.find(name)
        data = dataset.load(dataset.kinds[0], tmp_path, task=task, download=True)
        assert data.test[1].tolist() == [3]
    assert calls[:2] == [("uoft-cs/cifar10", None, "train"), ("uoft-cs/cifar10", None, "test")]
    assert calls[-1] == ("nyu-mll/glue", "cola", "validation")


def test_downloads_without_datasets_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any) -> Any:
        if name == "datasets":
            raise ImportError("No module named 'datasets'")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install datasets"):
        DATASETS.find("imdb").load("tokens", tmp_path, download=True)


def test_long_texts_keep_a_part_of_each_sentence() -> None:
    words = Words([("one two three four", "five six")])
    row = words.encode([("one two three four", "five six")], 8)[0].tolist()
    assert row.count(SEPARATOR) == 2
    assert row[-1] == PADDING or row[-1] == SEPARATOR
    assert words.encode([("seven",)], 4)[0].tolist() == [START, UNKNOWN, SEPARATOR, PADDING]


@pytest.mark.parametrize("name", MODELS.names())
def test_every_model_gives_its_outputs_and_gradients_for_all_weights(name: str) -> None:
    model = MODELS.find(name)
    inputs: Any = Images(1, 8, 8, 10) if model.kind == "images" else Tokens(17, 12, 10, padding=0, separator=3)
    torch.manual_seed(0)
    built = model.build(inputs)
    x = torch.randn(2, 1, 8, 8) if model.kind == "images" else torch.tensor([[2, 5, 3, 6, 3] + [0] * 7] * 2)
    y = built(x)
    assert y.shape == (2, 10)
    y.square().sum().backward()
    assert all(p.grad is not None for p in built.parameters())


@pytest.mark.parametrize(
    ("name", "count"), [("resnet18", 11_689_512), ("resnet34", 21_797_672), ("resnet50", 25_557_032)]
)
def test_resnets_have_the_parameters_that_they_are_published_with(name: str, count: int) -> None:
    with torch.device("meta"):
        model = MODELS.find(name).build(Images(3, 224, 224, 1000))
    assert sum(p.numel() for p in model.parameters()) == count


def test_inception_has_the_parameters_that_it_is_published_with() -> None:
    with torch.device("meta"):
        model = MODELS.find("inception").build(Images(3, 299, 299, 1000))
    assert sum(p.numel() for p in model.parameters()) == 23_834_568  # without the auxiliary classifier


def test_padding_does_not_reach_the_encoders_outputs() -> None:
    torch.manual_seed(0)
    model = Encoder(Tokens(30, 12, 4, padding=0), layers=2, width=16, heads=2, dropout=0.0)
    tokens = torch.tensor([[2, 5, 6, 3]])
    padded = torch.nn.functional.pad(tokens, (0, 8))
    torch.testing.assert_close(model(tokens), model(padded), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "imdb", "glue"])
def test_a_data_set_that_is_not_there_says_what_to_do(name: str, tmp_path: Path) -> None:
    dataset = DATASETS.find(name)
    task = "mnli" if name == "glue" else None
    with pytest.raises(DataNotFoundError, match=r"not found. --data DIR must hold .*--download") as caught:
        dataset.load(dataset.kinds[0], tmp_path, task=task)
    assert isinstance(caught.value, FileNotFoundError)
    assert str(tmp_path) in str(caught.value)


def test_models_have_names_that_messages_list() -> None:
    names = {model.name for model in MODELS if model.__module__.startswith("training.models")}
    assert names == {"resnet8", "resnet18", "resnet34", "resnet50", "inception", "bert-tiny", "bert"}


def test_models_and_optimizers_suit_the_data_set() -> None:
    assert (settings_for().model, settings_for().optimizer) == ("resnet8", "sgd")
    assert (settings_for(dataset="imdb").model, settings_for(dataset="imdb").optimizer) == ("bert-tiny", "adamw")
    assert settings_for(model="bert-tiny").lr == 1e-3
    assert settings_for().lr == 0.05


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": "vgg"}, UnknownNameError, "model 'vgg' is unknown; there are"),
        ({"dataset": "mnist"}, UnknownNameError, "data set 'mnist' is unknown; there are"),
        (
            {"dataset": "imdb", "model": "resnet18"},
            ValueError,
            "resnet18 takes images, data set imdb has tokens",
        ),
        ({"dataset": "cifar10", "model": "bert"}, ValueError, "bert takes tokens, data set cifar10 has images"),
        ({"dataset": "glue"}, ValueError, r"task: expected one of data set glue's \(cola, .*, got None"),
        ({"dataset": "glue", "task": "ax"}, ValueError, "task: expected .*, got 'ax'"),
        ({"task": "cola"}, ValueError, "data set digits has no tasks"),
    ],
)
def test_settings_that_do_not_fit_are_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        settings_for(**arguments)
