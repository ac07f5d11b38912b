"""Options, fixtures and Hypothesis profiles of all tests."""

from __future__ import annotations

import gc
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# With --import-mode=importlib, pytest leaves the tests' own modules out of sys.path. This folder itself is never there:
# folders in it have the names of frameworks.
TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "independent")]

pytest.register_assert_rewrite("checks", "frameworks", "small_streams")

import checks
import frameworks
import ordinary
from arrcomp import _core
from cupy_fixtures import calls, cupy, double  # noqa: F401

settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False, max_examples=2000)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Leave cores and the GPU to others; let XLA compile quickly in ordinary runs, and NumPy cast NaN on Arm."""
    # PyTorch's threads would wait for work in a loop, and take the cores from other workers: up to four times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # JAX would take most of the GPU's memory at its first use, and PyTorch, CuPy and other workers have tests too.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if "not full" in config.getoption("markexpr"):
        # Most of the time of JAX's tests is XLA's optimization; the full tests have it.
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    if platform.machine() in ("aarch64", "arm64"):
        config.addinivalue_line("filterwarnings", "ignore:invalid value encountered in cast:RuntimeWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --device and --every."""
    parser.addoption("--device", choices=("cpu", "cuda"), default="cpu", help="where the arrays lie (default: cpu)")
    parser.addoption(
        "--every",
        type=int,
        default=1,
        help="of combinations that no ordinary run has, every nth (default: 1)",
    )


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark which combinations of parameters are no part of an ordinary run."""
    left_out = ordinary.mark_products(items, config.getoption("every"))
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what is there by now: looking at it took a tenth of the tests' time."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the conformance matrix, where all of it has run."""
    if "not full" in config.getoption("markexpr") or config.getoption("every") > 1:
        return
    reports = terminalreporter.stats.get("passed", [])
    passed = [value for report in reports for name, value in report.user_properties if name == "conformance"]
    if passed:
        terminalreporter.section("dtypes whose bytes and values are the same everywhere")
        for line in frameworks.table(passed):
            terminalreporter.write_line(line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `instruction_set` once for each that this machine has."""
    if "instruction_set" in metafunc.fixturenames:
        metafunc.parametrize("instruction_set", _core.instruction_sets(), indirect=True)


@pytest.fixture
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """The instruction set that the core uses during the test."""
    with checks.using_instruction_set(request.param):
        yield request.param


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> checks.Host:
    """Where the test's arrays lie: NumPy, or with --device cuda the GPU, by PyTorch or else CuPy."""
    if request.config.getoption("--device") == "cpu":
        return checks.HOST
    if _core.cuda_device_count() == 0:
        pytest.skip("arrcomp finds no CUDA device")
    return frameworks.on_gpu()
