"""The help: its examples run, it says the exit codes there are, and the manual page and the shell know the same."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp

pytest.importorskip("typer")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

from typer.testing import CliRunner

from arrcomp import _cli

from . import terminals

TOP = Path(__file__).resolve().parents[2]
MANUAL = TOP / "man" / "arrcomp.1"
COMMANDS = ("compress", "decompress", "delta", "apply", "info", "verify", "diff", "plot", "codecs", "demo")
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def manual() -> Any:
    """The program that writes the manual page."""
    spec = importlib.util.spec_from_file_location("make_manual", TOP / "tools" / "make_manual.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments: str, code: int = 0) -> str:
    """What the program prints."""
    result = CliRunner().invoke(_cli.app, arguments, env={"COLUMNS": "80"})
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


def help_of(command: str | None) -> str:
    """The help of a command; None for that of the program."""
    return run(*([command] if command else []), "--help")


def examples_of(command: str | None) -> list[tuple[str, str]]:
    """What each example in a help text is about, and its command line."""
    section = help_of(command).partition("Examples:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\S.*):\n((?:    .*\n?)+)", section, re.MULTILINE)


EXAMPLES = [(command, *example) for command in (None, *COMMANDS) for example in examples_of(command)]
FIRST = [number == 0 or EXAMPLES[number - 1][0] != command for number, (command, *_) in enumerate(EXAMPLES)]
FULL = pytest.mark.full
BASES = {"step2.arrcomp.safetensors": "step1.safetensors"}  # that files need beside them


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that examples name."""
    folder = tmp_path_factory.mktemp("files")
    x = RNG.normal(0, 1, (50, 40)).astype(np.float32)
    model = {"head.weight": x, "head.norm": x[0], "steps": np.array(7)}
    (folder / "data").mkdir()
    np.save(folder / "data" / "x.npy", x)
    np.save(folder / "x.npy", x)
    np.save(folder / "field.npy", x.reshape(-1, 10))
    np.save(folder / "back.npy", x)
    safetensors_numpy.save_file(model, folder / "model.safetensors")
    arrcomp.save_file({"arr_0": x}, folder / "x.arrcomp")
    shutil.copy(folder / "x.arrcomp", folder / "x.npy.arrcomp")
    bounded = arrcomp.model_rules(arrcomp.ErrorBounded(abs=1e-3))
    arrcomp.save_file(model, folder / "small.safetensors", bounded)
    step, later = model | {"head.norm": x[1]}, x + np.float32(1e-3)
    np.save(folder / "old.npy", x)
    np.save(folder / "data" / "old.npy", x)
    np.save(folder / "new.npy", later)
    arrcomp.save_file({"arr_0": later}, folder / "new.arrcomp", base=folder / "old.npy")
    safetensors_numpy.save_file(model, folder / "step1.safetensors")
    safetensors_numpy.save_file(step, folder / "step2.safetensors")
    arrcomp.save_file(step, folder / "step2.arrcomp.safetensors", base=folder / "step1.safetensors")
    return folder


# The first of each command is ordinary, but for the demonstration's, which compress all arrays.
CASES = [
    pytest.param(command, about, line, id=f"{command}-{about}", marks=() if first and command != "demo" else FULL)
    for first, (command, about, line) in zip(FIRST, EXAMPLES, strict=True)
]


@pytest.mark.parametrize(("command", "about", "line"), CASES)
def test_the_examples_of_the_help_run(command: str | None, about: str, line: str, files: Path, tmp_path: Path) -> None:
    if command == "plot":
        pytest.importorskip("matplotlib")
    path, folder = terminals.folder_with_program(tmp_path / "bin"), tmp_path / "work"
    folder.mkdir()
    words = shlex.split(line)
    outputs = [after for before, after in pairwise(words) if before in ("-o", ">") and after != "-"]
    for word in words:
        if (files / word).is_file() and (word not in outputs or "--force" in words):
            (folder / word).parent.mkdir(exist_ok=True)
            for name in (word, BASES.get(word, word)):
                shutil.copy(files / name, folder / name)
        elif (files / word).is_dir():
            shutil.copytree(files / word, folder / word)
    result = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=terminals.environment(PATH=path),
        timeout=2 * terminals.SECONDS,
        check=False,
    )
    trouble = f"the example {about!r} of {command}: {line}\n{result.stdout}\n{result.stderr}"
    assert result.returncode == 0, trouble
    assert "arrcomp: " not in result.stderr, trouble
    assert all((folder / output).stat().st_size for output in outputs), trouble
    assert outputs or result.stdout, trouble


