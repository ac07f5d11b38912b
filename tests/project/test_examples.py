"""The examples run, and lose no more than they say."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def output_of(name: str) -> str:
    program = [sys.executable, str(EXAMPLES / f"{name}.py")]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    result = run(program, environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run(program: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=500
    )


def numbers(pattern: str, output: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(pattern, output)]


@pytest.mark.full
def test_a_checkpoint_of_pytorch_is_smaller_and_as_accurate() -> None:
    pytest.importorskip("torch")
    output = output_of("torch_checkpoint")
    plain, lossless, ruled = numbers(r"([\d,]+) bytes", output)
    assert plain > lossless > 2 * ruled
    plain, lossless, ruled = numbers(r"accuracy ([\d.]+)", output)
    assert plain == lossless
    assert ruled > plain - 0.01


@pytest.mark.full
def test_a_checkpoint_of_orbax_is_smaller_and_within_its_bound() -> None:
    pytest.importorskip("jax")
    if importlib.util.find_spec("orbax") is None:
        pytest.skip("orbax-checkpoint is not installed")
    output = output_of("orbax_checkpoint")
    plain, compressed = numbers(r"([\d,]+) bytes", output)
    assert plain > 3 * compressed
    assert numbers(r"largest error (\S+),", output)[0] <= 1e-4


@pytest.mark.full
def test_training_on_several_devices_in_jax_sends_less_and_is_as_accurate() -> None:
    jax = pytest.importorskip("jax")
    if not hasattr(jax.lax, "pcast"):
        pytest.skip("this version of JAX has no jax.lax.pcast, which the example uses")
    output = output_of("jax_data_parallel")
    plain, four, two = numbers(r"([\d,]+) bytes", output)
    assert plain > 7 * four > 13 * two
    accuracies = numbers(r"accuracy ([\d.]+)", output)
    assert min(accuracies) > max(0.78, accuracies[0] - 0.01)


@pytest.mark.full
def test_training_in_less_memory_keeps_less_and_is_as_accurate() -> None:
    pytest.importorskip("torch")
    output = output_of("torch_less_memory")
    plain, bits, rows, _ = numbers(r"kept +([\d,]+) bytes", output)
    assert plain > 1.7 * bits > 5 * rows
    *_, before, after = numbers(r"state +([\d,]+) bytes", output)
    assert before > 3.5 * after
    accuracies = numbers(r"accuracy ([\d.]+)", output)
    assert min(accuracies) > max(0.75, accuracies[0] - 0.03)


@pytest.mark.full
def test_training_in_less_memory_in_jax_keeps_less_and_is_as_accurate() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    output = output_of("jax_less_memory")
    plain, same, bits = numbers(r"kept +([\d,]+) bytes", output)
    assert plain == same > 2.5 * bits
    before, *after = numbers(r"state +([\d,]+) bytes", output)
    assert before > 3.5 * max(after)
    plain, *compressed = numbers(r"accuracy ([\d.]+)", output)
    assert min(compressed) > max(0.75, plain - 0.03)


@pytest.mark.full
def test_a_model_within_a_bound_is_smaller_and_as_accurate() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    rows = re.findall(
        r"^(.+?) +([\d,]+) +[\d.]+x +([\d.]+) +([\d.]+) %$", output_of("checkpoint_accuracy"), re.MULTILINE
    )
    found = {title: (int(nbytes.replace(",", "")), float(error), float(right)) for title, nbytes, error, right in rows}
    plain_nbytes, plain_error, plain_right = found["torch.save"]
    assert plain_right > 93
    assert found["lossless"][1:] == (plain_error, plain_right) == (0, plain_right)
    bounded = {float(title.split()[-1]): row for title, row in found.items() if title.startswith("error at most")}
    assert len(bounded) >= 4
    assert all(error <= bound for bound, (_, error, _) in bounded.items())
    assert min(bounded[bound][2] for bound in (1e-4, 1e-3)) > plain_right - 0.5
    assert bounded[1e-2][2] > plain_right - 1.5
    assert plain_nbytes > 6 * bounded[1e-2][0]
    sizes = [bounded[bound][0] for bound in sorted(bounded, reverse=True)]
    assert sizes == sorted(sizes)


@pytest.mark.full
def test_two_processes_send_few_bits_of_gradients_and_learn_as_much() -> None:
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no Gloo")
    pattern = r"^ *(\d+) bits: +([\d,]+) bytes a step, accuracy ([\d.]+), same weights: (\w+)$"
    rows = re.findall(pattern, output_of("torch_ddp"), re.MULTILINE)
    assert [(bits, same) for bits, _, _, same in rows] == [("32", "True"), ("4", "True"), ("2", "True")]
    plain, four, two = (int(sent.replace(",", "")) for _, sent, _, _ in rows)
    assert plain > 7 * four > 12 * two
    accuracies = [float(accuracy) for _, _, accuracy, _ in rows]
    assert min(accuracies) > max(0.75, accuracies[0] - 0.03)


@pytest.mark.full
def test_experts_learn_as_much_from_tokens_of_few_bits() -> None:
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no Gloo")
    rows = re.findall(r"^(\d+) bits: loss ([\d.]+)$", output_of("torch_experts"), re.MULTILINE)
    assert [bits for bits, _ in rows] == ["32", "8", "4"]
    losses = [float(loss) for _, loss in rows]
    assert max(losses) < min(0.6, losses[0] + 0.1)


@pytest.mark.full
def test_weights_that_are_sent_as_deltas_arrive() -> None:
    torch = pytest.importorskip("torch")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no Gloo")
    output = output_of("weight_sync")
    pattern = r"^step (\d): +([\d,]+) bytes instead of ([\d,]+), (.+)$"
    rows = [(int(step), sent, whole, end) for step, sent, whole, end in re.findall(pattern, output, re.MULTILINE)]
    assert [(step, end) for step, _, _, end in rows if step in (0, 4)] == [
        (step, end) for step in (0, 4) for end in ("refused", "same weights")
    ]
    assert [(step, end) for step, _, _, end in rows if step not in (0, 4)] == [
        (step, "same weights") for step in (1, 2, 5)
    ]
    assert output.count("the generator: ") == 2
    sizes = {step: int(sent.replace(",", "")) for step, sent, _, _ in rows}
    whole = int(rows[0][2].replace(",", ""))
    assert whole / 2 < sizes[0] == pytest.approx(sizes[4], rel=0.01)
    assert all(30 * sizes[step] < whole for step in (1, 2, 5))


@pytest.mark.full
def test_a_transformers_model_takes_its_compressed_weights() -> None:
    for module in ("torch", "transformers", "safetensors"):
        pytest.importorskip(module)
    output = output_of("transformers_checkpoint")
    plain, lossless, fine, coarse, _, _ = numbers(r"([\d,]+) bytes", output)
    assert plain > 1.1 * lossless > 3 * fine > 4.5 * coarse
    exact, *cosines = numbers(r"cosine to the original ([\d.]+)", output)
    assert exact == 1
    assert cosines[0] > 0.9999
    assert cosines[1] > 0.999
    assert min(cosines) > 0.9


@pytest.mark.full
def test_a_model_with_compressed_weights_generates_the_same_tokens() -> None:
    for module in ("torch", "transformers"):
        pytest.importorskip(module)
    output = output_of("compressed_model")
    assert output.count("the same tokens") == 2
    for nbytes, shared, plain in re.findall(
        r"([\d,]+) bytes of parameters and ([\d,]+) .* instead of ([\d,]+)", output
    ):
        taken = int(nbytes.replace(",", "")) + int(shared.replace(",", ""))
        assert taken < 0.8 * int(plain.replace(",", ""))


@pytest.mark.full
def test_a_compressed_cache_gives_the_same_tokens() -> None:
    for module in ("torch", "transformers"):
        pytest.importorskip(module)
    assert re.search(r"^lossless\b.*\b40 of 40", output_of("transformers_kv_cache"), re.MULTILINE)


@pytest.mark.full
def test_a_model_in_jax_predicts_the_same_with_compressed_weights_in_less_memory() -> None:
    pytest.importorskip("jax")
    output = output_of("jax_compressed_weights")
    plain, lossless, bits = numbers(r"([\d,]+) bytes", output)
    assert plain > 1.4 * lossless > 1.7 * bits
    before, *after = numbers(r"([\d,]+) besides", output)
    assert before > 5 * max(after)
    same = numbers(r"(\d+) of 40 the same", output)
    assert same[:2] == [40, 40]
    assert same[2] > 30


@pytest.mark.full
def test_a_dataset_of_xarray_is_smaller_and_each_variable_within_its_bound() -> None:
    pytest.importorskip("xarray")
    pytest.importorskip("zarr", "3.1")
    output = output_of("xarray_dataset")
    rows = re.findall(
        r"^(\w+): ([\d,]+) bytes .*, ([\d,]+) by .*=([\d.]+)(?:, predictor='auto')?\), largest error ([\d.]+)$",
        output,
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == ["t2m", "sst", "tp"]
    for _, plain, small, bound, error in rows:
        assert int(plain.replace(",", "")) > 2 * int(small.replace(",", ""))
        assert 0 < float(error) <= float(bound)
    assert numbers(r"store is ([\d.]+) times smaller", output)[0] > 2


@pytest.mark.full
def test_a_cluster_writes_a_data_set_within_its_bound() -> None:
    pytest.importorskip("xarray")
    pytest.importorskip("distributed")
    output = output_of("climate_cluster")
    (ratio,) = numbers(r"\((\d+) times smaller\)", output)
    assert ratio > 20
    assert "series of 96 hours; gaps kept: True" in output
    (error,), (bound,) = numbers(r"largest error ([\d.]+) of", output), numbers(r" of ([\d.]+)$", output)
    assert 0 < error <= bound


def test_a_store_of_zarr_is_smaller_and_within_its_bounds() -> None:
    pytest.importorskip("zarr", "3.1")
    rows = re.findall(r"^(.+?) +([\d,]+) +[\d.]+x +\d+ +([\d.]+)$", output_of("zarr_store"), re.MULTILINE)
    found = {title: (int(nbytes.replace(",", "")), float(error)) for title, nbytes, error in rows}
    default, lossless, *bounded = found.values()
    assert default[1] == lossless[1] == 0
    assert default[0] > 1.2 * lossless[0]
    bounds = [float(title.split()[1]) for title in found if title.startswith("within")]
    assert len(bounds) == 3
    for bound, (nbytes, error) in zip(bounds, bounded, strict=True):
        assert 0 < error <= bound
        assert nbytes < lossless[0] / 1.5
    assert lossless[0] > 5 * bounded[-1][0]


def test_attention_hardly_notices_small_bounds_of_a_cache() -> None:
    rows = re.findall(r"^(.+?) {2,}([\d.]+) +([\d.]+) +([\d.]+) %$", output_of("kv_cache"), re.MULTILINE)
    found = {title: tuple(map(float, row)) for title, *row in rows}
    assert found["lossless"][1:] == (0, 0)
    bounded = {float(title.split()[-1]): row for title, row in found.items() if title.startswith("error at most")}
    assert len(bounded) >= 4
    assert all(error <= bound for bound, (_, error, _) in bounded.items())
    tight_to_loose = [bounded[bound] for bound in sorted(bounded)]
    assert [row[0] for row in tight_to_loose] == sorted((row[0] for row in tight_to_loose), reverse=True)
    assert [row[2] for row in tight_to_loose] == sorted(row[2] for row in tight_to_loose)
    assert bounded[1e-2][0] < 8.5
    assert bounded[1e-2][2] < 2
    assert 1.5 * found["QSGD, 4 bits"][2] < found["QSGD, 4 bits, by token"][2]


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_is_short_and_says_how_to_run_it(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) < 80
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert "pip install" in docstring
    assert f"python examples/{name}.py" in docstring


@pytest.mark.parametrize(
    ("name", "package", "needed"),
    [
        ("cupy_streams", "cupy", "CuPy"),
        ("jax_less_memory", "jax", "JAX and Optax"),
        ("torch_ddp", "torch", "PyTorch"),
        pytest.param("compressed_model", "transformers", "PyTorch and transformers", marks=pytest.mark.full),
        pytest.param("checkpoint_accuracy", "sklearn", "PyTorch and scikit-learn", marks=pytest.mark.full),
        pytest.param("hdf5_blocks", "h5py", "h5py", marks=pytest.mark.full),
        pytest.param("hdf5_filter", "h5py", "h5py", marks=pytest.mark.full),
        pytest.param("netcdf_filter", "netCDF4", "netCDF4", marks=pytest.mark.full),
        pytest.param("torch_experts", "torch", "PyTorch", marks=pytest.mark.full),
        pytest.param("torch_less_memory", "torch", "PyTorch", marks=pytest.mark.full),
        pytest.param(
            "transformers_checkpoint", "transformers", "PyTorch, safetensors and transformers", marks=pytest.mark.full
        ),
        pytest.param("transformers_kv_cache", "transformers", "PyTorch and transformers", marks=pytest.mark.full),
        pytest.param("xarray_dataset", "xarray", "xarray", marks=pytest.mark.full),
        pytest.param("climate_cluster", "dask", "xarray and dask", marks=pytest.mark.full),
        pytest.param("zarr_store", "zarr", "zarr 3.1 or newer", marks=pytest.mark.full),
    ],
)
def test_without_a_package_an_example_says_so(name: str, package: str, needed: str) -> None:
    code = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    result = run([sys.executable, "-P", "-c", code, str(EXAMPLES / f"{name}.py")], dict(os.environ))
    assert result.returncode == 1
    assert f"{name}.py needs {needed} (" in result.stderr
    assert "pip install" in result.stderr
    assert "Traceback" not in result.stderr
