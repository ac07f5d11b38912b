"""Small models trained with compressed structures: accuracy and memory; a quarter of an hour on a quiet core."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from arrcomp.torch import saved_memory
from arrcomp.torch.training import STRUCTURES, chosen_codecs
from harness.page import BENCH
from harness.section import Found, Section
from harness.tables import table
from training.choice import settings_for
from training.data import Data, Tokens
from training.extras import Extras
from training.models.encoder import Encoder
from training.settings import Settings
from training.words import ACCURACY, accuracy_cells, accuracy_figures

RESNET, ENCODER = "resnet8", "bert-tiny"
BASES = {
    RESNET: settings_for(model=RESNET, epochs=5),
    ENCODER: settings_for(model=ENCODER, epochs=10, lr=3e-3),
}
SEEDS = 3
_MEMORY = "memory"  # beside the seeds' names in results.csv
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
        parameters: of the codec, same as in `chosen_codecs`.
        extras: what is compressed for real.
        optimizer: None for the model's usual one.
        master_weights: same as in `Compression`.
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
_ENCODER_BASE = "encoder of RoBERTa base's size"

_HOW = f"""\
The data are scikit-learn's digits, two thirds of them for training. `python bench/training run` does such runs.
{RESNET} is a ResNet with three blocks and 16 to 64 channels, trained for {BASES[RESNET].epochs} epochs by SGD with
momentum. {ENCODER} is an encoder of two layers and width 64, trained for {BASES[ENCODER].epochs} epochs by AdamW; it
sees a picture as 64 tokens, one for each pixel. Batches have 32 pictures. Accuracy is in percent, on the other third
(599 pictures: one is 0.17 points), after the last epoch: the mean of the seeds, with the smallest and the largest.
"points" is the difference to the row that it is compared with. "holds" says whether an expectation of the project was
met; it is empty if there was none. A run whose loss becomes infinite or NaN counts as 0."""
_SIMULATED = """\
Weights, gradients, outputs of layers, their gradients and the optimizer's state go through the codec after each use,
with stochastic rounding. With master weights the optimizer updates weights that keep every bit. Without them the
rounding errors of all steps add up. SmaQ measures mean and deviation of blocks of 1024 or 128 values. Blocks of 128
take half a bit more, and the encoder needs them: a small gradient that shares a block with large ones gets noise of
their size, and AdamW, which divides by the gradient's own size, probably makes that noise large. AdamW's second moments
of the encoder are bfloat16 in all rows but the last: if a codec rounds them to 0, AdamW divides by its epsilon. Ratios
are original bytes divided by payload bytes, in every tenth step."""
_REAL = """\
Here the data are really smaller in memory. "saved" is the bytes that autograd keeps for the backward pass of a batch of
32, without parameters, by `saved_memory`. "state" is the bytes of the optimizer's state between steps."""
_BASE = """\
FewBit's table is of RoBERTa base on MRPC with batches of 128. The table here is of an encoder of that size (12 layers,
width 768, a vocabulary of 50265, dropout 0.1) on 128 texts of 128 tokens in float32. The bytes are counted from shapes
with PyTorch's fake tensors, without using memory: what autograd keeps, and the same with weights, gradients and the two
moments of AdamW. FewBit's figures are peaks on a GPU, from its README. Ours (`torch.cuda.max_memory_allocated`) are not
yet measured."""