def test_every_command_has_a_sentence_examples_and_exit_codes() -> None:
    assert len(EXAMPLES) >= 20
    for command in (None, *COMMANDS):
        text = help_of(command)
        usage, sentence = text.split("\n\n")[:2]
        assert usage.startswith("Usage: ")
        assert sentence.rstrip().endswith(".")
        assert examples_of(command), command
        codes = dict(re.findall(r"^  (\d+) +(.*)$", text.partition("Exit codes:\n")[2], re.MULTILINE))
        assert {"0", "2", "130"} <= set(codes)
        assert ("1" in codes) == (command in (None, "compress", "delta", "verify", "diff", "demo"))
        assert ("3" in codes) == (command in (None, "decompress", "delta", "apply", "info", "verify", "diff", "plot"))


def test_help_fits_into_80_columns() -> None:
    for command in (None, *COMMANDS):
        assert [line for line in help_of(command).splitlines() if len(line) > 80] == []


def test_short_and_long_help_are_the_same() -> None:
    assert run("-h") == help_of(None)
    assert run("info", "-h") == help_of("info")
    assert run(code=2) == help_of(None)  # no command


def test_the_version_is_told() -> None:
    assert run("--version") == f"arrcomp {arrcomp.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compres x.npy", r"No such command 'compres'\. Did you mean 'compress'"),
        ("compress x.npy -o y.arrcomp --cod lossless", r"No such option: --cod; did you mean --codec\?"),
        ("compress x.npy -o y.arrcomp --codec error-bound", r"did you mean error-bounded\?"),
        ("compress x.npy -o y.arrcomp --rule *=lossles", r"did you mean lossless\?"),
        ("demo --codec lossles", r"--codec: expected lossless, .*, got 'lossles'; did you mean lossless\?"),
        ("compress", r"Missing argument 'IN\.\.\.'.* See arrcomp compress --help"),
        ("plot x.npy", r"Missing option '-o' / '--output'.* See arrcomp plot --help"),
        ("info x.npy y.npy", r"unexpected extra argument.* See arrcomp info --help"),
        ("compress x.npy --bits 5", r"No such option: --bits; .* for instance --codec qsgd --set bits=5\. See"),
        ("compress x.npy --bits=5", r"for instance --codec qsgd --set bits=5\. See"),
        ("compress x.npy --bits 99", r"for instance --codec qsgd --set bits=8\. See"),
        ("compress x.npy --format e3m4", r"for instance --codec float-format --set format=e3m4\. See"),
        ("decompress x.arrcomp --bits 4", r"No such option: --bits(\.|; did you mean)"),
        ("compress x.npy -o", r"'-o' requires an argument"),
        ("compress x.npy -o y.arrcomp --threads many", r"Invalid value for '--threads'.*integer"),
    ],
)
def test_wrong_usage_says_what_was_probably_meant(arguments: str, message: str) -> None:
    result = CliRunner().invoke(_cli.app, arguments.split(), prog_name="arrcomp")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert re.search(f"^arrcomp: .*{message}", result.stderr), result.stderr


