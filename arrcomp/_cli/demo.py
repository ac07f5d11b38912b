"""The commands `arrcomp demo` and `arrcomp codecs`."""

from typing import Annotated

from typer import Option

from .._files.progress import progress
from ..codecs import available_codecs
from . import measure, tables
from .choice import codec_class, completed_codecs
from .common import Json, Quiet, Threads, one_line_errors, print_json, print_table, require, show
from .page import Example, described


@described(Example("Which codecs there are", "arrcomp codecs"), streams=False)
def codecs(as_json: Json = False) -> None:
    """List the codecs: what each guarantees, its dtypes, and an example."""
    with one_line_errors():
        if as_json:
            print_json(tables.codecs_document())
        else:
            print_table(tables.codecs_table())


@described(
    Example("All codecs on all arrays", "arrcomp demo"),
    Example("One codec", "arrcomp demo --codec error-bounded"),
    failed="a value breaks its guarantee",
    streams=False,
)
def demo(
    chosen: Annotated[
        list[str] | None, Option("--codec", metavar="NAME", help="Only this codec.", autocompletion=completed_codecs)
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make realistic arrays, compress them with every codec, and check the decompressed arrays.

    It takes a minute, or a few seconds with --codec.
    """
    from .demo_data import demo_arrays

    with one_line_errors():
        kinds = [codec_class(name) for name in chosen] if chosen else available_codecs().values()
        arrays = demo_arrays()
        examples = [codec for kind in kinds for codec in kind.examples()]
        jobs = [(name, codec) for name in arrays for codec in examples if codec.takes_numpy(arrays[name].dtype)]
        rows = []
        with progress("compressing", len(jobs), not quiet) as done:
            for name, codec in jobs:
                compressed, row = measure.encode(name, arrays[name], codec, measure.Settings(threads, seed=0))
                rows.append(measure.check(arrays[name], compressed, row, threads))
                done(row.spec.nbytes)
        show(rows, as_json=as_json, quiet=quiet, summary=False)
        require(rows)
