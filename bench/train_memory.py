"""Trains small models with compressed structures, and writes TRAINING_MEMORY.md, .json and .png files beside this file.

    python bench/train_memory.py                  all runs that training_memory.json does not have yet, then the page
    python bench/train_memory.py --seeds 1        fewer
    python bench/train_memory.py --page           the page alone

A quarter of an hour on a quiet core. Runs are kept in the JSON file one by one: started again, it goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import arrcomp
from arrcomp.torch._saved_memory import saved_memory
from arrcomp.torch.training import Data, Settings, Size, Tokens, chosen_codecs
from arrcomp.torch.training.extras import Extras
from arrcomp.torch.training.models.encoder import Encoder
from arrcomp.torch.training.plots import draw_histograms, draw_rates
from arrcomp.torch.training.results import Row
from arrcomp.torch.training.run import Result, load, train
from conditions import machine_found, version
from text_table import table

RESNET, ENCODER = "resnet8", "bert-tiny"
BASES = {
    RESNET: Settings(model=RESNET, epochs=5),
    ENCODER: Settings(model=ENCODER, epochs=10, lr=3e-3),
}
FP32 = "fp32"
_FAILING = "smaq, second moments too"  # not drawn: the others would lie on one line
_STRUCTURES = {RESNET: "all", ENCODER: "all,optimizer.exp_avg_sq:bf16"}


@dataclass(frozen=True)
class Case:
    """What is tried on a model.

    Attributes:
        against: the case whose accuracy it is compared with.
        bound: points of accuracy that it may cost; None where it is shown alone.
        codec: of the structures; None where none is simulated.
        what: structures; None for the model's usual ones.
        parameters: of the codec, as of `chosen_codecs`.
        extras: what is compressed for real.
        optimizer: None for the model's usual one.
        master_weights: as of `Compression`.
    """

    against: str = FP32
    bound: float | None = None
    codec: str | None = None
    what: str | None = None
    parameters: tuple[str, ...] = ()
    extras: Extras = field(default_factory=Extras)
    optimizer: str | None = None
    master_weights: bool = False

    def settings(self, model: str, seed: int) -> Settings:
        """Of a run."""
        codecs = (
            {} if self.codec is None else chosen_codecs(self.codec, self.what or _STRUCTURES[model], self.parameters)
        )
        base = replace(BASES[model], codecs=codecs, master_weights=self.master_weights, seed=seed, measure_every=10)
        if self.optimizer is None:
            return base
        return replace(base, optimizer=self.optimizer, lr=3e-3)


_FORMATS = {
    FP32: Case(),
    "smaq": Case(codec="smaq", bound=1.0),
    "smaq, master weights": Case(codec="smaq", bound=1.0, master_weights=True),
    "smaq, blocks of 128": Case(codec="smaq", bound=1.0, parameters=("smaq.block_size=128",)),
    "fp8": Case(codec="fp8"),
    "s2fp8": Case(codec="s2fp8"),
}
CASES: dict[str, dict[str, Case]] = {
    RESNET: {
        **_FORMATS,
        "Adam": Case(optimizer="adam"),
        "Adam, 8-bit state": Case("Adam", 0.5, optimizer="adam", extras=Extras(optimizer_state="8bit")),
    },
    ENCODER: {
        **_FORMATS,
        "3-bit GELU": Case(bound=0.5, extras=Extras(activation_bits=3)),
        "RandomizedLinear 0.2": Case(bound=1.0, extras=Extras(randomized_linear=0.2)),
        "both": Case(extras=Extras(activation_bits=3, randomized_linear=0.2)),
        "AdamW, 8-bit state": Case(bound=0.5, extras=Extras(optimizer_state="8bit")),
        _FAILING: Case(codec="smaq", what="all"),
    },
}
_FEWBIT = {  # GiB, its README
    "plain": (Extras(), 11.30),
    "3-bit GELU": (Extras(activation_bits=3), 9.75),
    "RandomizedLinear 0.2": (Extras(randomized_linear=0.2), 9.20),
    "both": (Extras(activation_bits=3, randomized_linear=0.2), 7.60),
}
_GIB = 1 << 30

_HOW = f"""\
scikit-learn's digits, two thirds of them for training; `python -m arrcomp.torch.training` does such runs.
{RESNET}: a ResNet with three blocks and 16 to 64 channels, {BASES[RESNET].epochs} epochs of SGD with momentum.
{ENCODER}: an encoder of two layers and width 64, which sees a picture as 64 tokens, a pixel each;
{BASES[ENCODER].epochs} epochs of AdamW. Batches of 32. Accuracy is that on the other third (599 pictures: one is 0.17
points) after the last epoch, in percent, the mean of the seeds, with the least and the most. "points" is the difference
to the row that it is compared with. "holds" says whether what was wanted came out; where nothing stands, nothing was
asked for. A run whose loss becomes infinite or NaN counts as 0."""
_SIMULATED = """\
Weights, gradients, outputs of layers, gradients there and the optimizer's state go through the codec after each use,
rounded at random. With master weights the optimizer updates weights that keep every bit; without them the rounding of
each step adds to that of the last one. SmaQ measures mean and deviation of blocks of 1024 values, or of 128, which
takes half a bit more and is what the encoder wants: presumably since a small gradient that shares a block with large
ones gets noise of their size, which AdamW, dividing by the gradient's own size, makes large. Of the encoder, AdamW's
second moments are bfloat16 in all rows but the last: what a codec rounds to 0 there makes AdamW divide by its epsilon.
Ratios are original bytes over payload bytes, in one step of ten."""
_REAL = """\
What is compressed here is smaller in memory. "saved" are bytes that autograd keeps for the backward pass of a batch of
32, parameters not counted, by `saved_memory`; "state" those of the optimizer's state between steps."""
_BASE = """\
Beside FewBit's table, which is of RoBERTa base on MRPC at batch 128: an encoder of that size (12 layers, width 768, a
vocabulary of 50265, dropout 0.1) on 128 texts of 128 tokens in float32. Counted from shapes, without memory (PyTorch's
fake tensors): what autograd keeps, and with weights, gradients and the two moments of AdamW. FewBit's are peaks on a
GPU as its README has them; ours, `torch.cuda.max_memory_allocated`, are not yet measured."""


