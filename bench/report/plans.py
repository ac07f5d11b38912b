"""PLANS.md, for maintainers: where arrcomp is slower or larger than planned on CPUs, and what holds it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import overhead
import quantizers
import scaling
from data import GAUSSIAN, MINILM
from harness.tables import table
from measure import Result

WAYS = ("encode", "decode")
LANES = 32
_BUSY = 3  # instructions in a cycle that little could wait for
_PFPL = {MINILM: 3.78, GAUSSIAN: 4.55}  # its ratios at 1e-3, of the same arrays by its own program, not in this run
_AT_ONCE = 0.95  # of what as many independent calls reach: no more is to be had
_COPY = 20.0  # GB/s, of the machine that speeds in GB/s were planned for; on others they are scaled by their copy
_PLANNED_CODERS = {"default": (5, 10), "fast": (12, 14), "bfloat16": (3.5, 6)}  # GB/s beside such a copy
_THREADS = 1.8
_BOUNDED, _LOSSLESS = "ErrorBounded(abs=0.001)", "Lossless()"

_ABOUT = """\
For maintainers: the speeds and ratios that the project aimed at, next to what was measured. `python
bench/results.py` writes this page from the figures of [RESULTS.md](RESULTS.md).

{missed} of {all} aims are missed. The first table says by how much; the second one has those that are met. Unless
stated otherwise they are for one thread of a CPU with AVX-512, and speeds are parts of a copy's, measured beside them.
Where memory is copied at 20 GB/s, ErrorBounded and Lossless should encode 5 GB/s of float32 and decode 10, with
`speed="fast"` 12 and 14, and bfloat16 3.5 and 6; half of that with AVX2. Quantizers should encode and decode at 0.8 of
a copy's speed, and encode at 0.3 of it with random numbers. Two threads should have {threads:g} times the speed of one,
or {at_once:g} of what two calls at once reach, each with one thread and half of the array, if that is less. The ratios
of SZ3 and pcodec are of the same run; those of PFPL are of its own program, for the same arrays, measured once.

