"""`arrcomp plot`: its points are what compressing gives, and it draws whatever a file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from typer.testing import CliRunner

from arrcomp import _cli
from arrcomp._cli import figure, slices
from ordinary import then_full

RNG = np.random.default_rng(2)
X = RNG.normal(0, 1, (100, 50)).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plot(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(_cli.app, ["plot", *arguments])
    assert result.exit_code == code, result.output
    assert len(result.stderr.splitlines()) == (code != 0)
    return result.stderr


def test_points_of_bounds_keep_them_and_take_fewer_bits_the_wider_they_are() -> None:
    for speed in ("default", "fast"):
        points = figure.bounded_points(X, speed, None)
        assert len(points) > 20
        for point in points:
            assert isinstance(point.codec, arrcomp.ErrorBounded)
            assert point.codec.abs is not None
            assert 0 < point.typical <= point.largest <= point.codec.abs
        assert [point.bits for point in points] == sorted((point.bits for point in points), reverse=True)


def test_points_of_quantizers_are_what_compressing_gives() -> None:
    points = {point.codec: point for point in figure.other_points(X, 1)}
    point = points[arrcomp.QSGD(bits=8)]
    c = arrcomp.compress(X, arrcomp.QSGD(bits=8))
    error = np.abs(X.astype(np.float64) - arrcomp.decompress(c))
    assert point.bits == 8 * c.nbytes / X.size
    assert point.largest == error.max()
    assert point.typical == pytest.approx(np.sqrt(np.mean(error**2)))
    assert {type(codec) for codec in points} == set(arrcomp.available_codecs().values()) - {
        arrcomp.Lossless,
        arrcomp.ErrorBounded,
        arrcomp.BaseDelta,
    }


def test_samples_are_of_all_of_an_array() -> None:
    x = np.arange(3_000_000, dtype=np.float64).reshape(-1, 3)
    taken = figure.sample(x)
    assert taken.size <= 1 << 20
    assert (taken.min(), taken.max()) == (0, x.size - 1)
    assert figure.sample(np.array([np.nan, 1, np.inf])).tolist() == [1]


@pytest.mark.parametrize(
    "x",
    then_full(
        [X.astype(ml_dtypes.bfloat16), np.array([np.nan, np.inf, 1, 2])],
        [
            X,
            X.astype(np.float16),
            np.zeros(100, np.float32),
            np.full(100, 1e300),
            np.array([5e-324, 0]),
            np.array(3.0),
            np.full((3, 4, 5), 2.0),
            np.array([[1e301, -1e301], [np.nan, 0]]),
            np.array([[[1, 2], [3, 4]], [[np.nan, np.nan], [np.inf, np.nan]]]),
        ],
    ),
    ids=lambda x: f"{x.dtype} {x.size}",
)
def test_arrays_of_all_kinds_are_drawn(folder: Path, x: NDArray[Any]) -> None:
    arrcomp.save_file({"_a $x$ {\\b": x, "größe": x}, "x.safetensors")
    plot("x.safetensors", "-o", "x.png")
    assert (folder / "x.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("x.npz -o x.pdf", "expected suffix .png, got '.pdf'"),
        ("x.npz -o x.png --tensor other", "--tensor: expected the name of an array of x.npz, got 'other'"),
        ("x.npz -o x.png --tensor xx", "got 'xx'; did you mean x?"),
        ("x.npz -o n.npz", "n.npz: expected a new file, got one that exists; --force overwrites it"),
        ("x.npz -o x.png --tensor n", "--tensor n: expected dtype float16, bfloat16, float32, float64, got int64"),
        (
            "x.npz -o x.png --abs 1 --rel 1",
            "bound: expected exactly one of abs, rel and pointwise, got abs=1.0, rel=1.0",
        ),
        ("x.npz -o x.png --predictor best", "predictor: expected None or 'auto' or "),
        ("n.npz -o x.png", "n.npz: expected an array of floats"),
        ("x.txt -o x.png", "expected suffix .npy, .npz, .safetensors, .pt, .pth, .arrcomp, got '.txt'"),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_line(folder: Path, arguments: str, message: str) -> None:
    np.savez("x.npz", x=X, n=np.arange(3))
    np.savez("n.npz", n=np.arange(3), empty=np.zeros(0))
    (folder / "x.txt").write_text("text")
    assert message in plot(*arguments.split(), code=2)
    assert not (folder / "x.png").exists()


def test_one_array_can_be_chosen(folder: Path) -> None:
    np.savez("x.npz", large=X, small=X[0])
    for name in ("large", "small"):
        result = CliRunner().invoke(_cli.app, ["plot", "x.npz", "-o", f"{name}.png", "--tensor", name])
        large = ", bits against error of large, and a slice of it"
        what = f"distributions of 1 array{large if name == 'large' else ', and bits against error of small'}"
        verdict = f"wrote {name}.png: {what}\n"
        assert (result.exit_code, result.stdout) == (0, verdict)
    assert (folder / "large.png").read_bytes() != (folder / "small.png").read_bytes()


def test_a_drawing_goes_to_standard_output_or_over_another_if_that_is_wanted(folder: Path) -> None:
    np.save("x.npy", X[0])
    result = CliRunner().invoke(_cli.app, ["plot", "x.npy", "-o", "-"])
    assert (result.exit_code, result.stdout_bytes[:4], result.stderr) == (0, b"\x89PNG", "")
    (folder / "x.png").write_bytes(b"another")
    plot("x.npy", "-o", "x.png", "--force")
    assert (folder / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("predictor", [None, "auto", "interpolation", "lorenzo"])
@pytest.mark.parametrize("bound", [{"abs": 0.01}, {"rel": 0.01}], ids=str)
def test_the_slice_is_the_middle_of_the_array_and_its_error_is_within_the_bound(
    bound: dict[str, Any], predictor: Any
) -> None:
    x = np.add.outer(np.sin(np.arange(5.0)), np.cos(np.arange(600.0) / 30).reshape(20, 30)).astype(np.float32)
    x[2, 3, 4] = np.nan
    codec = arrcomp.ErrorBounded(**bound, predictor=predictor)
    shown = slices.compressed_slice(x, codec, 1)
    assert shown is not None
    np.testing.assert_array_equal(shown.original, x[2])
    np.testing.assert_array_equal(shown.decoded, arrcomp.decompress(arrcomp.compress(x, codec))[2])
    assert np.isnan(shown.error[3, 4])
    assert 0.5 < np.nanmax(np.abs(shown.error)) <= 1
    assert (shown.low, shown.high) == (np.nanmin(x[2]), np.nanmax(x[2]))
    assert shown.title.startswith("slice [2, :, :], error-bounded ")


@pytest.mark.parametrize(
    ("shape", "shown"), [((2, 2), True), ((3, 1, 2), False), ((9,), False), ((), False), ((0, 5, 5), False)]
)
def test_arrays_of_two_dimensions_and_more_have_a_slice(shape: tuple[int, ...], shown: bool) -> None:
    assert slices.has_slice(shape) == shown