def result_from(record: Mapping[str, Any]) -> Result:
    """A run as the JSON file has it."""
    sizes = {name: Size(**size) for name, size in record["sizes"].items()}
    named = {name: record[name] for name in ("seed", "metric", "value", "seconds", "diverged")}
    return Result(history=tuple(record["history"]), sizes=sizes, **named)


def record_of(model: str, name: str, result: Result) -> dict[str, Any]:
    """A run for the JSON file."""
    named = {key: getattr(result, key) for key in ("seed", "metric", "value", "seconds", "diverged")}
    sizes = {key: asdict(size) for key, size in result.sizes.items()}
    return {"model": model, "case": name, **named, "history": list(result.history), "sizes": sizes}


def train_all(path: Path, seeds: int, data: Mapping[str, Data]) -> None:
    """Do the runs that are not done yet, seed by seed."""
    records = json.loads(path.read_text()) if path.exists() else []
    done = {(record["model"], record["case"], record["seed"]) for record in records}
    for seed in range(seeds):
        for model, cases in CASES.items():
            for name, case in cases.items():
                if (model, name, seed) in done:
                    continue
                result = train(case.settings(model, seed), data=data[model], extras=case.extras, progress=False)
                records.append(record_of(model, name, result))
                path.write_text(json.dumps(records, indent=1) + "\n")
                print(f"{model}, {name}, seed {seed}: {100 * result.value:.2f} in {result.seconds:.0f} s", flush=True)
                if seed == 0 and name == "smaq":
                    title = f"{model} on digits, before compression by SmaQ"
                    draw_histograms(path.with_name(f"training_values_{model}.png"), title, result.samples)


def saved_nbytes(model: str, case: Case, data: Data) -> int:
    """Bytes that autograd keeps for a batch."""
    torch.manual_seed(0)
    built = case.extras.converted(BASES[model].model_class.build(data.inputs))
    with case.extras.saved():
        return saved_memory(built, data.prepare(data.train[0][: BASES[model].batch], True)).nbytes


def state_nbytes(model: str, case: Case, data: Data) -> int:
    """Bytes of the optimizer's state after a step."""
    torch.manual_seed(0)
    settings = case.settings(model, 0)
    built = settings.model_class.build(data.inputs)
    optimizer = case.extras.wrap(settings.optimizer_of(built))
    built(data.prepare(data.train[0][:8], True)).square().sum().backward()
    optimizer.step()
    memory: Any = getattr(optimizer, "memory", None)
    if memory is not None:
        return int(memory().nbytes)
    return sum(value.nbytes for state in optimizer.state.values() for value in state.values())


def rows_of(records: Sequence[Mapping[str, Any]], model: str) -> dict[str, Row]:
    """The runs of each case that there are."""
    rows = {}
    for name in CASES[model]:
        results = [result_from(r) for r in records if r["model"] == model and r["case"] == name]
        if results:
            rows[name] = Row(name, results)
    return rows


def _accuracy_cells(name: str, case: Case, rows: Mapping[str, Row]) -> list[str]:
    values = [100 * result.value for result in rows[name].results]
    cells = [f"{statistics.fmean(values):.2f}", f"{min(values):.2f} to {max(values):.2f}", str(len(values))]
    if name == case.against or case.against not in rows:
        return [*cells, "", ""]
    points = 100 * (rows[name].value - rows[case.against].value)
    if case.bound is None:
        return [*cells, f"{points:+.2f}", ""]
    return [*cells, f"{points:+.2f}", f"{'yes' if points >= -case.bound else 'no'}, {case.bound} at most"]


