"""The communication hook for DistributedDataParallel: what it refuses, and, in three processes, what comes back."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from arrcomp import QSGD, Codebook, ErrorBounded, Lossless, Rule
from arrcomp._methods.shards import split, split_each
from ordinary import then_full

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

from arrcomp.torch.distributed import LayerStatistics, QuantizedState, quantized_allreduce_hook
from arrcomp.torch.distributed._ddp.statistics import ring_nbytes, table


@pytest.mark.parametrize("name", then_full(["ddp_processes"], ["ddp_state_processes"]))
@pytest.mark.parametrize("checks", then_full(["short"], ["all"]))
def test_three_processes_train(name: str, checks: str, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).parent / "programs" / f"{name}.py"), str(tmp_path), checks]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert result.stdout.endswith("passed\n"), result.stdout + result.stderr


def test_codecs_follow_from_settings() -> None:
    assert QuantizedState().settings.codec == QSGD(bits=4, bucket_size=512)
    state = QuantizedState(bits=2, bucket_size=64, norm="l2", rounding="stochastic")
    assert state.settings.codec == QSGD(bits=2, bucket_size=64, norm="l2", rounding="stochastic")
    assert QuantizedState(codec=ErrorBounded(abs=1e-3)).settings.codec == ErrorBounded(abs=1e-3)
    assert QuantizedState(bits="auto", uniform_bits=3, bucket_size=64).settings.codec == QSGD(bits=3, bucket_size=64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bits": 9}, ValueError, "bits: expected an integer from 1 to 8, got 9"),
        ({"bits": 2.5}, TypeError, r"bits: expected an integer from 1 to 8, got 2\.5 \(float\)"),
        ({"bits": "some"}, ValueError, "bits: expected an integer from 1 to 8, or 'auto', got 'some'"),
        ({"bucket_size": 1}, ValueError, "bucket_size: expected an integer from 16 to .*, got 1"),
        (
            {"buckets": 512},
            TypeError,
            r"settings: expected QuantizedState's or QSGD's \(bucket_size, norm, rounding, skip_incomplete,",
        ),
        ({"codec": "qsgd"}, TypeError, r"codec: expected a codec such as ErrorBounded\(abs=1e-4\), got 'qsgd' \(str\)"),
        ({"codec": QSGD(), "bits": 4}, ValueError, "codec: expected either codec or bits, got both"),
        ({"codec": QSGD(), "norm": "l2"}, ValueError, "codec: expected either codec or norm, got both"),
        ({"bits": "auto", "codec": QSGD()}, ValueError, "codec: expected either codec or bits, got both"),
        (
            {"bits": "auto", "coding": "entropy"},
            ValueError,
            "coding: expected 'packed' with bits='auto', which plans fixed rates, got 'entropy'",
        ),
        ({"bits": "auto", "uniform_bits": 9}, ValueError, "uniform_bits: expected an integer from 1 to 8, got 9"),
        (
            {"bits": "auto", "candidate_bits": [2, 3]},
            ValueError,
            r"candidate_bits: expected integers that include uniform_bits=4, got \[2, 3\]",
        ),
        (
            {"bits": "auto", "candidate_bits": 4},
            TypeError,
            r"candidate_bits: expected a sequence of integers, got 4 \(int\)",
        ),
        (
            {"bits": "auto", "candidate_bits": [0, 4]},
            ValueError,
            "candidate_bits: expected an integer from 1 to 8, got 0",
        ),
        ({"bits": "auto", "plan_interval": 0}, ValueError, "plan_interval: expected an integer from 1 to .*, got 0"),
        ({"bits": "auto", "alpha": 0}, ValueError, "alpha: expected a finite number above 0, got 0"),
        ({"bits": "auto", "alpha": "1"}, TypeError, r"alpha: expected a finite number above 0, got '1' \(str\)"),
        ({"rules": [QSGD()]}, TypeError, r"rules: expected a list of Rule, got \[QSGD"),
        ({"rules": QSGD()}, TypeError, "rules: expected a list of Rule, got QSGD"),
        ({"layer_min_size": -1}, ValueError, "layer_min_size: expected an integer from 0 to .*, got -1"),
        ({"error_feedback": 1}, TypeError, r"error_feedback: expected True or False, got 1 \(int\)"),
        ({"error_feedback": True, "bits": 1}, ValueError, "bits: expected at least 2 with error_feedback=True, got 1"),
        (
            {"error_feedback": True, "rules": [Rule(QSGD(bits=1))]},
            ValueError,
            "bits: expected at least 2 with error_feedback=True, got 1",
        ),
        (
            {"error_feedback": True, "bits": "auto", "candidate_bits": [1, 4]},
            ValueError,
            "bits: expected at least 2 with error_feedback=True, got 1",
        ),
        ({"start_iter": -1}, ValueError, "start_iter: expected an integer from 0 to .*, got -1"),
        ({"seed": 1 << 64}, ValueError, "seed: expected an integer from 0 to .*, got 18446744073709551616"),
        ({"seed": None}, TypeError, "seed: expected an integer from 0 to .*, got None"),
        ({"track_error": "yes"}, TypeError, r"track_error: expected True or False, got 'yes' \(str\)"),
        ({"threads": 0}, ValueError, "threads: expected an integer of at least 1, or None for all cores, got 0"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        QuantizedState(**arguments)


@pytest.mark.parametrize("settings", [{"bits": 1}, {"rules": [Rule(QSGD(bits=1), "head.*")]}], ids=str)
def test_one_bit_learns_nothing_and_no_one_is_told(settings: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="bits: expected at least 2 for gradients, got 1.*error_feedback=True") as told:
        state = QuantizedState(**settings)
    assert [each.filename for each in told] == [__file__]
    pickle.loads(pickle.dumps(state))  # noqa: S301 # told once
    QuantizedState(codec=Codebook((0.0,), (-0.25, 0.25), scaling="absmax", bucket_size=512), error_feedback=True)


def test_models_alone_have_names() -> None:
    with pytest.raises(TypeError, match=r"model: expected a torch\.nn\.Module, got list"):
        QuantizedState().register_model([])
    with pytest.raises(TypeError, match=r"model: expected a torch\.nn\.Module, got 'model' \(str\)"):
        QuantizedState.for_model("model")
    model = torch.nn.Linear(3, 4)
    state = QuantizedState.for_model(model, 2)
    assert state.layers.names == ["weight", "bias"]
    assert state.settings.codec == QSGD(bits=2)


def progressed() -> Any:
    state = QuantizedState(bits="auto", error_feedback=True, rules=[Rule(Lossless(), "*.bias")], seed=4)
    residuals = {"weight": torch.randn(4, 3)}
    plan = {"weight": 3}
    state.load_state_dict(
        {"step": 7, "plan": plan, "residuals": residuals, "sum_residuals": {"weight": torch.ones(5)}, "named": True}
    )
    return state


def pickled(state: Any) -> Any:
    return pickle.loads(pickle.dumps(state))  # noqa: S301 - own bytes


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_a_state_is_copied_and_pickled_without_its_group(again: Any) -> None:
    state = progressed()
    state.process_group = object()
    twin = again(state)
    assert twin.process_group is None
    assert twin.settings == state.settings
    assert (twin.step, twin.plan) == (7, {"weight": 3})
    assert torch.equal(twin.residuals["weight"], state.residuals["weight"])
    state.residuals["weight"].zero_()
    assert twin.residuals["weight"].any(), "memory of its own"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"step": -1}, ValueError, r"state_dict\['step'\]: expected an integer from 0 to .*, got -1"),
        ({"step": "7"}, TypeError, r"state_dict\['step'\]: expected an integer from 0 to .*, got '7' \(str\)"),
        ({"plan": {"weight": 9}}, ValueError, r"state_dict\['plan'\]: expected \[2.* got \{'weight': 9\}"),
        (
            {"more": 1},
            TypeError,
            r"state_dict: expected a mapping with step, plan, residuals, sum_residuals, named, got \['step',",
        ),
    ],
    ids=str,
)
def test_other_progress_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    state = progressed()
    with pytest.raises(error, match=message):
        state.load_state_dict(state.state_dict() | change)
    with pytest.raises(
        TypeError, match="state_dict: expected a mapping with step, plan, residuals, sum_residuals, named, got NoneType"
    ):
        state.load_state_dict(None)
    with pytest.raises(ValueError, match="error_feedback=True"):
        QuantizedState(bits="auto").load_state_dict(state.state_dict())
    with pytest.raises(
        ValueError, match=r"state_dict\['plan'\]: expected no plan without bits='auto', got \{'weight': 3\}"
    ):
        QuantizedState(error_feedback=True).load_state_dict(state.state_dict())


def test_one_bit_has_error_feedback_with_levels_near_zero() -> None:
    codec = Codebook((0.0,), (-0.25, 0.25), scaling="absmax", bucket_size=512)  # as the error message says
    assert QuantizedState(codec=codec, error_feedback=True).settings.codec == codec


def test_a_table_has_a_line_for_each_layer_and_one_for_all() -> None:
    layers = {
        "first.weight": LayerStatistics(1000, QSGD(bits=4), 500_000, 4_000_000, torch.tensor(1.0), torch.tensor(100.0)),
        "second": LayerStatistics(2000, ErrorBounded(abs=1.0), 1_000_000, 8_000_000),
        "b": LayerStatistics(10, None, 40_000, 40_000),
        "unsent": LayerStatistics(10),
    }
    lines = table(layers, 12, tracks_error=True).splitlines()
    assert lines[0].split() == ["layer", "values", "codec", "sent", "saved", "ratio", "error"]
    assert lines[2].split() == ["first.weight", "1,000", "qsgd,", "4", "bits", "0.500", "MB", "3.500", "MB", "8", "0.1"]
    assert lines[3].split() == ["second", "2,000", "error-bounded", "1.000", "MB", "7.000", "MB", "8"]
    assert lines[4].split() == ["b", "10", "-", "0.040", "MB", "0.000", "MB", "1"]
    assert lines[5].split() == ["unsent", "10", "-", "0.000", "MB", "0.000", "MB"]
    assert lines[6].split() == ["all", "3,020", "step", "12", "1.540", "MB", "10.500", "MB", "7.82", "0.1"]
    assert len({line.index(" MB") for line in lines[2:]}) == 1, "columns are aligned"


def test_a_table_without_errors_has_no_column_of_them_and_says_how_to_get_one() -> None:
    header, _, *rows, total, note = table({"w": LayerStatistics(1000, QSGD(), 500, 4000)}, 1, False).splitlines()
    assert header.split() == ["layer", "values", "codec", "sent", "saved", "ratio"]
    assert rows[0].split() == ["w", "1,000", "qsgd,", "4", "bits", "0.500", "kB", "3.500", "kB", "8"]
    assert total.startswith("all")
    assert "track_error=True" in note


def test_a_state_shows_what_it_does() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 5))
    state = QuantizedState.for_model(model, bits=2, error_feedback=True)
    codec = QSGD(bits=2)
    none = "0 bytes sent, 0 bytes without compression"
    assert repr(state) == f"<QuantizedState of 4 layers by {codec}, with error feedback: step 0, {none}>"
    state.statistics["0.weight"] = LayerStatistics(12, codec, 2500, 40_000)
    assert repr(state).endswith("step 0, 2.500 kB sent, 40.000 kB without compression>")
    auto = "<QuantizedState of the layers of the first step by "
    assert repr(QuantizedState(bits="auto")).startswith(f"{auto}{QSGD(bits=4)}, bits chosen for each layer: ")


def test_a_hook_without_a_state_says_what_to_pass() -> None:
    with pytest.raises(TypeError, match=r"got None; pass QuantizedState\.for_model\(model, bits=4\)$"):
        quantized_allreduce_hook(None, None)  # type: ignore[arg-type]


def test_a_ring_sends_nothing_to_itself() -> None:
    assert [ring_nbytes(4000, world) for world in (1, 2, 4)] == [0, 4000, 6000]


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_each_array_is_cut_by_itself(world: int) -> None:
    elements, multiples, turns = [10_000, 3, 700, 0], [512, 512, 64, 512], [5, 1, 2, 0]
    shares = split_each(elements, multiples, turns, world)
    for array, (count, multiple, turn) in enumerate(zip(elements, multiples, turns, strict=True)):
        alone = split([count], [multiple], world)
        mine = [[piece for piece in share if piece.array == array] for share in shares]
        assert [
            [piece._replace(array=0) for piece in pieces] for pieces in mine[turn % world :] + mine[: turn % world]
        ] == (alone)
        assert sorted(i for pieces in mine for piece in pieces for i in range(piece.first, piece.end)) == list(
            range(count)
        )
        assert all(piece.first % multiple == 0 for pieces in mine for piece in pieces)
