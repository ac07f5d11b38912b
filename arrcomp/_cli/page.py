"""The help of a command, for `--help` and for the manual page."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from typer.core import TyperCommand, TyperGroup

from .._interrupts import INTERRUPTED

PROGRAM = "arrcomp"

DONE, FAILED, USAGE, CORRUPT, UNREAD = 0, 1, 2, 3, 141
EXITS = {
    DONE: "done",
    FAILED: "a guarantee is broken, or files differ",
    USAGE: "wrong usage, or a file cannot be read or written",
    CORRUPT: "a stream is corrupt, or has a newer format",
    INTERRUPTED: "interrupted by Ctrl-C",
    UNREAD: "broken pipe",
}

_HELP = ("-h, --help", "Show this text.")
_COMPLETION = {
    "install_completion": "Install completion for the current shell.",
    "show_completion": "Print the completion script for the current shell.",
}
_ATTRIBUTE = "arrcomp_help"
_Function = TypeVar("_Function", bound=Callable[..., None])


class Example(NamedTuple):
    """A command line for a shell, and a few words on what it does."""

    about: str
    command: str


class Page(NamedTuple):
    """The help of a command, or of the program."""

    name: str
    synopsis: str
    about: tuple[str, ...]  # paragraphs; the first is one sentence
    examples: tuple[Example, ...]  # the simplest first
    sections: Mapping[str, tuple[tuple[str, str], ...]]  # terms and their meanings, by title


def described(*examples: Example, failed: str | None = None, streams: bool = True) -> Callable[[_Function], _Function]:
    """Add examples and exit codes to a command, which may have `failed`, and read corrupt `streams`."""
    meanings = EXITS | {FAILED: failed} | ({} if streams else {CORRUPT: None})
    exits = {code: text for code, text in meanings.items() if text is not None}

    def decorate(function: _Function) -> _Function:
        setattr(function, _ATTRIBUTE, (examples, exits))
        return function

    return decorate


def page_of(command: TyperCommand | TyperGroup, name: str) -> Page:
    """The help of the command with this name."""
    examples, exits = getattr(command.callback, _ATTRIBUTE)
    params: list[Any] = list(command.params)  # Typer's own classes have more attributes than their base
    arguments = [(str(param.metavar), param.help or "") for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option" and not param.hidden]
    commands = command.commands if isinstance(command, TyperGroup) else {}
    required = [_forms(param, param.opts[:1]) for param in options if param.required]
    words = [name, *(metavar for metavar, _ in arguments), *required, *(["COMMAND"] if commands else []), "[OPTIONS]"]
    sections = {
        "Commands": tuple((title, _paragraphs(each)[0]) for title, each in commands.items()),
        "Arguments": tuple(arguments),
        "Options": (*map(_term, options), _HELP),
        "Exit codes": tuple((str(code), text) for code, text in exits.items()),
    }
    filled = {title: rows for title, rows in sections.items() if rows}
    return Page(name, " ".join(words), _paragraphs(command), examples, filled)


def pages(program: TyperGroup) -> list[Page]:
    """The help of the program and of each command."""
    return [page_of(program, PROGRAM), *(page_of(each, f"{PROGRAM} {name}") for name, each in program.commands.items())]  # type: ignore[arg-type]


def _paragraphs(command: Any) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in (command.help or "").split("\n\n"))


def _forms(option: Any, forms: list[str]) -> str:
    metavar = "" if option.is_flag or not option.metavar else f" {option.metavar}"
    return ", ".join(forms) + metavar


def _term(option: Any) -> tuple[str, str]:
    """All forms of an option, short ones first, and its meaning, with its default."""
    forms = sorted(option.opts, key=lambda form: form.startswith("--"))
    names = ", ".join([_forms(option, forms), *option.secondary_opts])
    if option.name in _COMPLETION:
        return names, _COMPLETION[option.name]
    default = ""
    if option.secondary_opts:
        default = f" [default: {(option.opts if option.default else option.secondary_opts)[0]}]"
    elif not option.is_flag and isinstance(option.default, str):
        default = f" [default: {option.default}]"
    return names, f"{option.help or ''}{default}{' May be repeated.' if option.multiple else ''}"
