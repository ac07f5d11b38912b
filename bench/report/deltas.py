"""The page of bench/deltas.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import conditions
from harness.page import markdown_of
from harness.tables import table

_TITLES = {"made": "Updates that are made", "trained": "Steps of a transformer"}
_OURS, _FAST, _WHOLE = "arrcomp", "arrcomp, fast", "arrcomp, no reference"
_ENTROPY, _CHANGED = "order-0 entropy", "changed"
_PEERS = ("index + value", "XOR, zstd-3", "XOR, byte planes, zstd-3", "zipnn, delta", "z4ai, delta")
_WAYS = (*_PEERS, _OURS, _FAST, _WHOLE)
_BOUNDS = ("1e-04", "1e-05", "1e-06")

_HOW = """\
A ratio is the bytes of the whole array by the bytes that are sent. "Changed" is the share of elements whose bits differ
from the reference's. "Order-0 entropy" is the ratio of a coder that knew how often each difference occurs, as integers
of the bits: no table is counted, so nobody reaches it in float32, where most differences are rare.

The ways to send an array:

- index + value: an int32 and the new value of each element that changed, as vLLM's sparse weight updates and TRL send
  them.
- XOR, zstd-3: Zstandard at level 3, of the exclusive or of the bytes, as SkyRL publishes deltas.
- XOR, byte planes, zstd-3: the same, after all first bytes of the elements, all second ones, and so on: what BitX of
  ZipLLM does.
- zipnn, z4ai: their own deltas, each an exclusive or that its codec compresses.
- arrcomp: `Lossless()` or `ErrorBounded(abs=...)` with `reference=`; "no reference" is the whole array.

The updates that are made: 8 million weights from a normal distribution of deviation 0.02, in float32, and normal
updates of one size. The size is the one that changes the share of the first column when both are rounded to bfloat16.
"unrelated" are other weights. The steps are those of a transformer of 7 million parameters, which this program trains
(bench/trained_steps.py): a character model of Python's own sources, tuned on the text of its language reference at
rates of 1e-5 and 1e-4, and then by reinforcement learning (RL) at 1e-7 and 1e-6, as such runs have: about 1 to 3% of
bfloat16 weights change in a step of theirs (arXiv:2602.03839). The optimizer is AdamW with float32 master weights;
bfloat16 is what would be sent, all parameters end to end. Each phase begins with new moments, and no step before its
20th is used.

Speeds are of one thread, in GB/s of the whole array, the fastest of nine calls. All ways take turns in one process.
"Apply" changes the reference in memory into the new array; zipnn and z4ai make a new array, and index + value checks
nothing. arrcomp's time has the hash of the reference in it, z4ai's a digest. The machine is small and shared: speeds
vary from run to run by tens of percent, and ratios do not."""

Results = Mapping[str, Any]  # by setting and way
Found = Mapping[str, Results]  # by pair


def markdown(document: Mapping[str, Any]) -> str:
    """DELTAS.md."""
    return markdown_of("deltas", "Deltas, measured", _sections(document))


def _sections(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    groups = {group: document[group]["found"] for group in _TITLES if group in document}
    found = {name: of for pairs in groups.values() for name, of in pairs.items()}
    yield "Every bit, bfloat16", _ratios(found, "bfloat16")
    yield "Speed, bfloat16", _speeds(found, "bfloat16", _WAYS)
    yield "Every bit, float32", _ratios(found, "float32")
    yield "Within a bound, float32", _bounded(groups.get("trained", {}))
    yield "How it is measured", f"{_HOW}\n\n{conditions.said_of(document, _TITLES)}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:#.3g}".rstrip(".") if value < 1000 else f"{value:.0f}"


def _share(value: float) -> str:
    return f"{value:.2%}" if value < 0.1 else f"{value:.0%}"


def _ratio(results: Results, setting: str, way: str) -> float | None:
    found = results[setting].get(way, {})
    return found.get("ratio")


def _there(found: Found, setting: str, ways: Sequence[str]) -> list[str]:
    """The ways that were measured: a library may have been missing."""
    return [way for way in ways if any(way in results[setting] for results in found.values())]


def _ratios(found: Found, setting: str) -> str:
    ways = _there(found, setting, (*_WAYS, _ENTROPY))
    rows = []
    for name, results in found.items():
        ratios = {way: _ratio(results, setting, way) for way in ways}
        best = max(ratio for way, ratio in ratios.items() if ratio is not None and way != _ENTROPY)
        cells = [_cell(ratios[way], results[setting].get(way, {}), best) for way in ways]
        rows.append([name, _share(results[setting][_CHANGED]["share"]), *cells])
    heads = ["<pair", "changed", *ways]
    return f"Times smaller than the whole array; the largest of each line is bold.\n\n{table(heads, rows)}"


def _cell(ratio: float | None, found: Mapping[str, Any], best: float) -> str:
    text = _number(ratio) + (" V" if found.get("broken") else "")
    return f"**{text}**" if ratio == best else text


def _speeds(found: Found, setting: str, ways: Sequence[str]) -> str:
    ways = _there(found, setting, ways)
    rows = [[name, *(_speed(results[setting].get(way, {})) for way in ways)] for name, results in found.items()]
    return f"Encode / apply, GB/s on one thread:\n\n{table(['<pair', *ways], rows)}"


def _speed(result: Mapping[str, float]) -> str:
    return f"{_speed_number(result['encode'])} / {_speed_number(result['apply'])}" if "encode" in result else ""


def _speed_number(value: float) -> str:
    return f"{value:#.2g}" if value < 10 else f"{value:.0f}"


def _bounded(found: Found) -> str:
    heads = ["<pair", "<bound", "arrcomp", "fast", "no reference", "encode / apply, GB/s", "no reference"]
    rows = []
    for name, results in found.items():
        for bound in _BOUNDS:
            ratios = [_cell(_ratio(results, bound, way), results[bound][way], 0) for way in (_OURS, _FAST, _WHOLE)]
            speeds = [_speed(results[bound][way]) for way in (_OURS, _WHOLE)]
            rows.append([name, bound.replace("e-0", "e-"), *ratios, *speeds])
    return f"Times smaller than the whole float32 array, each value within the bound:\n\n{table(heads, rows)}"
