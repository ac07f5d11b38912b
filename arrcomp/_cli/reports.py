"""Measurements and codecs as tables, as JSON, and in a last line of words."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._files.content import ArrayInfo
from ..codecs import Codec, available_codecs, codec_from_config
from ..codecs._presets import PRESETS
from .jobs import Job
from .measure import Measurement
from .tables import Column, Row, Table
from .words import (
    codec_options,
    codec_text,
    count_text,
    kept_text,
    name_text,
    options_text,
    shape_text,
    size_text,
    smaller_text,
)

_FRAME = "zstd"  # the only kind
_TINY_NBYTES = 1_000_000  # of an array for which a speed says nothing: its time is shown
_COLUMNS = (
    Column("array"),
    Column("dtype", rank=8),
    Column("shape", rank=7),
    Column("codec", rank=3),
    Column("frame", rank=9),
    Column("size", is_number=True, rank=6),
    Column("stored", is_number=True, rank=1),
    Column("ratio", is_number=True),
    Column("largest error", is_number=True, rank=2),
    Column("encode", is_number=True, rank=4),
    Column("decode", is_number=True, rank=5),
)


def measurements_table(rows: Sequence[Measurement], *, total: bool = True, timings: bool = False) -> Table:
    """A line for each array, with `total` also one for all. `timings` shows how fast they were (de)compressed."""
    lines = []
    for row in rows:
        spec, broken = row.spec, row.comparison is not None and not row.comparison.holds
        about = [spec.dtype.name, shape_text(spec.shape), codec_text(spec.codec), _FRAME if row.framed else ""]
        lines.append(Row([name_text(row.name), *about, *_figures([row], timings)], "red" if broken else ""))
    last = Row([count_text(len(rows)), "", "", "", "", *_figures(rows, timings)]) if total and len(rows) > 1 else None
    return Table(_COLUMNS, lines, last)


def demo_table(rows: Sequence[Measurement]) -> Table:
    """A line for each array, with what a newcomer wants to know."""
    columns = (
        Column("array"),
        Column("codec", rank=1),
        Column("ratio", is_number=True),
        Column("largest error", is_number=True),
        Column("ok"),
    )
    lines = []
    for row in rows:
        ok = row.comparison is not None and row.comparison.holds
        figures = _figures([row], timings=False)[2:4]
        lines.append(Row([row.name, codec_text(row.spec.codec), *figures, "yes" if ok else "no"], "" if ok else "red"))
    return Table(columns, lines)


def measurements_document(rows: Sequence[Measurement]) -> dict[str, Any]:
    """The same for JSON, with seconds in place of speeds."""
    arrays = []
    for row in rows:
        spec, frame = row.spec, _FRAME if row.framed else None
        described = {"name": row.name, "dtype": spec.dtype.name, "shape": list(spec.shape)}
        mismatch = None if row.comparison is None else row.comparison.mismatch
        note = {} if mismatch is None else {"note": mismatch.text}
        arrays.append(described | {"codec": spec.codec.config(), "frame": frame} | note | _numbers([row]))
    return {"arrays": arrays, "total": _numbers(rows)}


def files_document(job_rows: Sequence[tuple[Job, Sequence[Measurement]]]) -> dict[str, Any]:
    """The same for several files."""
    files = []
    for job, rows in job_rows:
        files.append({"source": str(job.source), "output": str(job.output)} | measurements_document(rows))
    return {"files": files, "total": _numbers([row for _, rows in job_rows for row in rows])}


def compressed_verdict(rows: Sequence[Measurement], where: Path | str, after: int) -> str:
    """What was written, in words; `after` is the number of bytes in the files."""
    before, _ = sums(rows)
    checked = all(row.comparison is not None for row in rows)
    kept = kept_text(row.spec.codec for row in rows) if checked else "not checked"
    return f"wrote {where}: {size_text(after)}, {smaller_text(before, after)}, {kept}"


def raw_table(infos: Mapping[str, ArrayInfo]) -> tuple[Table, int]:
    """The arrays of a file that is not compressed, and their bytes."""
    columns = (Column("array"), Column("dtype", rank=2), Column("shape", rank=1), Column("size", is_number=True))
    sizes = {name: _nbytes(info) for name, info in infos.items()}
    rows = [
        Row([name_text(name), str(i.dtype), shape_text(i.shape), size_text(sizes[name])]) for name, i in infos.items()
    ]
    nbytes = sum(sizes.values())
    total = Row([count_text(len(infos)), "", "", size_text(nbytes)]) if len(infos) > 1 else None
    return Table(columns, rows, total), nbytes


def raw_document(infos: Mapping[str, ArrayInfo]) -> dict[str, Any]:
    """The same for JSON, with the keys of compressed files."""
    none = {"compressed": None, "ratio": None}
    arrays = [
        {"name": name, "dtype": str(info.dtype), "shape": list(info.shape), "codec": None, "frame": None}
        | {"bytes": _nbytes(info)}
        | none
        for name, info in infos.items()
    ]
    return {"arrays": arrays, "total": {"bytes": sum(map(_nbytes, infos.values()))} | none}


def _nbytes(info: ArrayInfo) -> int:
    return math.prod(info.shape) * info.dtype.itemsize


def sums(rows: Iterable[Measurement]) -> tuple[int, int]:
    """Bytes of all arrays, and of their streams."""
    before, after = zip((0, 0), *((row.spec.nbytes, row.nbytes) for row in rows), strict=True)
    return sum(before), sum(after)


def codecs_table() -> Table:
    """All codecs, with their guarantees and dtypes."""
    columns = [Column("codec"), Column("guarantee", is_prose=True), Column("dtypes", is_prose=True)]
    rows = []
    for codec in available_codecs().values():
        dtypes = ", ".join(codec.dtypes or ("all",))
        rows.append(Row([codec.name, _guarantee(codec), dtypes, codec_options(codec.examples()[0])]))
    return Table([*columns, Column("for instance", is_prose=True)], rows)


def presets_table() -> Table:
    """The short names of codecs."""
    rows = []
    for name, config in PRESETS.items():
        parameters = {key: value for key, value in config.items() if key != "codec"}
        rows.append(Row([name, options_text(config["codec"], parameters)]))
    return Table([Column("short name"), Column("the same as", is_prose=True)], rows)


def codecs_document() -> dict[str, Any]:
    """Both for JSON."""
    rows = []
    for codec in available_codecs().values():
        dtypes, example = list(codec.dtypes) if codec.dtypes else None, codec.examples()[0].config()
        rows.append({"name": codec.name, "guarantee": _guarantee(codec), "dtypes": dtypes, "example": example})
    return {"codecs": rows, "short_names": {name: codec_from_config(c).config() for name, c in PRESETS.items()}}


def _guarantee(codec: type[Codec]) -> str:
    return (codec.__doc__ or "").partition("\n")[0]


def finite(number: float) -> float | None:
    """The number, or None if it is not finite, for JSON."""
    return number if math.isfinite(number) else None


def error_text(error: float | None) -> str:
    """A largest error for people; None is infinite."""
    return "inf" if error is None else f"{error:.3g}"


def ratio_text(before: int, after: int) -> str:
    """A ratio for people."""
    return f"{before / after:.2f}" if after else ""


def _numbers(rows: Sequence[Measurement]) -> dict[str, Any]:
    """The totals of measurements, by name."""
    before, after = sums(rows)
    numbers: dict[str, Any] = {"bytes": before, "compressed": after, "ratio": before / after if after else None}
    comparisons = [row.comparison for row in rows if row.comparison is not None]
    if comparisons:
        numbers["largest_error"] = finite(max(comparison.largest_error for comparison in comparisons))
        numbers["violations"] = sum(comparison.violations for comparison in comparisons)
    for name in ("encode_seconds", "decode_seconds"):
        seconds = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        if seconds:
            numbers[name] = sum(seconds)
    return numbers


def _figures(rows: Sequence[Measurement], timings: bool) -> list[str]:
    """The text of each column of numbers; empty if not measured."""
    numbers = _numbers(rows)
    before, after = numbers["bytes"], numbers["compressed"]
    error = error_text(numbers["largest_error"]) if "largest_error" in numbers else ""
    speeds = [_speed_text(before, numbers.get(f"{name}_seconds")) if timings else "" for name in ("encode", "decode")]
    return [size_text(before), size_text(after), ratio_text(before, after), error, *speeds]


def _speed_text(nbytes: int, seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.3g} ms" if nbytes < _TINY_NBYTES else f"{size_text(int(nbytes / max(seconds, 1e-9)))}/s"
