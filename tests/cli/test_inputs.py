"""What `arrcomp` reads and where it writes: several files, folders, names of its own, rules, short names of codecs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arrcomp
import checks

pytest.importorskip("typer")
safetensors_numpy = pytest.importorskip("safetensors.numpy")

from typer.testing import CliRunner

from arrcomp import _cli
from arrcomp._cli import files
from arrcomp.codecs._presets import PRESETS

WEIGHTS = np.random.default_rng(4).normal(0, 0.02, (64, 100)).astype(np.float32)
MODEL = {"weight": WEIGHTS, "bias": WEIGHTS[0], "steps": np.arange(10)}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one array, an archive, and a folder with an array and a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "sub").mkdir(parents=True)
    np.save("x.npy", WEIGHTS)
    np.savez("m.npz", **MODEL)
    np.save("data/y.npy", WEIGHTS + 1)
    safetensors_numpy.save_file(MODEL, "data/sub/model.safetensors")
    (tmp_path / "data" / "notes.txt").write_text("not an array")
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(_cli.app, arguments)
    assert result.exit_code == code, result.output
    assert len(result.stderr.splitlines()) == (code != 0)
    return result.stderr if code else result.stdout


@pytest.mark.parametrize(
    ("source", "compressed"),
    [
        ("a.npy", "a.npy.arrcomp"),
        ("a.b.npz", "a.b.npz.arrcomp.safetensors"),
        ("model.safetensors", "model.arrcomp.safetensors"),
        ("model.pt", "model.pt.arrcomp.safetensors"),
        ("model.pth", "model.pth.arrcomp.safetensors"),
    ],
)
def test_names_lead_there_and_back(source: str, compressed: str) -> None:
    path = Path("folder") / source
    assert files.compressed_path(path) == Path("folder") / compressed
    assert files.restored_path(Path("folder") / compressed) == path


def test_a_file_is_compressed_beside_itself_and_comes_back() -> None:
    text = run("compress", "x.npy", "--abs", "1e-3")
    nbytes = Path("x.npy.arrcomp").stat().st_size
    assert text.endswith(
        f"wrote x.npy.arrcomp: {nbytes / 1000:.3g} kB, {25600 / nbytes:.2f}x smaller, all bounds kept\n"
    )
    assert "x.npy: expected a new file" in run("decompress", "x.npy.arrcomp", code=2)
    assert "x.npy.arrcomp: expected a new file" in run("compress", "x.npy", code=2)
    Path("x.npy").unlink()
    run("decompress", "x.npy.arrcomp")
    checks.check_bound(WEIGHTS, np.load("x.npy"), arrcomp.ErrorBounded(abs=1e-3))


def test_a_name_that_does_not_say_what_it_was_is_refused() -> None:
    run("compress", "m.npz", "-o", "small.safetensors")
    message = run("decompress", "small.safetensors", code=2)
    assert "small.safetensors: expected a name that ends in .arrcomp or .arrcomp.safetensors" in message
    run("compress", "x.npy", "-o", "z.arrcomp")
    run("decompress", "z.arrcomp")
    checks.check_same_bits(np.load("z.npy"), WEIGHTS)


def test_an_error_names_the_file_of_several_that_it_is_about() -> None:
    np.save("data/time.npy", np.array(["2020"], "datetime64[D]"))
    message = run("compress", "data", "-o", "small", code=2)
    assert message.startswith("arrcomp: data/time.npy: array 'arr_0': dtype: expected ")
    assert "got datetime64[D]; .view('int64') makes integers of the same bits" in message
    run("compress", "x.npy", "m.npz")
    message = run("decompress", "x.npy.arrcomp", "m.npz.arrcomp.safetensors", "--force", "--max-nbytes", "9", code=2)
    assert message.count("x.npy.arrcomp") == 1


def test_decompressed_files_have_no_name_of_compressed_ones() -> None:
    run("compress", "x.npy")
    for name in ("y.arrcomp", "y.arrcomp.safetensors"):
        message = run("decompress", "x.npy.arrcomp", "-o", name, code=2)
        assert f"{name}: expected a name that does not end in .arrcomp or .arrcomp.safetensors" in message
        assert not Path(name).exists()


def test_several_files_are_each_compressed() -> None:
    lines = run("compress", "x.npy", "m.npz").splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "wrote x.npy.arrcomp",
        "wrote m.npz.arrcomp.safetensors",
        "wrote 2 files",
    ]
    assert all(line.endswith("every bit kept") for line in lines)
    lines = run("decompress", "x.npy.arrcomp", "m.npz.arrcomp.safetensors", "-o", "back").splitlines()
    assert lines[-1] == "wrote 2 files: 4 arrays, 51.7 kB"
    checks.check_same_bits(np.load("back/x.npy"), WEIGHTS)
    checks.check_same_bits(np.load("back/m.npz")["steps"], MODEL["steps"])


def test_a_folder_is_compressed_and_comes_back(folder: Path) -> None:
    run("compress", "data", "-o", "small")
    written = sorted(str(path.relative_to(folder)) for path in folder.glob("small/**/*") if path.is_file())
    assert written == ["small/sub/model.arrcomp.safetensors", "small/y.npy.arrcomp"]
    run("decompress", "small", "-o", "back")
    checks.check_same_bits(np.load("back/y.npy"), WEIGHTS + 1)
    assert safetensors_numpy.load_file("back/sub/model.safetensors").keys() == MODEL.keys()
    shutil.rmtree("small")
    run("compress", "data")  # beside the files
    assert Path("data/sub/model.arrcomp.safetensors").is_file()
    names = {path.name for path in Path("data").rglob("*")}
    assert len(names) == 6
    run("compress", "data", "--force")  # what is compressed is not compressed again
    assert {path.name for path in Path("data").rglob("*")} == names


def test_a_folder_with_one_file_is_a_folder_too() -> None:
    assert run("compress", "data/sub", "-o", "new/small").splitlines()[1].startswith("wrote 1 file: ")
    assert Path("new/small/model.arrcomp.safetensors").is_file()
    assert "files" in json.loads(run("compress", "data/sub", "-o", "new/small", "--force", "--json"))


def test_a_folder_as_output_takes_one_file_too() -> None:
    Path("out").mkdir()
    run("compress", "x.npy", "-o", "out")
    assert Path("out/x.npy.arrcomp").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compress x.npy m.npz -o x.npy", "x.npy: expected a folder for several files, got a file"),
        ("compress x.npy - ", "-: expected one file as IN where - is IN or OUT, got several"),
        ("compress x.npy m.npz -o -", "-: expected one file as IN where - is IN or OUT, got several"),
        ("compress x.npy x.npy -o new", "expected one file to write there, got x.npy and x.npy"),
        ("compress empty", "empty: expected files that the command reads, got a folder without any"),
        ("decompress data", "data: expected files that the command reads, got a folder without any"),
        ("info data", "data: Is a directory"),
        ("info no.txt", "no.txt: No such file or directory"),
        ("verify no x.npy", "no: No such file or directory"),
        ("decompress no", "no: No such file or directory"),
        ("decompress x.npy", "x.npy: expected a name that ends in .arrcomp or .arrcomp.safetensors"),
    ],
)
def test_wrong_inputs_are_told_before_anything_is_written(folder: Path, arguments: str, message: str) -> None:
    (folder / "empty").mkdir()
    before = sorted(folder.rglob("*"))
    assert message in run(*arguments.split(), code=2)
    assert sorted(folder.rglob("*")) == before


def test_nothing_is_written_where_one_of_several_outputs_exists() -> None:
    Path("m.npz.arrcomp.safetensors").write_text("precious")
    assert "expected a new file" in run("compress", "x.npy", "m.npz", code=2)
    assert not Path("x.npy.arrcomp").exists()
    assert Path("m.npz.arrcomp.safetensors").read_text() == "precious"


def test_several_files_are_one_json_document() -> None:
    document = json.loads(run("compress", "x.npy", "m.npz", "--json"))
    assert [(each["source"], each["output"]) for each in document["files"]] == [
        ("x.npy", "x.npy.arrcomp"),
        ("m.npz", "m.npz.arrcomp.safetensors"),
    ]
    assert len(document["files"][1]["arrays"]) == 3
    assert document["total"]["bytes"] == sum(each["total"]["bytes"] for each in document["files"])
    document = json.loads(run("decompress", "x.npy.arrcomp", "m.npz.arrcomp.safetensors", "-o", "b", "--json"))
    assert document["total"]["bytes"] == 2 * WEIGHTS.nbytes + WEIGHTS[0].nbytes + 80


# Files that are not compressed


@pytest.mark.parametrize("name", ["m.npz", "data/sub/model.safetensors"])
def test_info_lists_files_that_are_not_compressed(name: str) -> None:
    text = run("info", name)
    assert text.endswith(f"{name}: 3 arrays, 26.1 kB, not compressed\n")
    for word in ("weight", "float32", "64 x 100", "int64", "25.6 kB"):
        assert word in text
    document = json.loads(run("info", name, "--json"))
    rows = {row["name"]: row for row in document["arrays"]}
    none: dict[str, Any] = dict.fromkeys(("codec", "frame", "compressed", "ratio"))
    described = {"name": "steps", "dtype": "int64", "shape": [10], "bytes": 80}
    assert rows["steps"] == described | none
    assert document["total"] == {"bytes": 26_080, "compressed": None, "ratio": None}
    assert run("info", name, "-q") == ""


def test_info_reads_no_array_of_a_file_that_is_not_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(np.lib.format, "read_array", refused)
    monkeypatch.setattr("arrcomp._files.reading.Span.read", refused)
    for name in ("x.npy", "m.npz"):
        run("info", name)


def test_info_names_dtypes_that_no_codec_takes() -> None:
    np.save("text.npy", np.array(["a", "bc"]))
    assert "<U2" in run("info", "text.npy")


# Rules and codecs


def test_a_rule_that_matches_no_array_is_an_error() -> None:
    message = run("compress", "m.npz", "--abs", "1e-3", "--rule", "bais=lossless", code=2)
    assert message == "arrcomp: rule 'bais=lossless': matches no array (arrays: weight, bias, steps)\n"
    assert not Path("m.npz.arrcomp.safetensors").exists()
    run("compress", "m.npz", "--abs", "1e-3", "--rule", "b*=lossless", "--rule", "steps=error-bounded:abs=1")
    message = run("compress", "x.npy", "m.npz", "--rule", "bais=lossless", "--force", code=2)
    assert "(arrays: arr_0, weight, bias, steps)" in message
    run("compress", "x.npy", "m.npz", "--rule", "bias=lossless", "--force")  # it matches in one of the files
    np.savez("many.npz", **{f"a{i}": np.arange(3) for i in range(20)})  # type: ignore[arg-type]
    assert "a7 and 12 more)" in run("compress", "many.npz", "--rule", "b=lossless", code=2)


@pytest.mark.parametrize("name", PRESETS)
def test_short_names_are_codecs(name: str) -> None:
    run("compress", "x.npy", "--codec", name)
    written = arrcomp.from_bytes(Path("x.npy.arrcomp").read_bytes()).codec
    assert written == arrcomp.codec_from_config(PRESETS[name])


def test_short_names_take_parameters_and_stand_in_rules() -> None:
    run("compress", "x.npy", "--codec", "NF4", "--set", "bucket_size=128")
    assert arrcomp.from_bytes(Path("x.npy.arrcomp").read_bytes()).codec == arrcomp.Codebook.nf4(bucket_size=128)
    run("compress", "m.npz", "--rule", "weight=fp8-e4m3:scaling=tensor")
    with arrcomp.open_file("m.npz.arrcomp.safetensors") as file:
        assert file.spec("weight").codec == arrcomp.FloatFormat("fp8_e4m3", scaling="tensor")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--codec float-format", "--codec float-format: expected 'format', which float-format needs, got none"),
        ("--codec float-format", "; for instance --codec fp8, --codec float16, --codec bfloat16"),
        ("--codec codebook", "; for instance --codec nf4, --codec dynamic8, --codec dynamic8-unsigned"),
        ("--codec error-bounded", "; for instance --abs 1e-4"),
        ("--codec fp7", "or a short name, got 'fp7'; did you mean fp8"),
        ("--codec zip", "got 'zip'; short names are fp8, "),
        ("--set bits=4", "got 'bits'; for instance --codec qsgd --set bits=4"),
        ("--codec nf4 --abs 1", "got 'abs'; --codec error-bounded takes --abs"),
        ("--codec qsgd --set foo=1", "bits, bucket_size, norm, rounding, skip_incomplete, coding), got 'foo'"),
        ("--codec qsgd --set rounding=stochastic", "--seed: expected a number, which qsgd bits=4 rounding=stochastic"),
        ("--rule *=qsgd:rounding=stochastic", "--seed: expected a number, which qsgd bits=4 rounding=stochastic"),
        ("--codec int4 --set bits=9", "--codec int4: bits: expected an integer from 1 to 8, got 9"),
    ],
)
def test_wrong_codecs_lead_to_right_ones(options: str, message: str) -> None:
    text = run("compress", "x.npy", *options.split(), code=2)
    assert message in text
    assert "__init__" not in text
    assert "positional" not in text


def test_no_codec_shows_a_python_signature() -> None:
    for name in arrcomp.available_codecs():
        result = CliRunner().invoke(_cli.app, ["compress", "x.npy", "--codec", name, "--force", "--seed", "1"])
        assert "__init__" not in result.output
        assert "(" not in result.stderr.replace("table (nf4", "table nf4")
