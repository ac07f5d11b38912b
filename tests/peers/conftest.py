"""Tests of other projects, which run on request alone: `pytest -m peers`, or with their path."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these modules out of all other runs, also of `-m full` and `-m "not slow"`: they import others' tests."""
    named = any(HERE.name in Path(argument.partition("::")[0]).parts for argument in config.invocation_params.args)
    return None if named or HERE.name in config.getoption("markexpr") else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let other projects' tests warn of what they want."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