_ACCURACY = ["accuracy", "of seeds", "seeds", "points", "<holds"]


def simulated_table(model: str, rows: Mapping[str, Row]) -> str:
    """Accuracy and ratios of number formats."""
    chosen = {n: c for n, c in CASES[model].items() if n in rows and (c.codec or n == FP32)}
    structures = ("weights", "gradients", "forward", "backward", "optimizer")
    lines = []
    for name, case in chosen.items():
        ratios = [rows[name].ratio(structure) for structure in structures]
        bits = "" if case.codec is None else f"{rows[name].bits:.2f}"
        shown = ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        lines.append([name, *_accuracy_cells(name, case, rows), bits, *shown])
    return table([f"<{model}", *_ACCURACY, "bits", *structures], lines)


def real_table(model: str, rows: Mapping[str, Row], data: Data) -> str:
    """Accuracy and memory of what is compressed for real."""
    chosen = {n: c for n, c in CASES[model].items() if n in rows and c.codec is None}
    lines = []
    for name, case in chosen.items():
        saved, state = (_saving(measure, model, case, data) for measure in (saved_nbytes, state_nbytes))
        lines.append([name, *_accuracy_cells(name, case, rows), saved, state])
    return table([f"<{model}", *_ACCURACY, "saved", "state"], lines)


def base_table() -> str:
    """What training an encoder of BERT's size keeps, beside what FewBit published."""
    lines: list[list[str]] = []
    plain = base_nbytes(Extras())[1]
    for name, (extras, published) in _FEWBIT.items():
        saved, whole = base_nbytes(extras)
        pairs = ((whole, plain), (published, _FEWBIT["plain"][1]))
        less = ["" if name == "plain" else f"{100 * (1 - part / of):.1f} %" for part, of in pairs]
        lines.append([name, f"{saved / _GIB:.2f}", f"{whole / _GIB:.2f}", less[0], f"{published:.2f}", less[1]])
    return table(["<GiB", "saved", "with weights and state", "less", "FewBit's", "less"], lines)


def base_nbytes(extras: Extras) -> tuple[int, int]:
    """Bytes that autograd keeps, and these with weights, gradients and moments."""
    inputs = Tokens(vocabulary=50_265, length=128, outputs=2)
    with FakeTensorMode():
        model = extras.converted(Encoder(inputs, layers=12, width=768, heads=12, dropout=0.1))
        saved = saved_memory(model, torch.zeros(128, 128, dtype=torch.long)).nbytes
        return saved, saved + 4 * sum(p.nbytes for p in model.parameters())


def _saving(measure: Callable[[str, Case, Data], int], model: str, case: Case, data: Data) -> str:
    """Bytes, and by how many percent they are fewer."""
    nbytes, whole = measure(model, case, data), measure(model, CASES[model][case.against], data)
    return f"{nbytes:,}" if nbytes >= whole else f"{nbytes:,} (-{100 * (1 - nbytes / whole):.1f} %)"


def markdown(records: Sequence[Mapping[str, Any]], data: Mapping[str, Data]) -> str:
    """The page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "lightning", "scikit-learn"))
    lines = [f"- {name}: {value}" for name, value in machine_found().items()]
    lines += [
        f"- versions: arrcomp {arrcomp.__version__}, {versions}",
        f"- date: {datetime.now(UTC).date().isoformat()}; one thread",
    ]
    lines += [f"- load average over a minute when this page was written: {os.getloadavg()[0]:.1f}"]
    parts = [
        "# Training with compressed structures\n\nWritten by `python bench/train_memory.py`.",
        "\n".join(lines),
        _HOW,
    ]
    found = {model: rows_of(records, model) for model in CASES}
    parts += ["## Number formats, simulated", _SIMULATED]
    for model, rows in found.items():
        picture = f"![accuracy against bits](training_rates_{model}.png) ![values](training_values_{model}.png)"
        parts += [simulated_table(model, rows), picture]
    parts += ["## Memory saved for real", _REAL]
    parts += [real_table(model, rows, data[model]) for model, rows in found.items()]
    parts += [_BASE, base_table()]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Parse the command line, train, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = {model: load(settings) for model, settings in BASES.items()}
    path = options.output / "training_memory.json"
    if not options.page:
        train_all(path, options.seeds, data)
    records = json.loads(path.read_text())
    for model in CASES:
        rows = rows_of(records, model)
        shown = [row for name, row in rows.items() if name == FP32 or (CASES[model][name].codec and name != _FAILING)]
        draw_rates(options.output / f"training_rates_{model}.png", f"{model} on digits", shown)
    page = markdown(records, data)
    print(page)
    (options.output / "TRAINING_MEMORY.md").write_text(page)
    return 1 if "| no, " in page else 0


if __name__ == "__main__":
    sys.exit(main())
