"""The command line: the main job on real files, its tables, errors and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import arrcomp
import checks

pytest.importorskip("typer")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

from typer.testing import CliRunner

from arrcomp import _cli
from arrcomp._cli import demo_data, guarantees
from arrcomp._files import read_arrays

RNG = np.random.default_rng(11)
WEIGHTS = RNG.normal(0, 0.02, (64, 100)).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with x.npy in it."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", WEIGHTS)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    """What a command prints; it must end with this exit code, and errors in one line without a traceback."""
    result = CliRunner().invoke(_cli.app, arguments)
    assert result.exit_code == code, result.output
    if code:
        assert "Traceback" not in result.output
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert result.stderr.startswith("arrcomp: ")
        return result.stderr
    return result.stdout


def test_a_file_is_compressed_within_its_bound_and_comes_back(folder: Path) -> None:
    table = run("compress", "x.npy", "-o", "x.arrcomp", "--abs", "1e-4")  # a bound says which codec
    for word in ("float32", "64 x 100", "error-bounded abs=0.0001", "ratio", "largest error", "25.6 kB"):
        assert word in table
    assert "wrote y.npy: 1 array, 25.6 kB" in run("decompress", "x.arrcomp", "-o", "y.npy")
    y = np.load("y.npy")
    checks.check_bound(WEIGHTS, y, arrcomp.ErrorBounded(abs=1e-4))
    run("verify", "x.npy", "x.arrcomp")
    assert "error-bounded abs=0.0001" in run("info", "x.arrcomp")
    stream = arrcomp.compress(WEIGHTS, arrcomp.ErrorBounded(abs=1e-4)).to_bytes()
    assert (folder / "x.arrcomp").read_bytes() == stream
    assert sorted(path.name for path in folder.iterdir()) == ["x.arrcomp", "x.npy", "y.npy"]


def test_the_default_loses_nothing() -> None:
    run("compress", "x.npy", "-o", "x.arrcomp")
    run("decompress", "x.arrcomp", "-o", "y.npy", "--threads", "1")
    checks.check_same_bits(np.load("y.npy"), WEIGHTS)


@pytest.mark.parametrize(
    ("options", "codec"),
    [
        (["--rel", "1e-3"], arrcomp.ErrorBounded(rel=1e-3)),
        (["--pointwise", "0.01", "--speed", "fast"], arrcomp.ErrorBounded(pointwise=0.01, speed="fast")),
        (["--abs", "0.5", "--threads", "2", "--no-check"], arrcomp.ErrorBounded(abs=0.5)),
        (["--abs", "0.1", "--predictor", "auto"], arrcomp.ErrorBounded(abs=0.1, predictor="auto")),
        (["--rel", "0.1", "--set", "predictor=lorenzo"], arrcomp.ErrorBounded(rel=0.1, predictor="lorenzo")),
        (["--abs", "0.1", "--predictor", "columns"], arrcomp.ErrorBounded(abs=0.1, predictor="columns")),
    ],
    ids=str,
)
def test_options_reach_the_codec(options: list[str], codec: arrcomp.Codec) -> None:
    run("compress", "x.npy", "-o", "x.arrcomp", "--codec", "error-bounded", *options)
    assert arrcomp.from_bytes(Path("x.arrcomp").read_bytes()).codec == codec


def test_a_predicted_field_is_smaller_and_named_so(folder: Path) -> None:
    axis = np.linspace(0, 3, 60)
    np.save("field.npy", (np.sin(axis) * np.cos(axis[:, None])).astype(np.float32))
    run("compress", "field.npy", "-o", "plain.arrcomp", "--abs", "1e-4")
    for options in (["--abs", "1e-4"], []):
        text = run("compress", "field.npy", "-o", "field.arrcomp", "--predictor", "interpolation", "--force", *options)
        assert "predictor=interpolation" in text
        assert "predictor=interpolation" in run("info", "field.arrcomp")
        assert '"predictor": "interpolation"' in run("info", "field.arrcomp", "--json")
        run("verify", "field.npy", "field.arrcomp")
        if options:
            assert (folder / "field.arrcomp").stat().st_size < (folder / "plain.arrcomp").stat().st_size / 3


def test_a_model_comes_back_with_its_names_dtypes_and_metadata() -> None:
    model: dict[str, NDArray[Any]] = {
        "layer.weight": WEIGHTS.astype(ml_dtypes.bfloat16),
        "layer.scale": RNG.normal(0, 1, 9).astype(ml_dtypes.float8_e4m3fn),
        "steps": np.array(12),
        "embedding": WEIGHTS,
    }
    safetensors_numpy.save_file(model, "m.safetensors", metadata={"format": "pt"})
    table = run("compress", "m.safetensors", "-o", "c.safetensors", "--codec", "error-bounded", "--abs", "1e-3")
    assert "4 arrays" in table
    codecs = codecs_of("c.safetensors")
    bounded = arrcomp.ErrorBounded(abs=1e-3)
    assert codecs["embedding"] == codecs["layer.weight"] == bounded
    assert codecs["steps"] == codecs["layer.scale"] == arrcomp.Lossless()
    run("verify", "m.safetensors", "c.safetensors")
    run("decompress", "c.safetensors", "-o", "back.safetensors")
    back = read_arrays(Path("back.safetensors"))
    assert back.metadata == {"format": "pt"}
    assert set(back.arrays) == set(model)
    for name in ("steps", "layer.scale"):
        checks.check_same_bits(np.asarray(back.arrays[name]), model[name])
    for name in ("embedding", "layer.weight"):
        checks.check_bound(model[name], np.asarray(back.arrays[name]), bounded)


def test_an_archive_comes_back_with_its_names() -> None:
    arrays: dict[str, NDArray[Any]] = {
        "a": WEIGHTS,
        "b/c": np.arange(5),
        "d": np.array(2 + 1j),
        "e": np.zeros((0, 3), bool),
    }
    np.savez("x.npz", **arrays)  # type: ignore[arg-type]
    run("compress", "x.npz", "-o", "x.safetensors")
    run("verify", "x.npz", "x.safetensors")
    run("decompress", "x.safetensors", "-o", "y.npz")
    with np.load("y.npz") as found:
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            checks.check_same_bits(found[name], array)


def test_verify_fails_where_the_guarantee_is_broken() -> None:
    run("compress", "x.npy", "-o", "x.arrcomp", "--codec", "error-bounded", "--abs", "1e-4")
    moved = WEIGHTS.copy()
    moved[3, 4] += 0.5
    np.save("moved.npy", moved)
    message = run("verify", "moved.npy", "x.arrcomp", code=1)
    assert "array 'arr_0': 1 value breaks the guarantee of error-bounded abs=0.0001; largest error 0.5" in message
    run("compress", "x.npy", "-o", "l.arrcomp")
    moved[3, 4] = WEIGHTS[3, 4]
    moved[0, 0] = np.nextafter(moved[0, 0], np.float32(1))
    np.save("moved.npy", moved)
    assert "1 value breaks the guarantee of lossless" in run("verify", "moved.npy", "l.arrcomp", code=1)
    np.savez("moved.npz", other=WEIGHTS)
    message = run("verify", "moved.npz", "l.arrcomp", code=1)
    assert "moved.npz lacks arr_0; l.arrcomp lacks other" in message


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (WEIGHTS[:, :50], "expected shape (64, 50), that of the original, got (64, 100)"),
        (WEIGHTS.astype(np.float64), "expected dtype float64, that of the original, got float32"),
        (WEIGHTS.astype(">f8"), "expected dtype float64, that of the original, got float32"),
    ],
)
def test_verify_tells_other_shapes_and_dtypes(other: NDArray[Any], expected: str) -> None:
    run("compress", "x.npy", "-o", "x.arrcomp", "--abs", "1e-4")
    np.save("other.npy", other)
    assert f"array 'arr_0': {expected}\n" in run("verify", "other.npy", "x.arrcomp", code=1)
    result = CliRunner().invoke(_cli.app, ["verify", "--json", "other.npy", "x.arrcomp"])
    (row,) = json.loads(result.stdout)["arrays"]
    what, first, second = re.fullmatch(r"expected (\w+) (.*), that of the original, got (.*)", expected).groups()  # type: ignore[union-attr]
    assert row["note"] == f"{what} {first} and {second}"


def test_byte_order_is_no_difference() -> None:
    swapped = WEIGHTS.astype(WEIGHTS.dtype.newbyteorder())
    np.save("x.npy", swapped)
    np.savez("x.npz", arr_0=swapped)
    for source in ("x.npy", "x.npz"):
        run("compress", source, "-o", "x.safetensors", "--abs", "1e-3", "--force")
        run("verify", source, "x.safetensors")
        run("compress", source, "-o", "l.safetensors", "--force")
        for back in ("back.npy", "back.npz", "back.safetensors"):
            run("decompress", "l.safetensors", "-o", back, "--force")
            for pair in ((source, back), (back, source)):
                assert diff(*pair, code=0).endswith("equal: 1 array\n")
                diff(*pair, "--abs", "0", code=0)
    np.save("two.npy", swapped + 1)
    assert "6,400" in diff("x.npy", "two.npy", code=1)
    np.save("wide.npy", WEIGHTS.astype(np.float64))
    assert "dtype float32 and float64" in diff("x.npy", "wide.npy", code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compress missing.npy -o x.arrcomp", "No such file"),
        ("compress x.npy -o x.zip", "x.zip: expected suffix .arrcomp, .safetensors, got '.zip'"),
        ("compress x.npy -o x.npy --force", "expected another file than IN as OUT"),
        ("compress x.npy -o good.arrcomp", "good.arrcomp: expected a new file, .*; --force overwrites it"),
        ("decompress good.arrcomp -o x.npy", "x.npy: expected a new file, .*; --force overwrites it"),
        ("decompress good.arrcomp -o y --force", "expected suffix .*, got ''"),
        ("compress x.npy -o - --json", "--json: expected a file as OUT, got -"),
        ("compress x.txt -o x.arrcomp", "expected suffix .npy, .npz, .safetensors, .pt, .pth, got '.txt'"),
        ("compress no.txt -o x.arrcomp", "no.txt: No such file"),
        ("compress two.npz -o x.pt", "x.pt: expected suffix .*, got '.pt'; in Python, arrcomp.torch.save writes it"),
        ("compress x.npy -o x.arrcomp --codec zip", "--codec: expected lossless, .*, got 'zip'"),
        ("compress x.npy -o x.arrcomp --codec lossless --abs 1e-4", "--codec error-bounded takes --abs"),
        ("compress x.npy -o x.arrcomp --codec error-bounded", "exactly one of abs, rel and pointwise"),
        ("compress x.npy -o x.arrcomp --codec error-bounded --abs 1 --rel 1", "exactly one of abs, rel and pointwise"),
        ("compress x.npy -o x.arrcomp --codec error-bounded --abs nan", "abs: expected a finite .*, got nan"),
        ("compress x.npy -o x.arrcomp --codec error-bounded --pointwise 1", "below 1"),
        ("compress x.npy -o x.arrcomp --speed faster", "speed: expected .*, got 'faster'"),
        ("compress x.npy -o x.arrcomp --predictor best", "predictor: expected .*, got 'best'"),
        ("compress x.npy -o x.arrcomp --codec qsgd --predictor auto", "; --codec error-bounded takes --predictor"),
        ("compress x.npy -o x.arrcomp --set bits", "--set: expected NAME=VALUE, .*, got bits"),
        ("compress x.npy -o x.arrcomp --rule lossless", "--rule: expected PATTERN=CODEC.*, got lossless"),
        ("compress x.npy -o x.arrcomp --rule *=", r"--rule: expected PATTERN=CODEC.*, got \*="),
        ("compress x.npy -o x.arrcomp --rule *=zip", r"--rule \*=zip: codec: expected lossless, .*, got 'zip'"),
        ("compress x.npy -o x.arrcomp --rule *=qsgd:bits", r"--rule \*=qsgd:bits: expected NAME=VALUE, .*, got bits"),
        (
            "compress x.npy -o x.arrcomp --rule *=qsgd:bits=9",
            r"--rule \*=qsgd:bits=9: codec qsgd: bits: expected an integer .*got 9",
        ),
        ("compress x.npy -o x.arrcomp --rules no.json", "No such file"),
        ("compress x.npy -o x.arrcomp --threads 0", "threads: expected .*, got 0"),
        ("compress x.npy -o x.arrcomp --device tpu", "device: expected 'cpu', 'cuda' or 'cuda:N', got 'tpu'"),
        ("compress x.npy -o x.arrcomp --device cuda:", "device: expected 'cpu', 'cuda' or 'cuda:N', got 'cuda:'"),
        ("compress x.npy -o x.arrcomp --device cuda:9999", "cuda:9999: "),
        ("compress x.npy -o no/such/folder/x.arrcomp", "No such file"),
        ("compress text.npy -o x.arrcomp", "array 'arr_0': dtype: expected .*, got <U4"),
        ("compress two.npz -o x.arrcomp", "expected suffix .safetensors for 2 arrays with names"),
        ("decompress x.npy -o y.npy", "expected suffix .arrcomp, .safetensors, got '.npy'"),
        ("decompress good.arrcomp -o y.txt", "expected suffix .npy, .npz, .safetensors, .pt, .pth, got '.txt'"),
        ("decompress x.npy -o x.npy", "expected another file than IN as OUT"),
        ("decompress two.safetensors -o y.npy", "expected one array for a .npy file, got 2"),
        ("info missing.arrcomp", "No such file"),
    ],
)
def test_wrong_usage_is_told_in_one_line(folder: Path, arguments: str, message: str) -> None:
    np.save("text.npy", np.array(["abcd"]))
    np.savez("two.npz", a=WEIGHTS, b=WEIGHTS)
    Path("x.txt").write_text("text")
    run("compress", "x.npy", "-o", "good.arrcomp")
    run("compress", "two.npz", "-o", "two.safetensors")
    before = sorted(folder.iterdir())
    assert re.search(message, run(*arguments.split(), code=2))
    assert sorted(folder.iterdir()) == before


def test_corrupt_streams_have_their_own_exit_code(folder: Path) -> None:
    run("compress", "x.npy", "-o", "x.arrcomp")
    data = bytearray(Path("x.arrcomp").read_bytes())
    data[len(data) // 2] ^= 1
    for name, content in (("flipped", data), ("cut", data[:50]), ("empty", b""), ("alien", WEIGHTS.tobytes())):
        Path(f"{name}.arrcomp").write_bytes(content)
        for arguments in (["info"], ["decompress", "-o", "y.npy"], ["verify", "x.npy"]):
            run(*arguments, f"{name}.arrcomp", code=3)
    data = bytearray(Path("x.arrcomp").read_bytes()[:-8])
    data[4] = 9
    Path("newer.arrcomp").write_bytes(checks.seal(data))
    assert "format version: expected at most 0.1, got 9.1" in run("info", "newer.arrcomp", code=3)
    assert not Path("y.npy").exists()


def test_what_breaks_its_bound_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> guarantees.Comparison:
        return guarantees.Comparison(violations=3, largest_error=0.5)

    monkeypatch.setattr("arrcomp._cli.measure.compare", broken)
    assert "3 values break the guarantee" in run("compress", "x.npy", "-o", "x.arrcomp", code=1)
    assert not Path("x.arrcomp").exists()


def codecs_of(path: str) -> dict[str, arrcomp.Codec]:
    with arrcomp.open_file(path) as file:
        return {name: file.spec(name).codec for name in file}


def test_rules_pick_the_codecs_of_a_model() -> None:
    model = dict.fromkeys(("a.norm", "a.weight", "b.weight", "c", "d"), WEIGHTS)
    safetensors_numpy.save_file(model | {"e": np.arange(3)}, "m.safetensors")
    d = arrcomp.Rule(arrcomp.QSGD(bits=4), "d").config()
    Path("rules.json").write_text(json.dumps([{"codec": "s2fp8", "names": "*.weight"}, d]))
    rules = ["--rule", "*norm*=lossless:speed=fast", "--rule", "b.*=error-bounded:abs=1e-2,speed=fast"]
    rest = ["--rules", "rules.json", "--codec", "error-bounded", "--abs", "1e-3"]
    table = run("compress", "m.safetensors", "-o", "c.safetensors", *rules, *rest)
    assert codecs_of("c.safetensors") == {
        "a.norm": arrcomp.Lossless(speed="fast"),
        "a.weight": arrcomp.S2FP8(),
        "b.weight": arrcomp.ErrorBounded(abs=1e-2, speed="fast"),
        "c": arrcomp.ErrorBounded(abs=1e-3),
        "d": arrcomp.QSGD(bits=4),
        "e": arrcomp.Lossless(),
    }
    for word in ("qsgd bits=4", "s2fp8", "lossless speed=fast", "6 arrays"):
        assert word in table


@pytest.mark.parametrize(
    "rules", ["{", "{}", '[{"codec": "zip"}]', '[{"codec": "lossless"}, {"codec": "lossless", "x": 1}]']
)
def test_wrong_files_of_rules_are_told_in_one_line(rules: str) -> None:
    Path("rules.json").write_text(rules)
    message = run("compress", "x.npy", "-o", "x.arrcomp", "--rules", "rules.json", code=2)
    assert "--rules rules.json" in message


def test_tables_come_as_json() -> None:
    safetensors_numpy.save_file({"w": WEIGHTS, "n": np.arange(3)}, "m.safetensors")
    bounded = ["--codec", "error-bounded", "--abs", "1e-3"]
    documents = [
        json.loads(run(*command, "--json"))
        for command in (
            ["compress", "m.safetensors", "-o", "c.safetensors", *bounded],
            ["info", "c.safetensors"],
            ["verify", "m.safetensors", "c.safetensors"],
            ["decompress", "c.safetensors", "-o", "b.safetensors"],
        )
    ]
    for document in documents:
        rows = {row["name"]: row for row in document["arrays"]}
        assert rows["w"]["codec"] == arrcomp.ErrorBounded(abs=1e-3).config()
        assert (rows["w"]["dtype"], rows["w"]["shape"], rows["w"]["bytes"]) == ("float32", [64, 100], 25600)
        assert document["total"]["bytes"] == 25600 + 24
        assert document["total"]["compressed"] == sum(row["compressed"] for row in rows.values())
    compressed, info, verified, decompressed = ({row["name"]: row for row in d["arrays"]}["w"] for d in documents)
    assert compressed["largest_error"] == verified["largest_error"] <= 1e-3
    assert compressed["violations"] == 0
    assert compressed["encode_seconds"] > 0
    assert decompressed["decode_seconds"] > 0
    assert "largest_error" not in info


def test_info_reads_no_payload_unless_it_is_to_check() -> None:
    run("compress", "x.npy", "-o", "x.arrcomp")
    data = bytearray(Path("x.arrcomp").read_bytes())
    data[len(data) // 2] ^= 1
    Path("x.arrcomp").write_bytes(data)
    assert "25.6 kB" in run("info", "--no-check", "x.arrcomp")
    assert "checksum" in run("info", "x.arrcomp", code=3)


def diff(*arguments: str, code: int) -> str:
    result = CliRunner().invoke(_cli.app, ["diff", *arguments])
    assert result.exit_code == code, result.output
    assert result.stderr == ""
    return result.stdout


def test_diff_compares_files_compressed_or_not() -> None:
    run("compress", "x.npy", "-o", "l.arrcomp")
    run("compress", "x.npy", "-o", "b.arrcomp", "--codec", "error-bounded", "--abs", "1e-3")
    np.savez("x.npz", arr_0=WEIGHTS)
    run("compress", "x.npz", "-o", "b.safetensors", "--codec", "error-bounded", "--abs", "1e-3")
    assert "equal" in diff("x.npy", "l.arrcomp", code=0)
    diff("x.npy", "x.npz", code=0)
    diff("b.arrcomp", "b.safetensors", code=0)
    table = diff("x.npy", "b.arrcomp", code=1)
    for word in ("arr_0", "relative L2", "PSNR", "6,400"):
        assert word in table
    diff("x.npy", "b.arrcomp", "--abs", "1e-3", code=0)
    diff("x.npy", "b.arrcomp", "--abs", "1e-4", code=1)
    diff("x.npy", "b.arrcomp", "--abs", "1e-4", "--rel", "0.5", code=0)


def test_diff_tells_names_that_only_one_file_has() -> None:
    np.savez("a.npz", both=WEIGHTS, one=WEIGHTS)
    np.savez("b.npz", both=WEIGHTS, two=WEIGHTS, three=WEIGHTS)
    text = diff("a.npz", "b.npz", code=1)
    assert "only in a.npz: one\nonly in b.npz: two, three\n" in text
    assert text.endswith("different: 0 of 1 array differ, 1 only in a.npz, 2 only in b.npz\n")
    document = json.loads(diff("a.npz", "b.npz", "--abs", "9", "--json", code=1))
    assert document["same"] is False
    assert document["only_in"] == {"a.npz": ["one"], "b.npz": ["two", "three"]}
    assert document["arrays"][0]["name"] == "both"
    assert document["arrays"][0]["psnr"] is None
    assert document["total"]["differing"] == 0


def test_diff_of_files_without_a_common_array_says_so() -> None:
    np.savez("m.npz", weight=WEIGHTS, bias=WEIGHTS[0])
    assert diff("x.npy", "m.npz", code=1) == (
        "only in x.npy: arr_0\nonly in m.npz: weight, bias\ndifferent: x.npy and m.npz have no array in common\n"
    )


def test_diff_of_many_arrays_shows_the_worst() -> None:
    arrays = {f"a{i}": np.full(10, i, np.float32) for i in range(1, 101)}
    np.savez("a.npz", **arrays)  # type: ignore[arg-type]
    np.savez("b.npz", **{name: x + np.float32(x[0] == 50) * 50 + 1 for name, x in arrays.items()})  # type: ignore[arg-type]
    table = diff("a.npz", "b.npz", code=1)
    assert "60 arrays with smaller differences are not shown" in table
    assert table.endswith("different: 100 of 100 arrays differ\n")
    assert "a50 " in table
    assert "a99 " not in table


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ("x.npy missing.npy", "No such file", 2),
        ("x.npy x.txt", "expected suffix .npy, .npz, .safetensors, .pt, .pth, .arrcomp, got '.txt'", 2),
        ("x.npy x.npy --abs -1", "--abs: expected a finite number of at least 0, got -1.0", 2),
        ("x.npy x.npy --rel nan", "--rel: expected a finite number of at least 0, got nan", 2),
        ("x.npy bad.arrcomp", "checksum", 3),
        ("text.npy text.npy", "array 'arr_0': dtype: expected bool, int8", 2),
    ],
)
def test_diff_tells_trouble_in_one_line(arguments: str, message: str, code: int) -> None:
    stream = bytearray(arrcomp.compress(WEIGHTS).to_bytes())
    stream[-1] ^= 1
    Path("bad.arrcomp").write_bytes(stream)
    np.save("text.npy", np.array(["a", "b"]))
    Path("x.txt").write_text("text")
    assert message in run("diff", *arguments.split(), code=code)


def test_hostile_names_become_no_files(folder: Path) -> None:
    stream = np.frombuffer(arrcomp.compress(WEIGHTS).to_bytes(), np.uint8)
    mark = {"format": "arrcomp", "version": "0.1"}
    for name in ("../../evil", "/evil", "a/../../evil", "evil\0"):
        safetensors_numpy.save_file({name: stream}, "h.safetensors", metadata=mark)
        before = sorted(folder.rglob("*"))
        for output in ("y.npy", "y.npz", "y.safetensors"):
            assert "expected names without paths out of a folder" in run(
                "decompress", "h.safetensors", "-o", output, code=3
            )
        assert sorted(folder.rglob("*")) == before


def test_codecs_are_listed() -> None:
    listed = run("codecs")
    for name in arrcomp.available_codecs():
        assert name in listed
    listed = json.loads(run("codecs", "--json"))["codecs"]
    assert [row["name"] for row in listed] == list(arrcomp.available_codecs())
    for row in listed:
        assert row.keys() == {"name", "guarantee", "dtypes", "example"}
        assert arrcomp.codec_from_config(row["example"]).name == row["name"]


def test_ctrl_c_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("arrcomp._cli.measure.encode", interrupted)
    result = CliRunner().invoke(_cli.app, ["compress", "x.npy", "-o", "x.arrcomp"])
    assert (result.exit_code, result.output) == (130, "")
    assert not Path("x.arrcomp").exists()


# `typer` is imported by the command line, `xxhash` by the package.
@pytest.mark.parametrize("imported", ["typer", "xxhash"])
def test_ctrl_c_during_imports_has_the_same_exit_code(folder: Path, imported: str) -> None:
    stand_in = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (folder / "slow").mkdir()
    (folder / "slow" / f"{imported}.py").write_text(f"{stand_in}signal.raise_signal(signal.SIGINT)\n")
    (folder / "arrcomp").write_text("from arrcomp.__main__ import main\nmain()\n")  # as an installed program
    environment = checks.environment_with(folder / "slow")
    for program in (["-m", "arrcomp"], ["arrcomp"]):
        command = [sys.executable, "-P", *program, "codecs"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_ctrl_c_is_left_to_others_who_import_the_package(folder: Path) -> None:
    (folder / "xxhash.py").write_text("raise KeyboardInterrupt\n")
    program = "try:\n    import arrcomp\nexcept KeyboardInterrupt:\n    print('interrupted')"
    command = [sys.executable, "-P", "-c", program]
    result = subprocess.run(command, env=checks.environment_with(folder), capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("interrupted\n", "")


def test_names_do_not_write_to_terminals() -> None:
    safetensors_numpy.save_file({"\x1b[2Jw\n": WEIGHTS}, "x.safetensors")
    for arguments in (["info", "x.safetensors"], ["compress", "x.safetensors"]):
        assert "\\x1b[2Jw\\n  " in run(*arguments)
    assert "\x1b" not in diff("x.safetensors", "x.npy", code=1)


def test_names_are_not_markup() -> None:
    np.savez("x.npz", **{"[red]a[/b]": WEIGHTS})  # type: ignore[arg-type]
    assert "[red]a[/b]" in run("compress", "x.npz", "-o", "x.safetensors")


def test_the_demo_shows_ten_kinds_of_data_and_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    made = demo_data.demo_arrays

    def small(*, steps: int) -> dict[str, NDArray[Any]]:
        return {name: x.reshape(-1)[:10_000].copy() for name, x in made(steps=min(steps, 1)).items()}

    monkeypatch.setattr(demo_data, "demo_arrays", small)
    lines = run("demo").splitlines()
    assert lines[0].split() == ["array", "codec", "ratio", "largest", "error", "ok"]
    rows = [line.split() for line in lines[2:12]]
    assert {row[-1] for row in rows} == {"yes"}
    assert {row[0] for row in rows} <= set(demo_data.DESCRIPTIONS)
    assert lines[12:] == ["", "all 10 promises kept"]
    broken = guarantees.Comparison(violations=3, largest_error=0.5)
    monkeypatch.setattr("arrcomp._cli.measure.compare", lambda *_: broken)
    result = CliRunner().invoke(_cli.app, ["demo"])
    assert result.exit_code == 1
    assert "10 of 10 promises broken: trained_weights, " in result.stdout


def test_all_of_the_demo_is_every_array_with_every_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays: dict[str, NDArray[Any]] = {"weights": WEIGHTS, "counts": np.arange(1000)}
    monkeypatch.setattr(demo_data, "demo_arrays", lambda **_: arrays)  # the real ones take many seconds
    table = run("demo", "--all", "--threads", "1")
    names = {codec.name for kind in arrcomp.available_codecs().values() for codec in kind.examples()}
    assert len(names) == len(arrcomp.available_codecs())
    count = sum(codec.takes_numpy(x.dtype) for x in arrays.values() for codec in every_example())
    assert table.endswith(f"all {count} promises kept\n")
    rows = json.loads(run("demo", "--codec", "qsgd", "--codec", "lossless", "--json"))["arrays"]
    assert {(row["name"], row["codec"]["codec"]) for row in rows} == {
        ("weights", "qsgd"),
        ("weights", "lossless"),
        ("counts", "lossless"),
    }
    assert all(row["violations"] == 0 for row in rows)
    assert {row["codec"]["codec"] for row in json.loads(run("demo", "--all", "--json"))["arrays"]} == names


def every_example() -> list[arrcomp.Codec]:
    return [codec for kind in arrcomp.available_codecs().values() for codec in kind.examples()]


def test_the_program_runs() -> None:
    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "arrcomp", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert program("compress", "x.npy", "-o", "x.arrcomp").returncode == 0
    assert program("verify", "x.npy", "x.arrcomp").returncode == 0
    Path("x.arrcomp").write_bytes(b"ARRC")
    failed = program("info", "x.arrcomp")
    assert failed.returncode == 3
    assert failed.stderr.count("\n") == 1
    assert "-o" in program("compress", "--help").stdout


def test_a_missing_extra_is_named(folder: Path) -> None:
    (folder / "without" / "typer").mkdir(parents=True)
    (folder / "without" / "typer" / "__init__.py").write_text("raise ImportError('No module named typer')")
    command = [sys.executable, "-P", "-m", "arrcomp", "codecs"]
    result = subprocess.run(
        command, env=checks.environment_with(folder / "without"), capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "pip install arrcomp[cli]" in result.stderr
    assert "Traceback" not in result.stderr
