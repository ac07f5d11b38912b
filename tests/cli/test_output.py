"""Where the command line writes: files, pipes and terminals each get what suits them, and only what was asked for."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import arrcomp
import checks

pytest.importorskip("typer")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

from typer.testing import CliRunner, Result

from arrcomp import _cli
from arrcomp._cli import standard

from . import terminals

WEIGHTS = np.random.default_rng(3).normal(0, 0.02, (64, 100)).astype(np.float32)
STREAM = arrcomp.compress(WEIGHTS).to_bytes()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with an array, a model, and both compressed."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", WEIGHTS)
    Path("x.arrcomp").write_bytes(STREAM)
    model = {"layer.weight": WEIGHTS, "layer.norm": WEIGHTS[0]}
    safetensors_numpy.save_file(model, "m.safetensors")
    arrcomp.save_file(model, "c.safetensors", arrcomp.ErrorBounded(abs=1e-3))
    return tmp_path


def invoke(*arguments: str, data: bytes = b"", code: int = 0) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(_cli.app, arguments, input=data)
    assert result.exit_code == code, result.output
    return result


def npy_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


COMMANDS = [
    ("compress", "x.npy", "-o", "new.arrcomp"),
    ("decompress", "x.arrcomp", "-o", "new.npy"),
    ("info", "c.safetensors"),
    ("verify", "m.safetensors", "c.safetensors"),
    ("diff", "x.npy", "x.arrcomp"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_quiet_prints_nothing_but_what_json_asks_for(command: tuple[str, ...]) -> None:
    force = ["--force"] if "-o" in command else []
    assert invoke(*command, *force).stdout
    assert invoke(*command, *force, "--quiet").output == ""
    assert invoke(*command, *force, "-q").output == ""
    json.loads(invoke(*command, *force, "-q", "--json").output)


def test_quiet_tells_errors() -> None:
    missing = invoke("info", "-q", "missing.arrcomp", code=2).stderr
    assert missing == f"arrcomp: missing.arrcomp: {os.strerror(errno.ENOENT)}\n"
    np.save("other.npy", WEIGHTS + 1)
    assert invoke("diff", "-q", "x.npy", "other.npy", code=1).output == ""
    assert "break the guarantee" in invoke("verify", "-q", "other.npy", "x.arrcomp", code=1).stderr


SPEC = {"name", "dtype", "shape", "codec", "frame"}
SIZES = {"bytes", "compressed", "ratio"}
CHECKED = {"largest_error", "violations", "decode_seconds"}
DIFFERENCE = {"values", "differing", "largest_error", "relative_to_range", "relative_error", "psnr"}


@pytest.mark.parametrize(
    ("command", "top", "row", "total"),
    [
        (COMMANDS[0], {"arrays", "total"}, SPEC, SIZES | CHECKED | {"encode_seconds"}),
        (COMMANDS[1], {"arrays", "total"}, SPEC, SIZES | {"decode_seconds"}),
        (COMMANDS[2], {"arrays", "total"}, SPEC, SIZES),
        (COMMANDS[3], {"arrays", "total"}, SPEC, SIZES | CHECKED),
        (COMMANDS[4], {"same", "arrays", "only_in", "total"}, {"name"}, DIFFERENCE),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_json_is_one_document_with_the_same_keys_always(
    command: tuple[str, ...], top: set[str], row: set[str], total: set[str]
) -> None:
    result = invoke(*command, "--json")
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document.keys() == top
    assert document["total"].keys() == total
    for each in document["arrays"]:
        assert each.keys() == row | total


# Files


def test_nothing_is_overwritten_without_force() -> None:
    before = Path("x.arrcomp").read_bytes()
    message = invoke("compress", "x.npy", "-o", "x.arrcomp", "--codec", "qsgd", code=2).stderr
    assert message == "arrcomp: x.arrcomp: expected a new file, got one that exists; --force overwrites it\n"
    assert Path("x.arrcomp").read_bytes() == before
    invoke("compress", "x.npy", "-o", "x.arrcomp", "--codec", "qsgd", "-f")
    assert arrcomp.from_bytes(Path("x.arrcomp").read_bytes()).codec == arrcomp.QSGD()


# Standard input and output


def test_arrays_travel_through_pipes() -> None:
    compressed = invoke("compress", "-", "-o", "-", data=npy_bytes(WEIGHTS))
    assert (compressed.stdout_bytes, compressed.stderr) == (STREAM, "")
    restored = invoke("decompress", "-", "-o", "-", data=STREAM)
    checks.check_same_bits(np.load(io.BytesIO(restored.stdout_bytes)), WEIGHTS)
    assert restored.stderr == ""
    assert "64 x 100" in invoke("info", "-", data=STREAM).stdout
    assert invoke("compress", "x.npy", "-o", "-").stdout_bytes == STREAM
    invoke("decompress", "-", "-o", "y.npy", data=STREAM)
    checks.check_same_bits(np.load("y.npy"), WEIGHTS)


def test_pipes_of_processes_carry_bytes() -> None:
    compressed = terminals.piped("compress", "-", "-o", "-", data=npy_bytes(WEIGHTS))
    assert (compressed.returncode, compressed.stdout, compressed.stderr) == (0, STREAM, b"")


@pytest.mark.parametrize(
    ("arguments", "data", "message", "code"),
    [
        (["info", "-"], STREAM[:100], "standard input, array 'arr_0': .*stream is truncated", 3),
        (["info", "-"], b"", "standard input", 3),
        (["decompress", "-", "-o", "-"], STREAM[:-1] + b"\0", "standard input, array 'arr_0': .*checksum", 3),
        (["compress", "-", "-o", "-"], b"text", "standard input: expected a .npy .*, got another or a damaged one", 2),
        (
            ["compress", "m.safetensors", "-o", "-"],
            b"",
            "standard output: expected suffix .safetensors for 2 arrays",
            2,
        ),
        (["decompress", "c.safetensors", "-o", "-"], b"", "standard output: expected one array .*, got 2", 2),
    ],
    ids=str,
)
def test_trouble_with_standard_streams_names_them_and_writes_nothing(
    arguments: list[str], data: bytes, message: str, code: int
) -> None:
    result = invoke(*arguments, data=data, code=code)
    assert result.stdout == ""
    assert re.search(message, result.stderr), result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_closed_streams_and_terminals_hold_no_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, message in (
        (None, "expected standard input to be open, got a closed one"),
        (Terminal(), "expected standard input to be a file or a pipe, got a terminal"),
    ):
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(ValueError, match=f"-: {message}; "), standard.input_file(Path("-"), ".npy"):
            raise AssertionError("nothing to read")
    monkeypatch.setattr(sys, "stdout", None)
    with (
        pytest.raises(ValueError, match=r"-: expected standard output to be open, got a closed one; "),
        standard.output_file(Path("-"), ".npy", Path("x.npy"), force=False),
    ):
        raise AssertionError("nowhere to write to")


def test_no_temporary_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    invoke("compress", "-", "-o", "-", data=npy_bytes(WEIGHTS))
    invoke("decompress", "-", "-o", "-", data=STREAM[:-1], code=3)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_arrays_are_not_written_to_a_terminal() -> None:
    code, text = terminals.in_terminal(100, "compress", "x.npy", "-o", "-")
    assert code == 2
    assert "arrcomp: -: expected standard output to be a file or a pipe, got a terminal" in text
    assert "ARRC" not in text


@pytest.mark.parametrize(
    "command",
    [("info", "x.arrcomp"), ("decompress", "x.arrcomp", "-o", "-"), ("compress", "--help"), ("codecs", "--json")],
    ids=str,
)
def test_the_program_ends_quietly_when_nobody_reads(command: tuple[str, ...]) -> None:
    assert terminals.unread(*command) == (141, "")


@pytest.mark.parametrize("command", [("info", "x.arrcomp"), ("info", "--help")], ids=str)
def test_a_full_output_is_told_in_one_line(command: tuple[str, ...]) -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("no /dev/full")
    with full.open("wb") as output:
        code, error = terminals.written_to(output, *command)
    assert (code, error) == (2, f"arrcomp: standard output: {os.strerror(errno.ENOSPC)}\n")


# Terminals


def test_what_is_piped_has_no_colours_and_no_progress() -> None:
    for command in (("verify", "m.safetensors", "c.safetensors"), ("info", "--help")):
        result = terminals.piped(*command)
        assert result.returncode == 0
        assert b"\x1b" not in result.stdout
        assert result.stderr == b""


def test_a_terminal_shows_colours_progress_and_a_table() -> None:
    code, text = terminals.in_terminal(140, "verify", "m.safetensors", "c.safetensors")
    assert code == 0
    assert "\x1b[1m" in text
    plain = terminals.without_styles(text)
    assert "2 of 2 arrays" in plain
    assert re.search(r"\nlayer.weight +float32 +64 x 100 +error-bounded abs=0.001 ", plain)
    assert "…" not in plain
    assert plain.endswith("\nverified c.safetensors: 2 arrays, all bounds kept\n")


def test_the_progress_bar_has_no_colour_of_errors() -> None:
    _, text = terminals.in_terminal(140, "verify", "m.safetensors", "c.safetensors")
    bar = text[: text.rindex("2 of 2 arrays")]
    assert "━" in bar
    assert "\x1b[36m" in bar
    assert not re.search(r"\x1b\[([0-9;]*;)?(31|35|91|95|38;2;249;38;114|38;5;19[78])m", bar)


def test_colours_are_not_for_everyone() -> None:
    _, text = terminals.in_terminal(140, "diff", "m.safetensors", "c.safetensors", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", text)
    assert "\x1b[1mUsage" in terminals.in_terminal(100, "info", "-h")[1]
    assert "\x1b" not in terminals.in_terminal(100, "info", "-h", NO_COLOR="1")[1]


def test_narrow_terminals_get_paragraphs_and_lose_nothing() -> None:
    code, text = terminals.in_terminal(50, "info", "x.arrcomp")
    assert code == 0
    plain = terminals.without_styles(text).replace("\r", "\n")
    assert "…" not in plain
    assert "\narr_0\n  dtype: float32\n  shape: 64 x 100\n  codec: lossless\n  size: 25.6 kB\n" in plain
    _, text = terminals.in_terminal(50, "compress", "--help")
    prose = [line for line in terminals.without_styles(text).splitlines() if not line.startswith("    arrcomp")]
    assert "  --speed default|fast\n    A better ratio, or faster.\n" in terminals.without_styles(text)
    assert sum(len(line) > 50 for line in prose) < 4  # terms and examples, which are never broken
    assert CliRunner().invoke(_cli.app, ["compress", "-h"], env={"COLUMNS": "5"}).exit_code == 0


def test_output_that_takes_ascii_alone_gets_that() -> None:
    np.savez("x.npz", **{"größe": WEIGHTS})  # type: ignore[arg-type]
    invoke("compress", "x.npz", "-o", "n.safetensors")
    result = terminals.piped("info", "n.safetensors", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert rb"gr\xf6\xdfe" in result.stdout
