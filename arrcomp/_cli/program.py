"""The program's commands as Typer has them: their help from `page`, wrong usage in one line."""

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from .page import PROGRAM, UNREAD, USAGE, Example, Page, page_of

_LEAST_WIDTH, _MOST_WIDTH = 20, 100
_NARROW = 60  # columns below which a term stands above what it means
_SHORT_TERM, _LONGEST_TERM = 10, 28  # which has what it means beside it always, or at most
_UsageError: Any = typer.BadParameter.__base__  # of all that the parser raises; Typer exports this one alone


class Command(TyperCommand):
    """A command."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write its help."""
        formatter.write(rendered(page_of(self, ctx.command_path)))


class Program(TyperGroup):
    """All commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the program's help."""
        formatter.write(rendered(page_of(self, ctx.command_path)))

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse; `--help` prints here."""
        with ending_quietly():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with ending_quietly():
            return super().invoke(ctx)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse and run; wrong usage is told in one line."""
        try:
            code = super().main(*args, **extra | {"standalone_mode": False})
        except _UsageError as error:
            _refuse(error)
        sys.exit(code or 0)


@contextlib.contextmanager
def ending_quietly() -> Iterator[None]:
    """End without a word where nobody reads the output any more, as after `| head`; with one where it has no room."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
        sys.exit(UNREAD)
    except OSError as error:  # commands tell their own
        discard_output()
        typer.echo(f"{PROGRAM}: {error.filename or 'standard output'}: {error.strerror}", err=True)
        sys.exit(USAGE)


def discard_output() -> None:
    """Forget what standard output could not take, which Python would try to write once more at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """The end of a message about a name that is unknown: those it resembles, or nothing."""
    close = get_close_matches(name, list(allowed))
    return f"; did you mean {' or '.join(close)}?" if close else ""


def rendered(page: Page) -> str:
    """A page for the terminal; what a pager or a file gets has no styles."""
    width = min(typer.get_terminal_size().columns, _MOST_WIDTH)
    title = _bold if _is_styled() else str
    parts = [f"{title('Usage:')} {page.synopsis}"]
    parts += [textwrap.fill(text, width) for text in page.about]
    if page.examples:
        parts.append("\n".join([title("Examples:"), *map(_shown, page.examples)]))
    parts += ["\n".join([title(f"{name}:"), *_terms(rows, width)]) for name, rows in page.sections.items()]
    return "\n\n".join(parts) + "\n"


def _shown(example: Example) -> str:
    return f"  {example.about}:\n{textwrap.indent(example.command, '    ')}"


def _terms(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Terms in one column and what they mean in another; above it where that is too narrow, or they too long."""
    column = 4 + max(len(term) for term, _ in rows if len(term) <= _LONGEST_TERM)
    column = 4 if width < _NARROW and column > 4 + _SHORT_TERM else column
    for term, meaning in rows:
        lines = textwrap.wrap(meaning, max(width - column, _LEAST_WIDTH), break_long_words=False) or [""]
        beside = len(term) + 4 <= column
        yield f"  {term:{column - 2}}{lines.pop(0)}" if beside else f"  {term}"
        yield from (" " * column + line for line in lines)


def _bold(text: str) -> str:
    return typer.style(text, bold=True)


def _is_styled() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stdout is not None and sys.stdout.isatty()


def _refuse(error: Any) -> NoReturn:
    """Say what is wrong, what may have been meant, and where the help is."""
    message = error.message if getattr(error, "option_name", None) else error.format_message()
    if getattr(error, "possibilities", None):
        message += f"; did you mean {' or '.join(sorted(error.possibilities))}?"
    path = error.ctx.command_path if error.ctx is not None else PROGRAM
    text = " ".join(message.split())
    typer.echo(f"{PROGRAM}: {text}{'' if text.endswith(('.', '?')) else '.'} See {path} --help", err=True)
    sys.exit(USAGE)