def runs(case: Case, model: str, data: Data, seeds: int) -> dict[str, dict[str, float]]:
    """Figures of each seed's run."""
    from training.plots import draw_histograms
    from training.run import train

    found: dict[str, dict[str, float]] = {}
    for seed in range(seeds):
        result = train(case.settings(model, seed), data=data, extras=case.extras, progress=False)
        figures: dict[str, float] = {"accuracy": 100 * result.value, "seconds": result.seconds}
        figures["diverged"] = int(result.diverged)
        figures |= {f"accuracy, epoch {epoch}": 100 * value for epoch, value in enumerate(result.history, 1)}
        for structure, size in result.sizes.items():
            figures |= {f"original, {structure}": size.original, f"compressed, {structure}": size.compressed}
        found[f"seed {seed}"] = figures
        print(f"{model}, seed {seed}: {100 * result.value:.2f} in {result.seconds:.0f} s", flush=True)
        if seed == 0 and case is _FORMATS["smaq"]:
            title = f"{model} on digits, before compression by SmaQ"
            draw_histograms(BENCH / f"training_values_{model}.png", title, result.samples)
    return found


def measured(quick: bool = False) -> dict[str, Any]:
    """Runs of each case and seed, what is kept for real, and what an encoder of BERT's size keeps."""
    from training.run import load

    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for model, cases in CASES.items():
        data = load(BASES[model])
        for name, case in cases.items():
            made = found.setdefault(model, {})[name] = runs(case, model, data, 1 if quick else SEEDS)
            if case.codec is None:
                made[_MEMORY] = {
                    "saved": saved_nbytes(model, case, data),
                    "state": state_nbytes(model, case, data),
                }
    for name, (extras, published) in _FEWBIT.items():
        saved, whole = base_nbytes(extras)
        figures = {"saved": saved / _GIB, "whole": whole / _GIB, "published": published}
        found.setdefault(_ENCODER_BASE, {})[name] = {_MEMORY: figures}
    return found


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


def _seeds(figures: Found) -> list[Mapping[str, float]]:
    return [run for name, run in figures.items() if name != _MEMORY]


def accuracies(found: Found, name: str) -> dict[str, float]:
    """Mean, extremes and points of a case."""
    return accuracy_figures([run["accuracy"] for run in _seeds(found[name])])


def points(found: Found, name: str, case: Case) -> float | None:
    """Points of accuracy to the case that it is compared with."""
    if name == case.against or case.against not in found:
        return None
    return accuracies(found, name)["accuracy"] - accuracies(found, case.against)["accuracy"]


def sizes(figures: Found, structure: str | None = None) -> tuple[float, float]:
    """Original and compressed bytes of a structure, or of all, over the seeds."""
    chosen = STRUCTURES if structure is None else (structure,)
    original, compressed = (
        sum(run.get(f"{kind}, {one}", 0) for run in _seeds(figures) for one in chosen)
        for kind in ("original", "compressed")
    )
    return original, compressed


def bits(figures: Found) -> float:
    """The mean, over the seeds, of the bits that 32 become."""
    each = [sizes({"": run}) for run in _seeds(figures)]
    return statistics.fmean(32 * compressed / original if original else 32.0 for original, compressed in each)


def _accuracy_cells(name: str, case: Case, found: Found) -> list[str]:
    less = points(found, name, case)
    figures = accuracies(found, name) | ({} if less is None else {"points": less})
    mean, extremes, shown = accuracy_cells(figures)
    held = less is not None and case.bound is not None
    holds = f"{'yes' if less >= -case.bound else 'no'}, {case.bound} at most" if held else ""
    return [mean, extremes, str(len(_seeds(found[name]))), shown, holds]


_HEADS = [*ACCURACY[:2], "seeds", ACCURACY[2], "<holds"]


def simulated_table(model: str, found: Found) -> str:
    """Accuracy and ratios of number formats."""
    rows = []
    for name, case in CASES[model].items():
        if name in found and (case.codec or name == FP32):
            pairs = [sizes(found[name], structure) for structure in STRUCTURES]
            ratios = [f"{original / compressed:.2f}" if compressed else "" for original, compressed in pairs]
            shown = "" if case.codec is None else f"{bits(found[name]):.2f}"
            rows.append([name, *_accuracy_cells(name, case, found), shown, *ratios])
    return table([f"<{model}", *_HEADS, "bits", *STRUCTURES], rows)


