"""Realistic arrays, made by NumPy alone in a few seconds: no download, no file.

    >>> from arrcomp._cli.demo_data import DESCRIPTIONS, demo_arrays
    >>> arrays = demo_arrays()
    >>> arrays.keys() == DESCRIPTIONS.keys()
    True

Nothing is tiled or repeated: a compressor finds no more repetitions than in real data.

How each array is made:

- A perceptron (784-1024-1024-10, ReLU) is trained for 60 steps of Adam (arXiv:1412.6980) on digits drawn with a 5 x 7
  font under random rotation, scale and position on a background of exact zeros. `trained_weights`, `adam_first_moment`,
  `adam_second_moment` and `gradients` (of the last step) are its parameters' arrays, laid end to end; pixels that no
  digit reaches leave whole rows of zeros. `trained_weights_bfloat16` is the rounded copy of the weights.
  `pre_activations` and `activations` are the second hidden layer's before and after ReLU for 1024 digits; `relu_mask`
  says which are active.
- An embedding table (8192 tokens x 128) learns the topics of documents whose tokens follow Zipf's law, from the mean of
  the tanh of its rows and a linear layer. `embedding_gradients` is the table's gradient in the last step: zero rows for
  tokens that did not occur. `token_counts` holds how often each token occurs in each document.
- `gaussian_weights` is N(0, 0.02), as layers are initialised.
- `smooth_field` is a sum of 48 plane waves on a 128 x 128 x 128 grid, amplitudes falling as |k|^(-11/6) (a field whose
  energy falls by Kolmogorov's law, E(k) ~ k^(-5/3), over a few modes per octave).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .._arguments import wrong_value

__all__ = ["DESCRIPTIONS", "FEW_STEPS", "demo_arrays"]

Floats = npt.NDArray[np.float32]

DESCRIPTIONS: dict[str, str] = {
    "trained_weights": "weights and biases of a digit classifier (784-1024-1024-10), trained by Adam",
    "trained_weights_bfloat16": "the same weights rounded to bfloat16",
    "gaussian_weights": "weights as initialised, N(0, 0.02)",
    "gradients": "the classifier's gradients in its last step; zero rows where pixels are blank",
    "embedding_gradients": "gradients of an embedding table; zero rows for tokens that did not occur",
    "adam_first_moment": "Adam's running mean of the classifier's gradients",
    "adam_second_moment": "Adam's running mean of their squares",
    "pre_activations": "second hidden layer of the classifier, before ReLU",
    "activations": "second hidden layer of the classifier, after ReLU",
    "relu_mask": "which of these activations are positive",
    "smooth_field": "sum of random plane waves on a 128 x 128 x 128 grid",
    "token_counts": "how often each of 8192 tokens occurs in each of 128 documents",
}

# Digits 0 to 9, seven bytes each, a byte for a row of five pixels, the leftmost pixel in bit 4.
_FONT = (
    "0e11131519110e040c040404040e0e11010204081f1f02040201110e02060a121f0202"
    "1f101e0101110e0608101e11110e1f0102040808080e11110e11110e0e11110f01020c"
)
_IMAGE_SIDE = 28
_LAYERS = (_IMAGE_SIDE**2, 1024, 1024, 10)
_DIGITS, _BATCH, _STEPS = 2048, 128, 60
FEW_STEPS = 6  # of training, in which the arrays become what they are called
_VOCABULARY, _EMBEDDING, _TOPICS = 8192, 128, 8
_DOCUMENTS, _DOCUMENT_LENGTH = 128, 512


def demo_arrays(seed: int = 0, *, steps: int = _STEPS) -> dict[str, npt.NDArray[Any]]:
    """Make the demonstration arrays, 1 to 2 million values each, about 70 MB together.

    The same seed, a non-negative integer, gives the same arrays on the same computer. On others the trained arrays may
    differ in the last bits, because matrix products do. The arrays have the names and the order of `DESCRIPTIONS`. They
    are float32, except `trained_weights_bfloat16` (ml_dtypes.bfloat16), `relu_mask` (bool) and `token_counts` (int32).

    `steps` is the number of steps for which the classifier is trained. Training takes nearly all of the time:
    `FEW_STEPS` give the same kinds of arrays, of the same sizes, in a tenth of it.
    """
    if seed < 0:
        raise wrong_value("seed", "a non-negative integer", seed)
    training_rng, weights_rng, text_rng, field_rng = np.random.default_rng(seed).spawn(4)
    arrays = _classifier_arrays(training_rng, steps) | _text_arrays(text_rng)
    arrays["gaussian_weights"] = 0.02 * weights_rng.standard_normal(2**21, dtype=np.float32)
    arrays["smooth_field"] = _smooth_field(field_rng, side=128, modes=48)
    return {name: arrays[name] for name in DESCRIPTIONS}


def _classifier_arrays(rng: np.random.Generator, steps: int) -> dict[str, npt.NDArray[Any]]:
    images, labels = _draw_digits(rng, _DIGITS)
    state = _train(rng, images, labels, steps)
    (first, first_bias), (second, second_bias), _ = _layers(state.parameters)
    pre_activations = np.maximum(images[:1024] @ first + first_bias, 0) @ second + second_bias
    return {
        "trained_weights": state.parameters,
        "trained_weights_bfloat16": state.parameters.astype(ml_dtypes.bfloat16),
        "gradients": state.gradients,
        "adam_first_moment": state.first_moment,
        "adam_second_moment": state.second_moment,
        "pre_activations": pre_activations,
        "activations": np.maximum(pre_activations, 0),
        "relu_mask": pre_activations > 0,
    }


def _draw_digits(rng: np.random.Generator, count: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Images (count, 784) with ink in [0, 1] and exact zeros around it, and their labels (count,)."""
    rows = np.frombuffer(bytes.fromhex(_FONT), np.uint8).astype(np.int64).reshape(10, 7, 1)
    pixels = rows >> np.arange(4, -1, -1) & 1
    font = np.pad(pixels, ((0, 0), (1, 2), (1, 2))).astype(np.float32)  # bilinear sampling reads one pixel further
    labels = rng.integers(0, 10, count)
    angle, scale = rng.normal(0, 0.15, (count, 1, 1)), rng.uniform(2.4, 3.2, (count, 1, 1))
    shift = rng.uniform(-2, 2, (2, count, 1, 1))
    centre = (_IMAGE_SIDE - 1) / 2
    down, right = np.mgrid[0:_IMAGE_SIDE, 0:_IMAGE_SIDE] - centre
    down, right = down - shift[0], right - shift[1]
    row = np.clip((np.cos(angle) * down + np.sin(angle) * right) / scale + 4, 0, 8.999)
    column = np.clip((np.cos(angle) * right - np.sin(angle) * down) / scale + 3, 0, 6.999)
    top, left = row.astype(int), column.astype(int)
    below, beside = (row - top).astype(np.float32), (column - left).astype(np.float32)
    label = labels[:, None, None]
    upper = font[label, top, left] * (1 - beside) + font[label, top, left + 1] * beside
    lower = font[label, top + 1, left] * (1 - beside) + font[label, top + 1, left + 1] * beside
    return (upper * (1 - below) + lower * below).reshape(count, -1), labels


