"""Warnings fail the tests, but for those of frameworks about the machine's GPUs; JAX leaves memory to the others."""

from __future__ import annotations

import os
import warnings

import pytest

# Category, module, and the text as the framework has it.
OF_FRAMEWORKS = [
    (FutureWarning, "torch.cuda", "The pynvml package is deprecated. Please install nvidia-ml-py instead."),
    (UserWarning, "torch.cuda", "Can't initialize NVML"),
    (UserWarning, "torch.cuda", "Can't get nvml device count"),
    (UserWarning, "torch.cuda", "Can't get device handle"),
    (
        UserWarning,
        "torch.cuda",
        "CUDA initialization: The NVIDIA driver on your system is too old (found version 12020).",
    ),
    (UserWarning, "torch.cuda", "Found GPU0 Tesla K80 which is of compute capability (CC) 3.7.\nThe following list"),
    (UserWarning, "torch.cuda", "\n    Found GPU1 Tesla K80 which is of cuda capability 3.7.\n"),
    (
        UserWarning,
        "torch.cuda",
        "\nGPU X with CUDA capability sm_130 is not compatible with the current PyTorch installation.",
    ),
    (UserWarning, "torch.cuda", "PyTorch was compiled with an unknown compute capability 13.0. "),
    (
        UserWarning,
        "cupy._environment",
        f"\n{'-' * 80}\n\n  CuPy may not function correctly because multiple CuPy packages are installed\n",
    ),
    (UserWarning, "cupy._environment", "CuPy failed to preload library (libcutensor.so.2): OSError (no such file)"),
    (UserWarning, "cupy._environment", "\nnccl library could not be loaded.\n\nReason: ImportError (libnccl.so.2)\n"),
    (UserWarning, "cupy._environment", "CUDA path could not be detected. Set CUDA_PATH environment variable"),
    (
        RuntimeWarning,
        "jaxlib.plugin_support",
        "JAX plugin jax_cuda13_plugin version 0.9.0 is installed, but it is not compatible with the installed jaxlib",
    ),
]


@pytest.mark.parametrize(("category", "module", "text"), OF_FRAMEWORKS)
def test_what_frameworks_say_of_a_machine_fails_no_test(category: type[Warning], module: str, text: str) -> None:
    warnings.warn_explicit(text, category, f"{module}.py", 1, module=module)
    with pytest.raises(category):
        warnings.warn_explicit(text, category, "arrcomp.py", 1, module="arrcomp")
    with pytest.raises(category):
        warnings.warn_explicit("something else", category, f"{module}.py", 2, module=module)


def test_jax_leaves_the_gpus_memory_to_others() -> None:
    assert "XLA_PYTHON_CLIENT_PREALLOCATE" in os.environ