def real_table(model: str, found: Found) -> str:
    """Accuracy and memory of what is compressed for real."""
    rows = []
    for name, case in CASES[model].items():
        if name in found and case.codec is None:
            whole = found[case.against][_MEMORY]
            kept = [_saving(found[name][_MEMORY][key], whole[key]) for key in ("saved", "state")]
            rows.append([name, *_accuracy_cells(name, case, found), *kept])
    return table([f"<{model}", *_HEADS, "saved", "state"], rows)


def _saving(nbytes: float, whole: float) -> str:
    """Bytes, and by how many percent they are fewer."""
    return f"{nbytes:,}" if nbytes >= whole else f"{nbytes:,} (-{100 * (1 - nbytes / whole):.1f} %)"


def base_table(found: Found) -> str:
    """What training an encoder of BERT's size keeps, beside what FewBit published."""
    plain, rows = found["plain"][_MEMORY], []
    for name, kept in found.items():
        figures = kept[_MEMORY]
        less = ["", ""]
        if name != "plain":
            less = [f"{100 * (1 - figures[key] / plain[key]):.1f} %" for key in ("whole", "published")]
        cells = [f"{figures['saved']:.2f}", f"{figures['whole']:.2f}", less[0], f"{figures['published']:.2f}", less[1]]
        rows.append([name, *cells])
    return table(["<GiB", "saved", "with weights and state", "less", "FewBit's", "less"], rows)


def base_nbytes(extras: Extras) -> tuple[int, int]:
    """Bytes that autograd keeps, and these with weights, gradients and moments."""
    inputs = Tokens(vocabulary=50_265, length=128, outputs=2)
    with FakeTensorMode():
        model = extras.converted(Encoder(inputs, layers=12, width=768, heads=12, dropout=0.1))
        saved = saved_memory(model, torch.zeros(128, 128, dtype=torch.long)).nbytes
        return saved, saved + 4 * sum(p.nbytes for p in model.parameters())


def text(found: Found) -> str:
    """What was measured, as text."""
    parts = [_HOW, "### Number formats, simulated", _SIMULATED]
    for model in (name for name in CASES if name in found):
        picture = f"![accuracy against bits](training_rates_{model}.png) ![values](training_values_{model}.png)"
        parts += [simulated_table(model, found[model]), picture]
    parts += ["### Memory saved for real", _REAL]
    for model in (name for name in CASES if name in found):
        note = found[model][FP32][_MEMORY].get("note")
        parts += [real_table(model, found[model])] + ([note] if note else [])
    return "\n\n".join([*parts, _BASE, base_table(found[_ENCODER_BASE])])


def draw(found: Found, folder: Path) -> None:
    """Draw accuracy against bits."""
    from training.plots import draw_rates

    for model, cases in CASES.items():
        shown = {}
        for name, case in cases.items():
            if name in found[model] and (name == FP32 or (case.codec and name != _FAILING)):
                accuracy = [run["accuracy"] / 100 for run in _seeds(found[model][name])]
                shown[name] = (bits(found[model][name]), accuracy)
        draw_rates(folder / f"training_rates_{model}.png", f"{model} on digits", "accuracy", shown)


def broken(found: Found) -> list[str]:
    """Cases that cost more accuracy than they may."""
    worse = []
    for model, cases in CASES.items():
        for name, case in cases.items():
            less = points(found[model], name, case)
            if less is not None and case.bound is not None and less < -case.bound:
                worse.append(f"{model}, {name} cost {-less:.2f} points; {case.bound} may be")
    return worse


SECTION = Section(
    "Training with compressed structures",
    measured,
    text,
    levels=("subject", "method", "setting", "metric"),
    units={"accuracy": "%", "seconds": "s", "saved": "B", "state": "B"},
    versions=("arrcomp", "torch", "lightning", "scikit-learn", "transformers"),
    draw=draw,
    broken=broken,
)