class _TrainingState(NamedTuple):
    """Flat arrays of all parameters' values, gradients and Adam moments."""

    parameters: Floats
    gradients: Floats
    first_moment: Floats
    second_moment: Floats


def _layers(flat: Floats) -> list[tuple[Floats, Floats]]:
    """Views of each layer's weight and bias."""
    ends = np.cumsum([size for inputs, outputs in pairwise(_LAYERS) for size in (inputs * outputs, outputs)])
    parts = np.split(flat, ends[:-1])
    return [(weight.reshape(-1, bias.size), bias) for weight, bias in zip(parts[::2], parts[1::2], strict=True)]


def _train(rng: np.random.Generator, images: Floats, labels: npt.NDArray[np.int64], steps: int) -> _TrainingState:
    size = sum((inputs + 1) * outputs for inputs, outputs in pairwise(_LAYERS))
    state = _TrainingState(*(np.zeros(size, np.float32) for _ in range(4)))
    for weight, _ in _layers(state.parameters):  # He's initialisation
        weight[:] = rng.standard_normal(weight.shape, dtype=np.float32) * np.float32(np.sqrt(2 / len(weight)))
    for step in range(1, steps + 1):
        batch = rng.integers(0, len(images), _BATCH)
        _back_propagate(state, images[batch], labels[batch])
        _adam_step(state, step)
    return state


