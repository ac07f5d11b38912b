"""The command line `python bench/training`: `run` for any run, and a command for each measured question."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from arrcomp._arguments import checked_integer
from arrcomp._cli.choice import parameters
from arrcomp._cli.common import Json, one_line_errors, print_json, print_table
from arrcomp.codecs import Codec
from arrcomp.torch.training import CODECS, STRUCTURES, chosen_codecs
from harness.page import BENCH
from training import SECTIONS
from training.choice import settings_for
from training.data import DATASETS, MODELS
from training.extras import Extras
from training.plots import draw_histograms, draw_rates
from training.rows import Row, document, result_table, write
from training.run import load, train
from training.settings import OPTIMIZERS, Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")

_COMPRESSION, _TRAINING, _MEMORY, _OUTPUT = "What is compressed", "Training", "Memory saved for real", "Output"


def _option(panel: str, *names: str, **options: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **options)


@app.command()
def run(
    dataset: Annotated[str, _option(_TRAINING, help=", ".join(DATASETS.names()))] = "digits",
    model: Annotated[
        str | None, _option(_TRAINING, help=f"{', '.join(MODELS.names())}; a small one if not given.")
    ] = None,
    task: Annotated[str | None, _option(_TRAINING, help=f"Of glue: {', '.join(DATASETS.find('glue').tasks)}.")] = None,
    folder: Annotated[Path, _option(_TRAINING, "--data", metavar="DIR", help="Where the data sets' files are.")] = Path(
        "data"
    ),
    download: Annotated[bool, _option(_TRAINING, help="Fetch a data set that is not there, by `datasets`.")] = False,
    compress: Annotated[
        str, _option(_COMPRESSION, metavar="CODEC,...", help=f"{', '.join(CODECS.names())}; a run for each.")
    ] = "fp32",
    what: Annotated[
        str,
        _option(
            _COMPRESSION,
            metavar="STRUCTURE[:CODEC],...",
            help=f"all, {', '.join(STRUCTURES)}, optimizer.STATE; see above.",
        ),
    ] = "all",
    settings: Annotated[
        list[str] | None,
        _option(_COMPRESSION, "--set", metavar="NAME.PARAMETER=VALUE", help="Of a codec or of a structure; see above."),
    ] = None,
    master_weights: Annotated[
        bool, _option(_COMPRESSION, help="The optimizer updates weights that keep every bit.")
    ] = False,
    measure_every: Annotated[
        int, _option(_COMPRESSION, metavar="N", help="Count bytes in one step of N: on GPUs, counting synchronizes.")
    ] = 1,
    optimizer: Annotated[
        str | None, _option(_TRAINING, help=f"{', '.join(OPTIMIZERS)}; sgd for images, adamw for texts if not given.")
    ] = None,
    lr: Annotated[float | None, _option(_TRAINING, help="Learning rate; of sgd 0.05, else 0.001.")] = None,
    momentum: Annotated[float, _option(_TRAINING, help="Of sgd.")] = 0.9,
    weight_decay: Annotated[float, _option(_TRAINING)] = 0.0,
    milestones: Annotated[
        str,
        _option(_TRAINING, metavar="EPOCH,...", help="When to multiply the rate by --gamma, in place of a cosine."),
    ] = "",
    gamma: Annotated[float, _option(_TRAINING)] = 0.1,
    epochs: Annotated[int, _option(_TRAINING)] = 20,
    batch: Annotated[int, _option(_TRAINING)] = 32,
    seed: Annotated[int, _option(_TRAINING, help="The first one.")] = 0,
    seeds: Annotated[int, _option(_TRAINING, metavar="N", help="Runs of each setting.")] = 1,
    accelerator: Annotated[str, _option(_TRAINING, help="auto, cpu, gpu.")] = "auto",
    threads: Annotated[int | None, _option(_TRAINING, metavar="N", help="Of PyTorch and of codecs on the CPU.")] = None,
    activation_bits: Annotated[
        int | None, _option(_MEMORY, metavar="N", help="Activations keep N bits for the backward pass.")
    ] = None,
    randomized_linear: Annotated[
        float | None, _option(_MEMORY, metavar="SHARE", help="Linear layers keep this share of their inputs' rows.")
    ] = None,
    optimizer_state: Annotated[str | None, _option(_MEMORY, metavar="8bit", help="Kept so between steps.")] = None,
    saved_activations: Annotated[
        str | None,
        _option(_MEMORY, metavar="CODEC[:NAME=VALUE,...]", help="For all that is saved for the backward pass."),
    ] = None,
    modules: Annotated[
        list[str] | None,
        _option(_TRAINING, "--import", metavar="MODULE", help="Python module that adds models, data sets or codecs."),
    ] = None,
    output: Annotated[
        Path, _option(_OUTPUT, "-o", "--output", metavar="DIR", help="For logs, results.json and plots.")
    ] = Path("training-results"),
    plots: Annotated[bool, _option(_OUTPUT, help="Draw them.")] = True,
    as_json: Json = False,
) -> None:
    """Train a model while each chosen structure is compressed and at once decompressed after each use.

    **Structures**: `weights`, parameters' `gradients`, outputs of layers (`forward`), gradients there (`backward`), the
    `optimizer`'s state.

    `--compress smaq` all of them by SmaQ

    `--compress fp32,smaq,fp8 --seeds 3` three settings, three times each

    `--compress smaq --what weights,optimizer:fp16` these two alone, one of them by another codec

    `--compress smaq --what all,optimizer.exp_avg_sq:bf16` a part of the optimizer's state by another codec: where one
    makes a second moment 0, Adam divides by its epsilon, and does not learn

    `--compress smaq --set smaq.block_size=512 --set weights.main_bits=4` a codec's parameter everywhere, and for one
    structure

    `--compress fp8 --set fp8.format=fp8_e4m3` the other FP8

    `--dataset cifar10 --data DIR --model resnet34 --milestones 60,80 --epochs 100` from files in DIR

    `--dataset glue --task stsb --data DIR --model bert --lr 2e-5 --epochs 3` BERT on one of GLUE's tasks
    """
    with one_line_errors():
        for name in modules or []:
            importlib.import_module(name)
        base = settings_for(
            dataset=dataset,
            model=model,
            task=task,
            folder=folder,
            download=download,
            optimizer=optimizer,
            lr=lr,
            milestones=_milestones(milestones),
            gamma=gamma,
            momentum=momentum,
            weight_decay=weight_decay,
            epochs=epochs,
            batch=batch,
            seed=seed,
            measure_every=measure_every,
            accelerator=accelerator,
        )
        names = [name.strip() for name in compress.split(",")]
        codecs = {name: chosen_codecs(name, what, settings or []) for name in names}
        runs = {name: replace(base, codecs=codecs[name], master_weights=master_weights) for name in names}
        extras = Extras(activation_bits, randomized_linear, optimizer_state, _codec(saved_activations))
        for settings_of_run in runs.values():
            extras.check(settings_of_run)
        checked_integer("seeds", seeds, 1, 1 << 20)
        if threads is not None:
            torch.set_num_threads(checked_integer("threads", threads, 1, 1 << 20))
        rows = _train(runs, range(seed, seed + seeds), extras, output)
        about: dict[str, Any] = {
            "dataset": base.dataset,
            "task": base.task,
            "model": base.model,
            "what": what,
            "set": settings or [],
        }
        about |= {"optimizer": base.optimizer, "lr": base.lr, "epochs": epochs, "batch": batch}
        write(output / "results.json", about, rows)
        if plots:
            _draw(rows, f"{base.model} on {base.dataset}", output)
        if as_json:
            print_json(document(rows))
        else:
            print_table(result_table(rows), "bits: of 32; ratios of the structures")


def _add(name: str) -> None:
    """The command of a measured question."""

    def measure(
        quick: Annotated[bool, typer.Option(help="A little of it: the figures mean little.")] = False,
        folder: Annotated[Path, typer.Option("--output", metavar="DIR", help="For results.csv and the page.")] = BENCH,
    ) -> None:
        import results

        raise typer.Exit(results.measure([name], quick=quick, folder=folder))

    about = f"{SECTIONS[name].title}, measured: into results.csv and RESULTS.md."
    app.command(name.replace(" ", "-"), help=about, rich_help_panel="Measured questions")(measure)


for _name in SECTIONS:
    _add(_name)


def _train(runs: dict[str, Settings], seeds: Sequence[int], extras: Extras, output: Path) -> list[Row]:
    data = load(next(iter(runs.values())))
    rows = []
    for name, settings in runs.items():
        results = [
            train(replace(settings, seed=seed), data=data, extras=extras, logs=output / "logs", name=name)
            for seed in seeds
        ]
        rows.append(Row(name, results))
    return rows


def _draw(rows: Sequence[Row], title: str, output: Path) -> None:
    rates = {row.name: (row.bits, [result.value for result in row.results]) for row in rows}
    draw_rates(output / "rates.png", title, rows[0].results[0].metric, rates)
    for row in rows:
        samples = row.results[-1].samples
        if samples:  # a run that diverged early has none
            draw_histograms(output / f"values-{row.name}.png", f"{title}, {row.name}: before compression", samples)


def _milestones(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(epoch) for epoch in text.split(",") if epoch)
    except ValueError:
        raise ValueError(f"--milestones: expected epochs, as 60,80, got {text}") from None


def _codec(text: str | None) -> Codec | None:
    """The codec of CODEC[:NAME=VALUE,...]."""
    if text is None:
        return None
    name, colon, settings = text.partition(":")
    given = parameters(settings.split(","), "--saved-activations") if colon else {}
    return CODECS.find(name).make(given)
