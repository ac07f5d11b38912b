"""`max_nbytes`: what claims a larger array is refused, at every entry, before memory is taken; and nothing else is."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks
from arrcomp import QSGD, S2FP8, BaseDelta, FloatFormat, Lossless, SizeLimitError, SmaQ
from arrcomp._files import read_any, read_arrays
from arrcomp._format import limits
from arrcomp._format.spec import Spec

X = np.zeros((1000, 1000), np.float32)
LARGE = X.nbytes
TARGET = np.zeros_like(X)
PLAIN = arrcomp.compress(X, QSGD(bits=8)).to_bytes()

CODECS = [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]
CODECS += [QSGD(bits=1, bucket_size=1 << 40), QSGD(bits=1, bucket_size=1 << 40, coding="entropy")]
CODECS += [BaseDelta(bases=2), S2FP8(), SmaQ(3, 12, block_size=None), FloatFormat("mxfp4")]

Call = Callable[[Any], Any]  # with max_nbytes


@pytest.fixture
def framed() -> bytes:
    """The stream in a Zstandard frame."""
    pytest.importorskip("zstandard")
    return arrcomp.from_bytes(PLAIN).to_bytes(zstd_level=3)


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule, with limits that small arrays exceed."""
    monkeypatch.setattr(limits, "LEAST_NBYTES", 100)
    monkeypatch.setattr(limits, "MOST_GROWTH", 4)