def _back_propagate(state: _TrainingState, images: Floats, labels: npt.NDArray[np.int64]) -> None:
    """Fill `state.gradients` with those of the mean cross-entropy over the batch."""
    inputs, layers = [images], _layers(state.parameters)
    for weight, bias in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weight + bias, 0))
    weight, bias = layers[-1]
    upstream = _cross_entropy_gradient(inputs[-1] @ weight + bias, labels)
    for depth, (weight_gradient, bias_gradient) in reversed(list(enumerate(_layers(state.gradients)))):
        np.matmul(inputs[depth].T, upstream, out=weight_gradient)
        np.sum(upstream, axis=0, out=bias_gradient)
        upstream = (upstream @ layers[depth][0].T) * (inputs[depth] > 0)


def _cross_entropy_gradient(logits: Floats, labels: npt.NDArray[np.int64]) -> Floats:
    """Gradient of the mean cross-entropy by the logits (batch, classes): (softmax - one hot) / batch."""
    gradient: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    gradient /= gradient.sum(axis=1, keepdims=True)
    gradient[np.arange(len(labels)), labels] -= 1
    return gradient / np.float32(len(labels))


def _adam_step(state: _TrainingState, step: int, rate: float = 1e-3) -> None:
    """One step of Adam with the published decay rates and epsilon (algorithm 1, as rewritten in section 2)."""
    parameters, gradients, first, second = state
    first += np.float32(0.1) * (gradients - first)
    second += np.float32(0.001) * (np.square(gradients) - second)
    corrected_rate = np.float32(rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step))
    parameters -= corrected_rate * first / (np.sqrt(second) + np.float32(1e-8))


def _text_arrays(rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    """Token counts of documents on topics, and the gradient of the embedding table that classifies them."""
    counts, topics = _write_documents(rng)
    table = rng.standard_normal((_VOCABULARY, _EMBEDDING), dtype=np.float32)
    output = np.float32(0.1) * rng.standard_normal((_EMBEDDING, _TOPICS), dtype=np.float32)
    gradient = np.zeros_like(table)
    for batch in np.arange(_DOCUMENTS).reshape(-1, 16):
        frequencies = counts[batch].astype(np.float32) / np.float32(_DOCUMENT_LENGTH)
        features = np.tanh(table)
        upstream = _cross_entropy_gradient(frequencies @ features @ output, topics[batch])
        gradient = frequencies.T @ (upstream @ output.T) * (1 - np.square(features))
        table -= np.float32(50) * gradient  # gradients are small: a token is a 512th of its document
    return {"embedding_gradients": gradient, "token_counts": counts}


def _write_documents(rng: np.random.Generator) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Counts (documents, vocabulary) and topics (documents,); a topic makes its own eighth of the tokens commoner."""
    rank = np.arange(1, _VOCABULARY + 1)
    topics = rng.integers(0, _TOPICS, _DOCUMENTS)
    probability = np.where(rank % _TOPICS == topics[:, None], 4, 1) / rank
    probability /= probability.sum(axis=1, keepdims=True)
    return rng.multinomial(_DOCUMENT_LENGTH, probability).astype(np.int32), topics


def _smooth_field(rng: np.random.Generator, side: int, modes: int) -> Floats:
    """Real part of the sum of a exp(i k.r) over random wave vectors k, at most 8 periods an axis, on the unit cube."""
    wave = rng.normal(0, 3, (modes, 3)).clip(-8, 8)
    amplitude = np.linalg.norm(wave, axis=1) ** (-11 / 6) * np.exp(2j * np.pi * rng.random(modes))
    # A plane wave is separable: along is (modes, axis, side).
    along = np.exp(2j * np.pi * wave[:, :, None] * np.linspace(0, 1, side))
    plane = np.einsum("m,mx,my->xym", amplitude, along[:, 0], along[:, 1]).astype(np.complex64)
    return np.ascontiguousarray((plane @ along[:, 2].astype(np.complex64)).real)
