"""The help of a command, for `--help` and for the manual page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from typer.core import TyperCommand, TyperGroup

PROGRAM = "arrcomp"

DONE, FAILED, USAGE, CORRUPT, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141
EXITS = {
    DONE: "done",
    FAILED: "a guarantee is broken, or files differ",
    USAGE: "wrong usage, or a file cannot be read or written",
    CORRUPT: "a stream is corrupt, or has a newer format",
    INTERRUPTED: "interrupted by Ctrl-C",
    UNREAD: "the output's reader has closed it",
}

_HELP = ("-h, --help", "Show this text.")
_COMPLETION = {
    "install_completion": "Install completion of commands, options, codecs and files for the current shell.",
    "show_completion": "Print the completion script of --install-completion.",
}
_ATTRIBUTE = "arrcomp_help"
_Function = TypeVar("_Function", bound=Callable[..., None])


@dataclass(frozen=True)
class Example:
    """An example of a command line.

    Attributes:
        about: a few words on what it does.
        command: the command line, for a shell.
    """

    about: str
    command: str


@dataclass(frozen=True)
class Page:
    """The help of a command, or of the program.

    Attributes:
        name: of the command.
        synopsis: its usage.
        about: paragraphs; the first is one sentence.
        examples: the simplest first.
        sections: terms and their meanings, by title.
    """

    name: str
    synopsis: str
    about: tuple[str, ...]
    examples: tuple[Example, ...]
    sections: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return self.about[0]


def described(*examples: Example, failed: str | None = None, streams: bool = True) -> Callable[[_Function], _Function]:
    """Add examples and exit codes to a command.

    Args:
        examples: the simplest first.
        failed: the meaning of exit code 1; None if the command does not use it.
        streams: whether it reads streams, which may be corrupt.
    """
    unused = ({CORRUPT} if not streams else set()) | ({FAILED} if failed is None else set())
    exits = {code: text for code, text in EXITS.items() if code not in unused}
    if failed is not None:
        exits[FAILED] = failed

    def decorate(function: _Function) -> _Function:
        setattr(function, _ATTRIBUTE, (examples, exits))
        return function

    return decorate


def page_of(command: TyperCommand | TyperGroup, name: str) -> Page:
    """The help of the command with this name."""
    examples, exits = getattr(command.callback, _ATTRIBUTE)
    params: list[Any] = list(command.params)  # Typer's own classes have more attributes than their base
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option" and not param.hidden]
    commands = command.commands if isinstance(command, TyperGroup) else {}
    required = [_forms(param, param.opts[:1]) for param in options if param.required]
    words = [name, *map(_shown, arguments), *required, *(["COMMAND"] if commands else []), "[OPTIONS]"]
    sections = {
        "Commands": tuple((title, _paragraphs(each)[0]) for title, each in commands.items()),
        "Arguments": tuple((_shown(param), param.help or "") for param in arguments),
        "Options": (*((_names(param), _meaning(param)) for param in options), _HELP),
        "Exit codes": tuple((str(code), text) for code, text in exits.items()),
    }
    filled = {title: rows for title, rows in sections.items() if rows}
    return Page(name, " ".join(words), _paragraphs(command), examples, filled)


def pages(program: TyperGroup) -> list[Page]:
    """The help of the program and of each command."""
    return [page_of(program, PROGRAM), *(page_of(each, f"{PROGRAM} {name}") for name, each in program.commands.items())]  # type: ignore[arg-type]


def _paragraphs(command: Any) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in (command.help or "").split("\n\n"))


def _shown(argument: Any) -> str:
    return str(argument.metavar)


def _names(option: Any) -> str:
    """All forms of an option, short ones first."""
    forms = sorted(option.opts, key=lambda form: form.startswith("--"))
    return ", ".join([_forms(option, forms), *option.secondary_opts])


def _forms(option: Any, forms: list[str]) -> str:
    metavar = "" if option.is_flag or not option.metavar else f" {option.metavar}"
    return ", ".join(forms) + metavar


def _meaning(option: Any) -> str:
    """The meaning of an option, with its default."""
    if option.name in _COMPLETION:
        return _COMPLETION[option.name]
    default = ""
    if option.secondary_opts:
        default = f" [default: {(option.opts if option.default else option.secondary_opts)[0]}]"
    elif not option.is_flag and isinstance(option.default, str):
        default = f" [default: {option.default}]"
    repeated = " May be repeated." if option.multiple else ""
    return f"{option.help or ''}{default}{repeated}"