def completed(shell: str, *words: str) -> list[str]:
    """What a shell is offered for the last word; nothing where it offers files itself."""
    line = " ".join(words)
    settings = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = {"_ARRCOMP_COMPLETE": f"complete_{shell}", **settings}
    text = CliRunner().invoke(_cli.app, [], prog_name="arrcomp", env=environment).stdout
    if shell == "zsh":
        return [] if text.strip() == "_files" else re.findall(r'"([^"]*)"(?=[\s:)])(?::"[^"]*")?', text)
    return [line.partition("\t")[0] for line in text.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_options_and_codecs(shell: str) -> None:
    assert completed(shell, "arrcomp", "dec") == ["decompress"]
    assert completed(shell, "arrcomp", "compress", "--qu") == ["--quiet"]
    assert completed(shell, "arrcomp", "compress", "x.npy", "--codec", "e") == ["error-bounded"]
    assert completed(shell, "arrcomp", "compress", "--codec", "nf") == ["nf4"]
    with_s = {name for name in arrcomp.available_codecs() if name.startswith("s")}
    assert set(completed(shell, "arrcomp", "demo", "--codec", "s")) == with_s >= {"smaq", "s2fp8"}
    assert completed(shell, "arrcomp", "compress", "x.n") == []  # the shell's own completion of files
    assert completed(shell, "arrcomp", "compress", "x.npy", "-o", "x.a") == []


def test_bash_itself_completes_options_and_files(files: Path, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    script = """
        eval "$(arrcomp --show-completion bash)"
        complete -p arrcomp
        COMP_WORDS=(arrcomp compress --qui) COMP_CWORD=2
        _arrcomp_completion arrcomp
        echo "${COMPREPLY[@]}"
    """
    result = subprocess.run(
        [bash, "--norc", "-c", script],
        capture_output=True,
        text=True,
        env=terminals.environment(
            PATH=terminals.folder_with_program(tmp_path / "bin"), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
        ),
        timeout=terminals.SECONDS,
        check=False,
    )
    lines = result.stdout.splitlines()
    assert "-o default" in lines[0]  # files, where there is nothing else
    assert lines[1:] == ["--quiet"], result.stderr


def test_the_help_is_in_plain_words() -> None:
    assert "Print JSON instead of a table (NaN and infinity become null)." in " ".join(help_of("info").split())
    text = " ".join(help_of(None).split())
    assert "Install completion for the current shell." in text
    assert "141 broken pipe" in text
    assert "(for example integers with error-bounded) are stored losslessly" in " ".join(help_of("compress").split())


def test_the_script_of_a_shell_is_shown() -> None:
    # With this setting Typer takes the shell's name, and does not look for it among its parents.
    result = terminals.piped("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert result.returncode == 0
    assert b"_ARRCOMP_COMPLETE=complete_bash" in result.stdout


def test_the_manual_page_is_what_the_help_says(manual: Any) -> None:
    if not MANUAL.exists():
        pytest.skip("no checkout: no man/")
    assert MANUAL.read_text(encoding="utf-8") == manual.manual(), "python tools/make_manual.py man/arrcomp.1"


def test_the_manual_page_has_every_option_and_example(manual: Any) -> None:
    page = manual.manual().replace(r"\-", "-").replace(r"\(aq", "'")
    for command, _, line in EXAMPLES:
        for part in line.splitlines():
            assert part.strip().replace("\\", r"\e") in page, (command, part)
    for command in COMMANDS:
        for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", help_of(command), re.MULTILINE):
            assert option in page


def test_the_manual_page_is_sound_roff(manual: Any, tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("no groff")
    page = tmp_path / "arrcomp.1"
    page.write_text(manual.manual(), encoding="utf-8")
    command = [groff, "-man", "-Kutf8", "-Tutf8", "-ww", str(page)]
    result = subprocess.run(command, capture_output=True, timeout=terminals.SECONDS, check=False)
    if b"cannot" in result.stderr and not result.stdout:  # a groff without its macros
        pytest.skip(result.stderr.decode())
    assert (result.returncode, result.stderr) == (0, b"")
    text = re.sub("\x1b[^m]*m|.\x08", "", result.stdout.decode())  # bold by escapes, or by overstriking
    assert "EXIT STATUS" in text
    assert "--codec NAME" in text


def test_a_stale_manual_page_is_found(manual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.1"
    monkeypatch.setattr(sys, "argv", ["manual", str(page), "--check"])
    with pytest.raises(SystemExit, match=r"page\.1 is out of date"):
        manual.main()
    monkeypatch.setattr(sys, "argv", ["manual", str(page)])
    manual.main()
    monkeypatch.setattr(sys, "argv", ["manual", str(page), "--check"])
    manual.main()
    page.write_text(page.read_text() + "more\n")
    with pytest.raises(SystemExit, match="is out of date"):
        manual.main()