@contextlib.contextmanager
def refusing(error: type[Exception], message: str) -> Iterator[None]:
    """Inside, an error is raised before anything is allocated for an array."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=message):
            yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < LARGE // 8


# The rule


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_no_stream_without_a_frame_exceeds_the_rule(
    codec: arrcomp.Codec, record_property: Callable[[str, object], None]
) -> None:
    largest = 0.0
    for name in codec.dtypes or checks.DTYPES:
        dtype = arrcomp._dtypes.by_name(name)
        most = (1 << 59) // dtype.itemsize
        near = {(1 << bits) + by for bits in range(60) for by in (-1, 0, 1)} | {4096 * n for n in range(1, 70)}
        for count in sorted(count for count in near if count <= most):
            spec = Spec(codec, dtype, (count,))
            # `from_bytes` refuses shorter ones.
            least = spec.capacity if codec.fixed_rate else spec.least_payload_nbytes
            assert spec.nbytes <= limits.MOST_GROWTH * least
            largest = max(largest, spec.nbytes / max(least, 1))
    record_property("largest growth", largest)


def test_the_rule_is_what_is_documented() -> None:
    assert limits.allowed_of(0) == limits.allowed_of(1 << 17) == 1 << 30
    assert limits.allowed_of(1 << 20) == 8192 << 20
    assert limits.allowed_of(1 << 20, 5) == 5


def test_what_a_frame_expands_within_the_rule_is_read(framed: bytes) -> None:
    assert 100 * len(framed) < LARGE
    checks.check_same_bits(np.asarray(arrcomp.decompress(arrcomp.from_bytes(framed))), X)


def test_a_frame_is_not_written_that_the_rule_would_refuse(strict: None) -> None:
    pytest.importorskip("zstandard")
    assert arrcomp.from_bytes(PLAIN).to_bytes(zstd_level=3) == PLAIN
    x = np.random.default_rng(0).integers(0, 200, 1000).astype(np.float32)
    c = arrcomp.compress(x, FloatFormat("fp32"))
    within = c.to_bytes(zstd_level=3)
    assert len(within) < len(c.to_bytes())
    checks.check_same_bits(np.asarray(arrcomp.from_bytes(within)), x)


def test_what_this_process_compressed_has_no_limit(strict: None) -> None:
    c = arrcomp.compress(X, QSGD(bits=1))
    checks.check_same_bits(np.asarray(arrcomp.decompress(c)), X)
    arrcomp.decompress_many([c])
    for twin in (c.trim(), copy.copy(c), copy.deepcopy(c), c.to("cpu")):
        arrcomp.decompress(twin)
    with pytest.raises(SizeLimitError):
        arrcomp.decompress(c, max_nbytes=LARGE - 1)


# Every entry

READS: dict[str, Callable[[bytes, Any], Any]] = {
    "decompress": lambda s, m: arrcomp.decompress(arrcomp.from_bytes(s), max_nbytes=m),
    "decompress, out": lambda s, m: arrcomp.decompress(arrcomp.from_bytes(s), out=np.ones_like(X), max_nbytes=m),
    "decompress, like": lambda s, m: arrcomp.decompress(arrcomp.from_bytes(s), like=np.empty(0), max_nbytes=m),
    "decompress_many": lambda s, m: arrcomp.decompress_many({"x": [arrcomp.from_bytes(s)]}, max_nbytes=m)["x"][0],
    "from_bytes": lambda s, m: arrcomp.decompress(arrcomp.from_bytes(s, max_nbytes=m)),
    "from_bytes, moved": lambda s, m: arrcomp.decompress(arrcomp.from_bytes(s, max_nbytes=m).to("cpu").trim()),
    "from_bytes, copied": lambda s, m: arrcomp.decompress(copy.deepcopy(arrcomp.from_bytes(s, max_nbytes=m))),
    "from_bytes, many": lambda s, m: arrcomp.decompress_many([arrcomp.from_bytes(s, max_nbytes=m)])[0],
    "verify": lambda s, m: arrcomp.from_bytes(s).verify(max_nbytes=m),
}


def file_of(stream: bytes, folder: Path) -> Path:
    path = folder / "x.arrcomp"
    path.write_bytes(stream)
    return path


FILES: dict[str, Callable[[Path, Any], Any]] = {
    "load_file": lambda path, m: arrcomp.load_file(path, max_nbytes=m)["arr_0"],
    "load_file, like": lambda path, m: arrcomp.load_file(path, like="numpy", max_nbytes=m)["arr_0"],
    "open_file": lambda path, m: arrcomp.open_file(path, max_nbytes=m)["arr_0"],
    "load": lambda path, m: arrcomp.open_file(path, max_nbytes=m).load("arr_0"),
    "load, its own": lambda path, m: arrcomp.open_file(path).load("arr_0", max_nbytes=m),
    "slice, its own": lambda path, m: arrcomp.open_file(path).slice("arr_0", max_nbytes=m)[:],
    "slice": lambda path, m: arrcomp.open_file(path, max_nbytes=m).slice("arr_0")[:],
    "compressed": lambda path, m: arrcomp.decompress(arrcomp.open_file(path, max_nbytes=m).compressed("arr_0")),
    "read_any": lambda path, m: read_any(path, m).arrays["arr_0"],
}


@pytest.fixture(params=[*READS, *FILES])
def entry(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bytes, Any], Any]:
    """What reads a stream, in memory or in a file, with a max_nbytes."""
    name = request.param
    return READS[name] if name in READS else lambda stream, m: FILES[name](file_of(stream, tmp_path), m)


@pytest.mark.parametrize("kind", ["plain", "framed"])
def test_every_entry_keeps_to_max_nbytes(entry: Callable[[bytes, Any], Any], kind: str, framed: bytes) -> None:
    stream = framed if kind == "framed" else PLAIN
    for allowed in (LARGE, np.int64(LARGE), 1 << 62, None):
        found = entry(stream, allowed)
        if found is not None:
            checks.check_same_bits(np.asarray(found), X)
    for refused in (0, 1, LARGE - 1):
        with pytest.raises(SizeLimitError, match=rf"an array of at most {refused} bytes, got a claim of {LARGE} bytes"):
            entry(stream, refused)


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (1 << 63, ValueError), (True, TypeError), (1.5, TypeError), ("1", TypeError)]
)
def test_every_entry_names_a_max_nbytes_that_is_none(
    entry: Callable[[bytes, Any], Any], value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"^max_nbytes: expected an integer from 0 to 9223372036854775807, got ") as caught:
        entry(PLAIN, value)
    assert not isinstance(caught.value, arrcomp.ArrcompError)


def test_every_entry_has_the_rule_by_default(entry: Callable[[bytes, Any], Any], framed: bytes, strict: None) -> None:
    with pytest.raises(
        SizeLimitError, match=f"an array of at most {4 * len(framed)} bytes, got a claim of {LARGE} bytes"
    ):
        entry(framed, None)
    entry(framed, LARGE)
    found = entry(PLAIN, None)  # it has a byte for each value of four
    if found is not None:
        checks.check_same_bits(np.asarray(found), X)


@pytest.mark.parametrize(
    "use",
    [
        lambda c: arrcomp.decompress(c),
        lambda c: c.verify(),
        lambda c: c.to_bytes(),
        lambda c: c.host_payload(),
        lambda c: pickle.dumps(c),
        lambda c: copy.deepcopy(c),
        lambda c: arrcomp.accumulate(c, TARGET),
        lambda c: arrcomp.compress_sum([c, c]),
    ],
)
def test_no_use_takes_a_large_payload_out_of_its_frame(use: Call, framed: bytes, strict: None) -> None:
    c = arrcomp.from_bytes(framed)
    assert (c.shape, c.to("cpu").nbytes) == (X.shape, len(PLAIN))
    assert b"".join(c.stored_buffers()) == framed
    with refusing(SizeLimitError, "max_nbytes"):
        use(c)


def test_a_max_nbytes_that_was_given_holds_from_then_on(framed: bytes, strict: None) -> None:
    c = arrcomp.from_bytes(framed)
    with pytest.raises(SizeLimitError):
        arrcomp.decompress(c)
    arrcomp.decompress(c, max_nbytes=LARGE)
    assert c.to_bytes() == PLAIN
    with pytest.raises(SizeLimitError):
        arrcomp.decompress(c, max_nbytes=10)
    arrcomp.decompress(c)


def test_parts_are_allowed_that_are_small(tmp_path: Path) -> None:
    with arrcomp.open_file(file_of(PLAIN, tmp_path), max_nbytes=4000) as file:
        part = file.slice("arr_0")
        checks.check_same_bits(part[7], X[7])
        with pytest.raises(
            SizeLimitError, match=r"x\.arrcomp, array 'arr_0': max_nbytes:.*got a claim of 8000 bytes \(float32 of sh"
        ):
            part[7:9]


# Frameworks


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_frameworks_keep_to_max_nbytes(framework: str, framed: bytes) -> None:
    module = pytest.importorskip(f"arrcomp.{framework}")
    for stream in (PLAIN, framed):
        assert module.decompress(arrcomp.from_bytes(stream), max_nbytes=LARGE).shape == X.shape
        with pytest.raises(SizeLimitError, match="max_nbytes"):
            module.decompress(arrcomp.from_bytes(stream), max_nbytes=LARGE - 1)
        with pytest.raises(SizeLimitError, match="max_nbytes"):
            module.decompress(arrcomp.from_bytes(stream, max_nbytes=LARGE - 1))
    with pytest.raises(TypeError, match=r"max_nbytes: expected an integer from 0 to \d+, got 1\.5"):
        module.decompress(arrcomp.from_bytes(PLAIN), max_nbytes=1.5)


def test_tensors_that_are_saved_keep_to_max_nbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from arrcomp.torch import load, save

    x = torch.zeros(X.shape)
    file = io.BytesIO()
    save({"tensor": x, "compressed": arrcomp.compress(x, QSGD(bits=8)), "numpy": arrcomp.compress(X)}, file)
    file.seek(0)
    assert torch.equal(load(file, max_nbytes=LARGE)["tensor"], x)
    file.seek(0)
    with pytest.raises(SizeLimitError, match="max_nbytes"):
        load(file, max_nbytes=LARGE - 1)
    file = io.BytesIO()
    save({"compressed": arrcomp.compress(x, QSGD(bits=8)), "numpy": arrcomp.compress(X)}, file)
    file.seek(0)
    for c in load(file, max_nbytes=LARGE - 1).values():
        with pytest.raises(SizeLimitError, match="max_nbytes"):
            arrcomp.decompress(c)
    file.seek(0)
    with pytest.raises(ValueError, match=r"max_nbytes: expected an integer from 0 to \d+, got -1"):
        load(file, max_nbytes=-1)
    file.seek(0)
    for c in load(file).values():
        assert arrcomp.decompress(c).shape == X.shape


def test_trees_keep_to_max_nbytes(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("safetensors")
    from arrcomp.jax import load, save

    path = tmp_path / "x.safetensors"
    save({"x": jax.numpy.zeros(X.shape)}, path)
    for like in (None, {"x": X}):
        assert load(path, like, max_nbytes=LARGE)["x"].shape == X.shape
        with pytest.raises(SizeLimitError, match=r"array 'x': max_nbytes"):
            load(path, like, max_nbytes=LARGE - 1)


# NumPy's files


def test_packed_arrays_keep_to_max_nbytes(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=X, empty=np.zeros((0, 5)), scalar=np.float64(3), fortran=np.asfortranarray(X[:2]))
    for allowed in (LARGE, None):
        arrays = read_arrays(path, allowed).arrays
        checks.check_same_bits(arrays["x"], X)
        assert arrays["empty"].shape == (0, 5)
        assert arrays["scalar"] == 3
        assert (arrays["fortran"] == X[:2]).all()
    with pytest.raises(SizeLimitError, match=rf"x\.npz, array 'x'.*max_nbytes: .* got a claim of {LARGE} bytes"):
        read_arrays(path, LARGE - 1).arrays["x"]
    assert read_arrays(path, LARGE - 1).arrays["scalar"] == 3
    for value, error in ((-1, ValueError), (True, TypeError), (0.5, TypeError)):
        with pytest.raises(error, match=r"^max_nbytes: expected an integer from 0 to 9223372036854775807, got "):
            read_arrays(path, value)  # type: ignore[arg-type]


def test_packed_arrays_have_the_rule_by_default(tmp_path: Path, strict: None) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.broadcast_to(np.float32(0), X.shape))
    with refusing(SizeLimitError, "max_nbytes"):
        read_arrays(path).arrays["x"]


def npy(shape: tuple[int, ...], version: tuple[int, int] = (1, 0)) -> bytes:
    """A .npy file of float32 that claims a shape, with nothing behind it."""
    head = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(head)) + head


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ((1 << 60,), SizeLimitError, "max_nbytes"),
        ((1 << 62, 1 << 62), SizeLimitError, "max_nbytes"),
        ((1 << 27, 1 << 2), SizeLimitError, "max_nbytes"),
        ((1 << 27,), ValueError, "expected 536870912 bytes .*, got 400"),
        ((99,), ValueError, "expected 396 bytes .*, got 400"),
        ((-100,), ValueError, "expected -400 bytes"),
        ((-1 << 40, -1 << 40), SizeLimitError, "max_nbytes"),
    ],
    ids=str,
)
def test_packed_headers_that_claim_more_than_there_is_allocate_nothing(
    version: tuple[int, int],
    shape: tuple[int, ...],
    error: type[Exception],
    message: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sound.npy", npy((100,), version) + bytes(400))
        archive.writestr("x.npy", npy(shape, version) + bytes(400))
    arrays = read_arrays(path).arrays
    assert arrays["sound"].shape == (100,)
    with refusing(error, rf"x\.npz, array 'x': not readable.*{message}"):
        arrays["x"]


@pytest.mark.parametrize("shape", [(1 << 60,), (1 << 40, 1 << 40), (101,), (-1,)], ids=str)
def test_headers_that_claim_more_than_the_file_holds_allocate_nothing(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(shape) + bytes(400))
    with refusing(ValueError, r"expected a \.npy file, got another or a damaged one"):
        read_arrays(path)


# The command line


@pytest.mark.parametrize(
    "arguments",
    [
        ("decompress", "x.arrcomp", "-o", "y.npy", "--force"),
        ("verify", "x.npz", "x.safetensors"),
        ("diff", "x.npz", "x.safetensors"),
        ("diff", "x.safetensors", "x.npz"),
        ("compress", "x.npz", "-o", "y.safetensors", "--force"),
        pytest.param(("plot", "x.safetensors", "-o", "y.png", "--force"), marks=pytest.mark.full),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_commands_keep_to_max_nbytes(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("typer", "safetensors", *(["matplotlib"] if arguments[0] == "plot" else [])):
        pytest.importorskip(module)
    from typer.testing import CliRunner

    from arrcomp._cli import app

    monkeypatch.chdir(tmp_path)
    file_of(PLAIN, tmp_path)
    np.savez_compressed("x.npz", x=X)
    arrcomp.save_file({"x": X}, "x.safetensors", Lossless())
    for option, code in (([], 0), (["--max-nbytes", str(LARGE)], 0), (["--max-nbytes", str(LARGE - 1)], 2)):
        result = CliRunner().invoke(app, [*arguments, *option])
        assert result.exit_code == code, result.output
    assert f"got a claim of {LARGE} bytes" in result.stderr
    result = CliRunner().invoke(app, [*arguments, "--max-nbytes", "-1"])
    assert result.exit_code == 2
    assert f"max_nbytes: expected an integer from 0 to {(1 << 63) - 1}, got -1" in result.stderr
