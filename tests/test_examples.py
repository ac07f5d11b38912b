"""The examples run, and lose no more than they say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def output_of(name: str) -> str:
    program = [sys.executable, str(EXAMPLES / f"{name}.py")]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    result = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert result.returncode == 0, result.stderr
    return result.stdout


def numbers(pattern: str, output: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(pattern, output)]


def test_a_checkpoint_of_pytorch_is_smaller_and_as_accurate() -> None:
    pytest.importorskip("torch")
    output = output_of("torch_checkpoint")
    plain, lossless, ruled = numbers(r"([\d,]+) bytes", output)
    assert plain > lossless > 2 * ruled
    plain, lossless, ruled = numbers(r"accuracy ([\d.]+)", output)
    assert plain == lossless
    assert ruled > plain - 0.01


def test_a_checkpoint_of_orbax_is_smaller_and_within_its_bound() -> None:
    pytest.importorskip("jax")
    if importlib.util.find_spec("orbax") is None:
        pytest.skip("orbax-checkpoint is not installed")
    output = output_of("orbax_checkpoint")
    plain, compressed = numbers(r"([\d,]+) bytes", output)
    assert plain > 3 * compressed
    assert numbers(r"largest error (\S+),", output)[0] <= 1e-4


def test_training_on_several_devices_in_jax_sends_less_and_is_as_accurate() -> None:
    jax = pytest.importorskip("jax")
    if not hasattr(jax.lax, "pcast"):
        pytest.skip("this version of JAX has no jax.lax.pcast, which the example uses")
    output = output_of("jax_data_parallel")
    plain, eight, four, two = numbers(r"([\d,]+) bytes", output)
    assert plain > 3.5 * eight > 6.5 * four > 12 * two
    accuracies = numbers(r"accuracy ([\d.]+)", output)
    assert min(accuracies) > max(0.78, accuracies[0] - 0.01)


def test_training_in_less_memory_keeps_less_and_is_as_accurate() -> None:
    pytest.importorskip("torch")
    output = output_of("torch_less_memory")
    plain, bits, rows, _ = numbers(r"kept +([\d,]+) bytes", output)
    assert plain > 1.7 * bits > 5 * rows
    *_, before, after = numbers(r"state +([\d,]+) bytes", output)
    assert before > 3.5 * after
    accuracies = numbers(r"accuracy ([\d.]+)", output)
    assert min(accuracies) > max(0.75, accuracies[0] - 0.03)


def test_training_in_less_memory_in_jax_keeps_less_and_is_as_accurate() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    output = output_of("jax_less_memory")
    plain, bits = numbers(r"kept +([\d,]+) bytes", output)
    assert plain > 2.5 * bits
    before, after = numbers(r"state +([\d,]+) bytes", output)
    assert before > 3.5 * after
    plain, compressed = numbers(r"accuracy ([\d.]+)", output)
    assert compressed > max(0.75, plain - 0.02)
