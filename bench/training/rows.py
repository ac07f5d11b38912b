"""Results of several runs: a table, and a file."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from arrcomp._cli import tables
from arrcomp._files.replacing import replacing
from arrcomp.torch.training import STRUCTURES
from training.run import Result


@dataclass(frozen=True)
class Row:
    """The runs of one setting, which differ in their seeds.

    Attributes:
        name: of the setting.
        results: one at least.
    """

    name: str
    results: Sequence[Result]

    @property
    def value(self) -> float:
        """The mean of the metric."""
        return statistics.fmean(result.value for result in self.results)

    @property
    def bits(self) -> float:
        """The mean of the bits that 32 become."""
        return statistics.fmean(result.bits for result in self.results)

    def ratio(self, structure: str) -> float | None:
        """Of a structure, over all seeds; None where it was not chosen."""
        sizes = [result.sizes[structure] for result in self.results if structure in result.sizes]
        compressed = sum(size.compressed for size in sizes)
        return sum(size.original for size in sizes) / compressed if compressed else None


def result_table(rows: Sequence[Row]) -> tables.Table:
    """Metric, bits and ratios, a row for each setting; narrow enough for most terminals."""
    metric = rows[0].results[0].metric
    structures = [name for name in STRUCTURES if any(row.ratio(name) for row in rows)]
    spreads = [_spread(row) for row in rows]
    columns = [
        tables.Column("codec"),
        *(tables.Column(title, is_number=True) for title in (metric, "of seeds", "bits", *structures)),
    ]
    lines = []
    for row, spread in zip(rows, spreads, strict=True):
        ratios = ["" if ratio is None else f"{ratio:.2f}" for ratio in map(row.ratio, structures)]
        style = "red" if any(result.diverged for result in row.results) else ""
        lines.append(tables.Row([row.name, f"{row.value:.4f}", spread, f"{row.bits:.2f}", *ratios], style))
    return tables.Table(columns, lines)


def _spread(row: Row) -> str:
    values = [result.value for result in row.results]
    text = f"{min(values):.4f} to {max(values):.4f}" if len(values) > 1 else ""
    diverged = sum(result.diverged for result in row.results)
    return f"{text} ({diverged} diverged)".strip() if diverged else text


def document(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same for JSON, of each run."""
    return [{"codec": row.name} | _plain(result) for row in rows for result in row.results]


def _plain(result: Result) -> dict[str, Any]:
    return {
        "seed": result.seed,
        "metric": result.metric,
        "value": result.value,
        "history": [value if math.isfinite(value) else None for value in result.history],
        "diverged": result.diverged,
        "bits": result.bits,
        "seconds": result.seconds,
        "peak_nbytes": result.peak_nbytes,
        "sizes": {name: asdict(size) | {"ratio": size.ratio} for name, size in result.sizes.items()},
    }


def write(path: Path, settings: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Write settings and results of all runs as JSON; a file that is there is replaced when it is complete."""
    with replacing(path) as temporary:
        text = json.dumps({"settings": dict(settings), "runs": document(rows)}, indent=1, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")
