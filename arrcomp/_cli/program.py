"""Typer's classes of the program and its commands: help from `page`, wrong usage in one line."""

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from .page import PROGRAM, UNREAD, USAGE, Page, page_of
from .words import options_with

_LEAST_WIDTH, _MOST_WIDTH = 20, 100
_NARROW = 60  # columns below which terms are above their meanings
_SHORT_TERM, _LONGEST_TERM = 10, 28  # columns of terms that are always beside their meanings, or at most
_UsageError: Any = typer.BadParameter.__base__  # the base of all errors of the parser, which Typer does not export


class Command(TyperCommand):
    """A command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(rendered(page_of(self, ctx.command_path)))


class Program(TyperGroup):
    """All commands."""

    format_help = Command.format_help

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the arguments. `--help` prints here."""
        with ending_quietly():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with ending_quietly():
            return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> Any:
        """Parse and run. Wrong usage is reported in one line."""
        try:
            code = super().main(args, *others, **extra | {"standalone_mode": False})
        except _UsageError as error:
            _refuse(error, sys.argv[1:] if args is None else args)
        sys.exit(code or 0)


@contextlib.contextmanager
def ending_quietly() -> Iterator[None]:
    """Exit silently if the output's reader has closed it, as `| head` does; with a message if the disk is full."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
        sys.exit(UNREAD)
    except OSError as error:  # commands report their own
        discard_output()
        typer.echo(f"{PROGRAM}: {error.filename or 'standard output'}: {error.strerror}", err=True)
        sys.exit(USAGE)


def discard_output() -> None:
    """Drop buffered output that could not be written. Python would try again when it exits."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """The end of a message about an unknown name: similar names, or nothing."""
    close = get_close_matches(name, list(allowed))
    return f"; did you mean {' or '.join(close)}?" if close else ""


def rendered(page: Page) -> str:
    """A page for the terminal. Pagers and files get no styles."""
    width = min(typer.get_terminal_size().columns, _MOST_WIDTH)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    styled = not plain and sys.stdout is not None and sys.stdout.isatty()

    def title(text: str) -> str:
        return typer.style(text, bold=True) if styled else text

    paragraphs = [f"{title('Usage:')} {page.synopsis}"]
    paragraphs += [textwrap.fill(text, width, break_on_hyphens=False) for text in page.about]
    if page.examples:
        shown = [f"  {about}:\n{textwrap.indent(command, '    ')}" for about, command in page.examples]
        paragraphs.append("\n".join([title("Examples:"), *shown]))
    paragraphs += ["\n".join([title(f"{name}:"), *_terms(rows, width)]) for name, rows in page.sections.items()]
    return "\n\n".join(paragraphs) + "\n"


def _terms(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Terms beside their meanings; above them if the screen is too narrow or a term too long."""
    column = 4 + max(len(term) for term, _ in rows if len(term) <= _LONGEST_TERM)
    column = 4 if width < _NARROW and column > 4 + _SHORT_TERM else column
    for term, meaning in rows:
        room = max(width - column, _LEAST_WIDTH)
        lines = textwrap.wrap(meaning, room, break_long_words=False, break_on_hyphens=False) or [""]
        beside = len(term) + 4 <= column
        yield f"  {term:{column - 2}}{lines.pop(0)}" if beside else f"  {term}"
        yield from (" " * column + line for line in lines)


def _setting(context: Any, option: str, arguments: Sequence[str]) -> str | None:
    """What to type for a codec's parameter that was given as an option, if the command takes such parameters."""
    if context is None or not any("--set" in parameter.opts for parameter in context.command.params):
        return None
    words = [after for before, after in pairwise(arguments) if before == option]
    words += [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    return options_with(option.lstrip("-").replace("-", "_"), words[0] if words else None)


def _refuse(error: Any, arguments: Sequence[str]) -> NoReturn:
    """Report wrong usage, similar names, and the command's help."""
    name = getattr(error, "option_name", None)
    message = error.message if name else error.format_message()
    setting = _setting(error.ctx, name, arguments) if name else None
    if setting:
        message += f"; parameters of codecs are set by --set, for instance {setting}"
    elif getattr(error, "possibilities", None):
        message += f"; did you mean {' or '.join(sorted(error.possibilities))}?"
    path = error.ctx.command_path if error.ctx is not None else PROGRAM
    text = " ".join(message.split())
    typer.echo(f"{PROGRAM}: {text}{'' if text.endswith(('.', '?')) else '.'} See {path} --help", err=True)
    sys.exit(USAGE)
