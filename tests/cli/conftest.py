"""What all tests of the command line share."""

import pytest


@pytest.fixture(autouse=True)
def no_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes of pytest have the width of the terminal in their environment."""
    monkeypatch.delenv("COLUMNS", raising=False)
