"""The command line. `page` has its exit codes. `manual` writes its manual page, `man/arrcomp.1`."""

try:
    import rich  # noqa: F401 - so that a missing package is reported here
    import typer
except ImportError as missing:
    raise ImportError(f"the command line needs typer and rich ({missing}): pip install arrcomp[cli]") from None

from typing import Annotated

from .. import __version__
from .._files import ARRAY_SUFFIXES
from .compress import compress
from .decompress import apply, decompress, info, verify
from .delta import delta
from .demo import codecs, demo
from .diff import diff
from .page import EXITS, FAILED, PROGRAM, USAGE, Example, described
from .plot import plot
from .program import Command, Program

app = typer.Typer(
    name=PROGRAM,
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True, help=f"Compress arrays in {', '.join(ARRAY_SUFFIXES)} files.")
@described(
    Example("Compress an array", "arrcomp compress x.npy -o x.arrcomp"),
    Example("Get it back", "arrcomp decompress x.arrcomp -o back.npy"),
    Example("See what a command does, and examples of it", "arrcomp compress --help"),
    failed=EXITS[FAILED],
)
def program(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Print the version or the help."""
    if version:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)


for command in (compress, decompress, delta, apply, info, verify, diff, plot, codecs, demo):
    app.command(cls=Command)(command)


def main() -> None:
    """Run the command line."""
    app(prog_name=PROGRAM)
