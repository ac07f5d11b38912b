"""The corpora of the fuzzers, tried again, in streams with right checksums, on every machine."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import arrcomp
import checks
import fuzz_headers
import fuzz_inputs
import small_streams
from arrcomp import _core
from checks import Array, Host

TESTS = Path(__file__).resolve().parents[1]
FOLDERS = ("format", "support", "independent")
NAMES = list(fuzz_inputs.VARIANTS)

# One process for an instruction set: it prints what becomes of each input.
PROGRAM = """
import json
import sys

sys.path[:0] = sys.argv[1:]
import test_fuzz_corpus

print(json.dumps(test_fuzz_corpus.outcomes()))
"""


def outcomes() -> dict[str, str]:
    """What becomes of all inputs, by their names: a digest of the array, or that it is refused."""
    return {
        f"{name}/{entry}": digest(input_, outcome_of(input_))
        for name in NAMES
        for entry, input_ in inputs(name).items()
    }


def outcome_of(input_: fuzz_inputs.Input) -> Array | None:
    """The array of an input, or None if it is refused."""
    return small_streams.outcome(input_.stream(), reference=input_.reference)


def inputs(name: str) -> dict[str, fuzz_inputs.Input]:
    """The inputs of a codec's corpus of which streams can be made."""
    read = {entry: fuzz_inputs.parsed(name, data) for entry, data in fuzz_inputs.corpus(name).items()}
    return {entry: input_ for entry, input_ in read.items() if input_ is not None}


def digest(input_: fuzz_inputs.Input, array: Array | None) -> str:
    """A few words on an array."""
    if array is None:
        return "refused"
    if array.dtype.itemsize // input_.dtype.parts == 8 and input_.codec.name in ("lossless", "error-bounded"):
        return "read"  # levels above 2^50 in float64 are the reader's affair (FORMAT.md, 3.4)
    return hashlib.blake2b(array.tobytes()).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_corpora_reach_arrays_and_refusals(name: str) -> None:
    found = {outcome_of(input_) is None for input_ in inputs(name).values() if input_.is_usual}
    assert found == {True, False}


def test_instruction_sets_agree_on_the_corpora() -> None:
    expected = outcomes()
    for instruction_set in _core.instruction_sets():
        environment = os.environ | {"ARRCOMP_INSTRUCTION_SET": instruction_set}
        command = [sys.executable, "-P", "-c", PROGRAM, *(str(TESTS / folder) for folder in FOLDERS)]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert child.returncode == 0, child.stderr
        assert json.loads(child.stdout) == expected, instruction_set


@pytest.mark.parametrize("name", NAMES)
def test_groups_of_larger_arrays_are_refused_in_smaller_ones(name: str) -> None:
    for entry, input_ in inputs(name).items():
        if not input_.is_usual and input_.elements > 0:
            assert outcome_of(input_) is None, entry


@pytest.mark.parametrize("name", NAMES)
def test_devices_agree_with_the_host_on_the_corpora(name: str, device: Host) -> None:
    if device is checks.HOST:
        pytest.skip("needs --device cuda")
    for entry, input_ in inputs(name).items():
        assert digest(input_, _outcome_on(device, input_)) == digest(input_, outcome_of(input_)), entry


def _outcome_on(device: Host, input_: fuzz_inputs.Input) -> Array | None:
    try:
        return small_streams.decoded(input_.stream(), reference=input_.reference, device=device)
    except small_streams.REFUSALS:
        return None


def test_headers_are_refused_or_read() -> None:
    for data in fuzz_inputs.corpus("header").values():
        fuzz_headers.check_reading(data)
        fuzz_headers.check_reading(data[:-1])


def test_mutations_of_headers_are_refused_or_read(record_property: Any) -> None:
    corpus = [*fuzz_headers.seeds(), *fuzz_inputs.corpus("header").values()]
    mutator = fuzz_headers.Mutator(3)
    for _ in range(2000):
        fuzz_headers.check_reading(mutator.mutated(corpus))
    record_property("headers", 2000)


def test_mutations_are_the_same_for_the_same_seed() -> None:
    corpus = fuzz_headers.seeds()
    one, other = fuzz_headers.Mutator(5), fuzz_headers.Mutator(5)
    made = [one.mutated(corpus) for _ in range(50)]
    assert made == [other.mutated(corpus) for _ in range(50)]
    assert len(set(made)) > 25


def test_the_check_of_reading_notices_what_may_not_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: Any) -> Any:
        raise OverflowError("not one of the package's errors")

    monkeypatch.setattr(arrcomp, "from_bytes", broken)
    with pytest.raises(OverflowError):
        fuzz_headers.check_reading(random.Random(0).randbytes(50))  # noqa: S311


def test_inputs_hold_what_they_are_made_of() -> None:
    array = small_streams.weights(100)
    for name in NAMES:
        for variant, codec in enumerate(fuzz_inputs.VARIANTS[name]):
            compressed = fuzz_inputs.compressed(codec, array)
            payload = compressed.host_payload().tobytes()
            input_ = fuzz_inputs.parsed(
                name, fuzz_inputs.packed(name, variant, compressed.spec.dtype, array.size, payload)
            )
            assert input_ is not None
            assert input_.stream() == compressed.to_bytes()
            found = outcome_of(input_)
            assert found is not None
            assert found.size == array.size


def test_the_fuzzers_variants_are_those_of_the_corpora() -> None:
    lines = [fuzz_inputs.core_line(codec) for codecs in fuzz_inputs.VARIANTS.values() for codec in codecs]
    assert (fuzz_inputs.FOLDER / "variants.inc").read_text().splitlines()[1:] == lines


def test_the_page_tells_what_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS.parent / "bench"))
    from proofs import fuzzing  # type: ignore[import-not-found]

    held = {"target": "qsgd", "executions": 1_000_000, "edges": 12, "corpus": 3, "peak_mib": 90, "crashes": 0}
    broken = held | {"target": "smaq", "crashes": 1, "artifact": "crash-1"}
    lines = fuzzing.markdown({"targets": [held, broken], "failures": 1}).splitlines()[-2:]
    assert [line.strip("| ").split(" | ") for line in lines] == [
        ["qsgd", "1,000,000", "12", "3", "90", "held"],
        ["smaq", "1,000,000", "12", "3", "90", "**broken: crash-1**"],
    ]
