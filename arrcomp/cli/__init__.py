"""The command line.

Exit codes: 0 well; 1 a bound is broken, or files differ; 2 wrong usage or unusable input; 3 a corrupt stream, or one of
a newer format; 130 interrupted.
"""

try:
    import rich  # noqa: F401 - asked for here, so that it is missed here
    import typer
except ImportError as missing:
    raise ImportError(f"the command line needs typer and rich ({missing}): pip install arrcomp[cli]") from None

from ..files import ARRAY_SUFFIXES
from .compress import compress
from .decompress import decompress
from .demo import codecs, demo
from .diff import diff
from .info import info
from .plot import plot
from .verify import verify

app = typer.Typer(
    name="arrcomp",
    help=f"Compress arrays in {', '.join(ARRAY_SUFFIXES)} files.",
    epilog="Exit codes: 0 well; 1 a bound is broken, or files differ; 2 wrong usage or unusable input; "
    "3 a corrupt stream, or one of a newer format; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (compress, decompress, info, verify, diff, plot, codecs, demo):
    app.command()(command)


def main() -> None:
    """Run the command line."""
    app()
