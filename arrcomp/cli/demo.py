"""The commands `arrcomp demo` and `arrcomp codecs`."""

from .. import measure
from ..codecs import codecs as all_codecs
from ..progress import progress
from . import tables
from .common import Threads, one_line_errors, require


def codecs() -> None:
    """List the codecs."""
    tables.print_table(tables.codecs_table())


def demo(threads: Threads = None) -> None:
    """Make real-looking arrays, compress them with every codec, and check what comes back."""
    from ..demo_data import demo_arrays

    with one_line_errors():
        arrays = demo_arrays()
        examples = [codec for kind in all_codecs().values() for codec in kind.examples()]
        jobs = [(name, codec) for name in arrays for codec in examples if codec.takes_numpy(arrays[name].dtype)]
        rows = []
        with progress("compressing", len(jobs), True) as done:
            for name, codec in jobs:
                compressed, row = measure.encode(name, arrays[name], codec, threads=threads, seed=0)
                rows.append(measure.check(arrays[name], compressed, row, threads=threads))
                done(row.spec.nbytes)
        tables.print_table(tables.measurements_table(rows, summary=False))
        require(rows)
