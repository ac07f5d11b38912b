"""Section 3.2: the side data of a chunk."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .dtypes import Dtype
from .missing import Missing, read_masked, read_missing
from .rans import SYMBOLS, frequencies_of
from .rows import LANES, lane_bits, unpack
from .source import U64, Source, need

TRANSFORMS = ("quantized", "integer", "exponent", "numbered")
CODERS = ("none", "packed", "entropy")
MASKS = ("none", "blocks", "values", "marks")
TILE = 8
MOST_TABLES, TABLE_OF_CLASSES, TABLES_OF_CONTEXTS, TABLES_OF_TILES = 192, 253, 254, 255
CONTEXTS = 4
MOST_ENTRIES, MOST_MULTIPLES, INTEGER_MULTIPLES = 4096, 32, 33


@dataclass
class Chunk:
    """A chunk's side data: m elements in R rows, of which the words at `places` (indices, ascending) are coded.

    `tables` are those of tiles or of contexts, where these have own ones. `frequencies` are those of classes, which
    tell `told` bits below a word's highest one. The last `dry_rows` of the coded rows are dry (section 4.2).
    `multiples` is their kind, where there are any; `unit` and `offset` are those of integers. Else `entries` are those
    of the dictionary, which is the chunk's own or that of a chunk behind. `escapes` and `long_escapes` count what the
    entropy coder met.
    """

    dtype: Dtype
    m: int
    transform: str = "integer"
    coder: str = "none"
    mask: str = "none"
    predictor: bool = False
    plain: bool = False
    shift: int = 0
    table: int = 0
    tables: tuple[int, ...] = ()
    told: int = 0
    frequencies: tuple[int, ...] = ()
    own_frequencies: bool = False
    drop: int = 0
    base: int | None = None
    step: int | None = None
    widths: tuple[int, ...] = ()
    carrying: bool = False
    dry_rows: int = 0
    escapes: int = 0
    long_escapes: int = 0
    places: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    bits: U64 = field(default_factory=lambda: np.zeros((0, LANES), np.uint64))
    positions: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    values: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    missing: Missing | None = None
    multiples: int = 0
    unit: int = 0
    offset: int = 0
    entries: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    own_entries: bool = False

    @property
    def rows(self) -> int:
        """R: rows of the chunk."""
        return -(-self.m // LANES)

    @property
    def kind(self) -> str:
        """The transform, or what numbers stand for."""
        if self.transform != "numbered":
            return self.transform
        of_integers = self.multiples == INTEGER_MULTIPLES
        return "integer multiples" if of_integers else "multiples" if self.multiples else "dictionary"

    @property
    def exceptions(self) -> int:
        """How many elements are exceptions."""
        return len(self.positions)

    @property
    def has_contexts(self) -> bool:
        """Whether the tables are those of contexts (section 4.4)."""
        return self.coder == "entropy" and self.table == TABLES_OF_CONTEXTS

    @property
    def has_classes(self) -> bool:
        """Whether its symbols are classes (section 4.5)."""
        return self.coder == "entropy" and self.table == TABLE_OF_CLASSES

    def table_of(self, row: int) -> int:
        """The table of a coded row, where contexts have none."""
        return self.tables[row // TILE] if self.tables else self.table

    @property
    def coded_rows(self) -> int:
        """C: coded rows."""
        return -(-len(self.places) // LANES)


def read_chunk(
    source: Source, dtype: Dtype, m: int, bound: float, last_coded: bool, entries: U64, frequencies: tuple[int, ...]
) -> Chunk:
    """Take the side data of a chunk of m elements.

    `last_coded`: no chunk after it in its group is entropy coded. `entries` and `frequencies`: the dictionary, and the
    table of classes, of the next chunk of its group that has one.
    """
    chunk = Chunk(dtype, m)
    has_base, exceptions, misses = read_modes(source, chunk, bound)
    if has_base:
        chunk.base = source.number(dtype.word // 8)
    if chunk.predictor and chunk.plain and chunk.transform != "exponent":
        read_step(source, chunk)
    if misses:
        chunk.missing = read_missing(source, dtype, m)
        chunk.m = chunk.missing.present
    if chunk.transform == "numbered":
        read_numbering(source, chunk, entries)
    count = source.number(4) if exceptions else 0
    need(not exceptions or 1 <= count <= 256, "number of exceptions")
    chunk.places = read_mask(source, chunk)
    tiles = -(-chunk.coded_rows // TILE)
    if chunk.coder == "packed":
        widths = [chunk.shift] * tiles if chunk.shift else read_bytes_of_tiles(source, tiles, dtype.word)
        chunk.widths = tuple(widths)
        chunk.bits = unpack(source, np.repeat(np.array(widths, np.uint64), TILE)[: chunk.coded_rows])
    elif chunk.coder == "entropy":
        if chunk.table == TABLES_OF_TILES:
            chunk.tables = tuple(read_bytes_of_tiles(source, tiles, MOST_TABLES - 1))
        if chunk.has_contexts:
            chunk.tables = tuple(read_bytes_of_tiles(source, CONTEXTS, MOST_TABLES - 1))
        if chunk.has_classes:
            read_classes(source, chunk, frequencies)
        read_low_bits(source, chunk, last_coded)
    if chunk.dry_rows:
        need(chunk.coder == "entropy" and last_coded and not chunk.carrying, "dry rows")
        need(chunk.dry_rows <= chunk.coded_rows, "number of dry rows")
    read_exceptions(source, chunk, count)
    return chunk


def read_modes(source: Source, chunk: Chunk, bound: float) -> tuple[bool, bool, bool]:
    """Take the first four bytes; returns whether there is a base, are exceptions, and are missing elements."""
    mode, shift, chunk.table, drop = source.take(4)
    choices = mode & 3, mode >> 2 & 3, mode >> 4 & 3
    need(choices[1] != 3, "mode")
    chunk.transform, chunk.coder, chunk.mask = TRANSFORMS[choices[0]], CODERS[choices[1]], MASKS[choices[2]]
    chunk.predictor, chunk.plain = bool(mode >> 6 & 1), bool(mode >> 7)
    chunk.shift, low = shift & 127, drop & 63
    if chunk.transform == "exponent":
        chunk.drop = low
    else:
        need(low <= 56, "dry rows")
        chunk.dry_rows = max(low, 4 * low - 96)
    need(chunk.transform != "quantized" or (chunk.dtype.quantizable and bound > 0), "a quantized chunk without a bound")
    need(chunk.transform != "exponent" or chunk.dtype.exponent > 0, "exponent transform of what is no float")
    need(chunk.transform != "exponent" or bool(shift >> 7), "exponent transform without a base")
    need(chunk.shift <= chunk.dtype.word, "shift")
    need(chunk.table < MOST_TABLES or (chunk.coder == "entropy" and chunk.table >= TABLE_OF_CLASSES), "table")
    need(not chunk.has_contexts or (chunk.mask == "none" and chunk.shift == 0), "contexts with a mask or low bits")
    need(chunk.drop <= chunk.dtype.mantissa, "drop")
    return bool(shift >> 7), bool(drop >> 6 & 1), bool(drop >> 7)


def read_step(source: Source, chunk: Chunk) -> None:
    """Take the step of differences, which says how they are mapped."""
    field = source.number(chunk.dtype.word // 8)
    chunk.plain = bool(field & 1)
    chunk.step = (field >> 1) - (field >> chunk.dtype.word - 1 << chunk.dtype.word - 1)


def read_numbering(source: Source, chunk: Chunk, shared: U64) -> None:
    """Section 3.6."""
    field = source.number(4)
    count, chunk.multiples = field & 0xFFFF, field >> 16
    if chunk.multiples:
        need(count == 0, "multiples with entries")
        if chunk.multiples == INTEGER_MULTIPLES:
            need(not chunk.dtype.exponent and chunk.dtype.bits >= 16, "integer multiples of elements that have none")
            chunk.unit, chunk.offset = source.number(chunk.dtype.word // 8), source.number(chunk.dtype.word // 8)
            return
        need(chunk.multiples <= MOST_MULTIPLES, "kind of multiples")
        need(chunk.dtype.quantizable and chunk.dtype.bits >= 32, "multiples of elements that have none")
        return
    need(count <= MOST_ENTRIES, "number of entries")
    chunk.own_entries = count > 0
    chunk.entries = source.words(chunk.dtype.bits // 8, count) if count else shared
    source.align(4)
    need(len(chunk.entries) > 0, "a dictionary of another chunk, which has none")


def read_mask(source: Source, chunk: Chunk) -> NDArray[np.intp]:
    """Take the masks; returns the places of the coded words."""
    places = np.arange(chunk.rows * LANES)
    if chunk.mask == "none":
        return places
    if chunk.mask == "marks":
        need(chunk.missing is None, "a mask of marks where elements are missing")
        return np.flatnonzero(~read_masked(source, len(places)))
    live = source.words(8, 1) >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    blocks = -(-chunk.rows // 2)
    need(not live[blocks:].any(), "a block beyond the chunk")
    if chunk.mask == "blocks":
        return np.flatnonzero(live[places // 64])
    coded = np.zeros((blocks, 64), bool)
    coded[live[:blocks] == 1] = lane_bits(source.words(4, 2 * int(live.sum()))).reshape(-1, 64)
    need(not coded.ravel()[len(places) :].any(), "a mask bit beyond the chunk")
    return np.flatnonzero(coded)


def read_bytes_of_tiles(source: Source, tiles: int, most: int) -> list[int]:
    """Take the widths or the tables of tiles."""
    found = source.words(1, tiles)
    source.align(4)
    need(bool((found <= most).all()), "width or table of a tile")
    return found.tolist()


def read_classes(source: Source, chunk: Chunk, shared: tuple[int, ...]) -> None:
    """Take the frequencies of classes (section 4.5)."""
    field = source.number(4)
    chunk.told, count = field & 255, field >> 8
    need(1 <= chunk.told <= 5, "bits that classes tell")
    need(count <= SYMBOLS, "number of frequencies")
    chunk.own_frequencies = count > 0
    codes = unpack(source, np.full(-(-count // LANES), 6, np.uint64))
    chunk.frequencies = frequencies_of(codes, count) if count else shared
    need(len(chunk.frequencies) > 0, "frequencies of another chunk, which has none")


def read_low_bits(source: Source, chunk: Chunk, last_coded: bool) -> None:
    """Take the bits below the symbols of an entropy-coded chunk."""
    rows = chunk.coded_rows
    chunk.carrying = last_coded and rows > 0 and rows % 8 == 0 and chunk.shift >= 2
    widths = np.full(rows, chunk.shift)
    if chunk.carrying:
        widths[-8:] -= 2
    chunk.bits = unpack(source, widths.astype(np.uint64))
    if chunk.carrying:
        chunk.bits[-8:] <<= np.uint64(2)


def read_exceptions(source: Source, chunk: Chunk, count: int) -> None:
    """Take the exceptions' positions and elements."""
    if not count:
        return
    chunk.positions = source.words(2, count).astype(np.intp)
    source.align(4)
    chunk.values = source.words(chunk.dtype.bits // 8, count)
    source.align(4)
    need(bool((np.diff(chunk.positions) > 0).all()) and chunk.positions[-1] < chunk.m, "positions of exceptions")