On a GPU (an H200), in TB/s of float32: encode 1.0 and decode 1.5, with `speed="fast"` 2.0 each. Nothing was measured
there yet: [GPU.md](GPU.md)."""
_LIMITS = """\
What limits those that are slower than planned. Figures are for {lanes} values. callgrind counts the instructions of
a whole call on 65,536 values with AVX2 (`python -P .ci/check_instructions.py` counts again, and fails if they have
become many more). The same calls are timed in the processor's cache, with AVX2 and with {best}. Cycles are those of
{clock:.2f} GHz, measured. "bytes" is what the codec reads and writes, divided by what a copy does. The limit is
memory if the cycles are no more than planned; else the number of instructions if {busy} or more are executed per
cycle; else latency, where results wait for other results (a coder's state, a lookup, a logarithm)."""


@dataclass(frozen=True)
class Target:
    """What was planned, and what was measured, by the same names.

    Attributes:
        what: a codec or a call, on what.
        unit: of the figures.
        planned: the least, or with `at_most` the most.
        measured: the figures.
        at_most: whether less is better.
        case: its name among the counted instructions, if it is there.
        speed: GB/s that one unit stands for, by the same names.
        itemsize: bytes of a value.
        moved: bytes read and written, by a copy's.
    """

    what: str
    unit: str
    planned: Mapping[str, float]
    measured: Mapping[str, float]
    at_most: bool = False
    case: str = ""
    speed: Mapping[str, float] | None = None
    itemsize: int = 4
    moved: float = 1.0

    def missed(self) -> list[str]:
        """Names of what is not as planned."""
        sign = 1 if self.at_most else -1
        return [name for name, value in self.measured.items() if sign * value > sign * self.planned[name]]

    def short(self) -> str:
        """The same as text."""
        return ", ".join(name or "time" for name in self.missed())

    def row(self) -> list[str]:
        """A line of the table."""
        sign = "<=" if self.at_most else ">="
        planned = ", ".join(f"{name} {sign} {value:.3g}".strip() for name, value in self.planned.items())
        measured = ", ".join(
            f"{value:.4g}" if self.unit == "ratio" else f"{value:.2f}" for value in self.measured.values()
        )
        return [self.what, self.unit, planned, measured]


def page(document: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The plans, and what holds back the code where they are not reached."""
    found = list(plans(document, results))
    missed = [target for target in found if target.missed()]
    heads = ["<", "<in", "<planned", "<measured"]
    parts = [
        "# Plans",
        _ABOUT.format(at_once=_AT_ONCE, threads=_THREADS, missed=len(missed), all=len(found)),
        table(
            [*heads, "<short in"],
            ([*target.row(), target.short()] for target in missed),
        ),
        "Met:",
        table(heads, (target.row() for target in found if not target.missed())),
    ]
    counted = document["instructions"]["found"]
    limits = list(limit_rows(found, counted))
    if limits:
        best = counted["processor"]["best"]["instruction set"]
        about = _LIMITS.format(lanes=LANES, clock=_gigahertz(counted), best=best, busy=_BUSY)
        heads = ["<", "<", "bytes", "cycles planned", f"{best} cycles", "AVX2 instructions", "AVX2 cycles"]
        parts += [about, table([*heads, "in a cycle", "<held back by"], limits)]
    return "\n\n".join(parts) + "\n"


def _gigahertz(counted: Mapping[str, Any]) -> float:
    return float(counted["processor"]["clock"]["gigahertz"])


def plans(document: Mapping[str, Any], results: Sequence[Result]) -> Iterator[Target]:
    """All plans, in order, for what was measured."""
    for name in dict.fromkeys(result.array for result in results):
        if name in (MINILM, GAUSSIAN):
            yield from _coders(name, [result for result in results if result.array == name])
    yield from _bfloat16(results)
    yield from _avx2([result for result in results if "avx2" in result.compressor])
    yield from _threads(document["scaling"]["found"])
    yield from _quantizers(document["quantizers"]["found"])
    yield from _calls(document["calls"]["found"])


def _speeds(result: Result, planned: str, what: str, case: str = "", itemsize: int = 4, part: float = 1) -> Target:
    """Of a coder, by a copy's speed; `part` of what is planned will do."""
    both = {"encode": result.encode / result.copy, "decode": result.decode / result.copy}
    moved, unit = (1 + 1 / result.ratio) / 2, dict.fromkeys(WAYS, result.copy)
    floors = {way: part * speed / _COPY for way, speed in zip(WAYS, _PLANNED_CODERS[planned], strict=True)}
    return Target(what, "a copy's speed", floors, both, case=case, speed=unit, itemsize=itemsize, moved=moved)


def _coders(array: str, results: Sequence[Result]) -> Iterator[Target]:
    """ErrorBounded at 1e-3 and Lossless, on float32."""
    bounded = {result.compressor: result for result in results if result.setting == "abs 1e-03"}
    lossless = {result.compressor: result for result in results if result.setting == "lossless"}
    case = f"{_BOUNDED}, float32"
    yield _speeds(bounded["arrcomp"], "default", f"ErrorBounded at 1e-3, {array}", case)
    peers = {name: result for name, result in bounded.items() if not name.startswith("arrcomp") and not result.failure}
    sz3 = max((peer.ratio for name, peer in peers.items() if name.startswith("SZ3")), default=None)
    pcodec = peers["quantize + pcodec"].ratio if "quantize + pcodec" in peers else None
    floor = {name: ratio for name, ratio in (("SZ3's", sz3), ("pcodec's", pcodec)) if ratio}
    if floor:
        yield Target(f"ErrorBounded at 1e-3, {array}", "ratio", floor, dict.fromkeys(floor, bounded["arrcomp"].ratio))
    fast = bounded["arrcomp fast"]
    yield _speeds(
        fast, "fast", f'the same with speed="fast", {array}', "ErrorBounded(abs=0.001, speed='fast'), float32"
    )
    yield Target(f'the same with speed="fast", {array}', "ratio", {"PFPL's": _PFPL[array]}, {"PFPL's": fast.ratio})
    yield _speeds(lossless["arrcomp"], "default", f"Lossless, {array}", f"{_LOSSLESS}, float32")
    yield Target(f"Lossless, {array}", "ratio", {"": 1.2}, {"": lossless["arrcomp"].ratio})


def _bfloat16(results: Sequence[Result]) -> Iterator[Target]:
    for result in results:
        if result.array.endswith("weights_bfloat16") and result.compressor == "arrcomp":
            what = f"Lossless, {result.array}"
            if result.array.startswith(MINILM):  # the others, and their copies, stay in the cache
                yield _speeds(result, "bfloat16", what, f"{_LOSSLESS}, bfloat16", itemsize=2)
            yield Target(what, "ratio", {"": 1.5}, {"": result.ratio})


def _avx2(results: Sequence[Result]) -> Iterator[Target]:
    """With AVX2 alone, half of what was planned with AVX-512."""
    planned = {("abs 1e-03", "arrcomp avx2"): "default", ("lossless", "arrcomp avx2"): "default"}
    planned[("abs 1e-03", "arrcomp fast, avx2")] = "fast"
    for result in results:
        kind = planned.get((result.setting, result.compressor))
        if kind:
            yield _speeds(result, kind, f"{result.compressor}, {result.setting}, {result.array}", part=0.5)


def _threads(found: Mapping[str, Any]) -> Iterator[Target]:
    """Two threads by one, as far as two calls at once go on the machine."""

    def gains(name: str) -> dict[str, float]:
        times = found["threads"][name]
        return {way: times[way]["1"] / times[way]["2"] for way in WAYS}

    for name in scaling.CODECS:
        if "2" in found["threads"][name]["encode"]:
            most = gains(name + scaling.AT_ONCE)
            floors = {way: min(_THREADS, _AT_ONCE * most[way]) for way in WAYS}
            yield Target(f"{name}, two threads", "one thread's speed", floors, gains(name))


def _quantizers(found: Mapping[str, Mapping[str, float]]) -> Iterator[Target]:
    """What was planned for QSGD, SmaQ, FloatFormat and Codebook; S2FP8 is held to the same."""
    for codec in quantizers.CODECS:
        figures = found.get(quantizers.name_of(codec))
        if figures is None or getattr(codec, "coding", "") == "entropy":
            continue
        floors = {"encode": 0.3 if codec.needs_seed else 0.8, "decode": 0.8}
        measured = {way: figures[f"{way} x copy"] for way in WAYS}
        copy = {way: figures[way] / figures[f"{way} x copy"] for way in WAYS}
        moved, case = (1 + figures["bits"] / 32) / 2, f"{codec!r}, float32"
        yield Target(repr(codec), "a copy's speed", floors, measured, case=case, speed=copy, moved=moved)


def _calls(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Iterator[Target]:
    for framework, times in found.items():
        for call in times:
            if call != overhead.OWN:
                measured = {"": overhead.beyond(times, call)}
                what = f"{call} in {framework}, 1 KiB, beyond {overhead.OWN}"
                yield Target(what, "microseconds", {"": 10}, measured, at_most=True)


def limit_rows(found: Sequence[Target], counted: Mapping[str, Any]) -> Iterator[list[str]]:
    """A line for each speed that is missed and whose instructions are counted."""
    for target in found:
        for way in target.missed():
            figures = counted.get("cases", {}).get(target.case, {}).get(way)
            if target.speed is not None and figures is not None:
                seconds = LANES * target.itemsize / (target.planned[way] * target.speed[way] * 1e9)
                cells = _limit_cells(figures, seconds * _gigahertz(counted) * 1e9)
                yield [target.what, way, f"{target.moved:.2f}", *cells]


def _limit_cells(figures: Mapping[str, float], cycles: float) -> list[str]:
    best, instructions, avx2 = (LANES * figures[name] for name in ("best cycles", "instructions", "cycles"))
    reason = "memory" if best <= cycles else "instructions" if instructions >= _BUSY * avx2 else "latency"
    return [*(f"{value:.0f}" for value in (cycles, best, instructions, avx2)), f"{instructions / avx2:.1f}", reason]
