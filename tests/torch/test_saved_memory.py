"""The report of what a model keeps for the backward pass: nothing is left out, counted twice or kept."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from arrcomp import QSGD

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils.checkpoint import checkpoint

from arrcomp.torch._saved_activations import compressed_activations
from arrcomp.torch._saved_memory import saved_memory


def network() -> Any:
    return nn.Sequential(nn.Linear(16, 64), nn.Sequential(nn.GELU(), nn.Linear(64, 64)), nn.ReLU(), nn.Linear(64, 8))


def test_every_saved_tensor_has_a_row() -> None:
    x = torch.randn(32, 16)
    report = saved_memory(network(), x)
    hidden, tensors = 32 * 64 * 4, [row for row in report.rows if row.kind == "tensor"]
    assert [(row.module, row.operation, row.nbytes) for row in tensors] == [
        ("0", "AddmmBackward0", 32 * 16 * 4),
        ("1.0", "GeluBackward0", hidden),
        ("1.1", "AddmmBackward0", hidden),
        ("2", "ReluBackward0", hidden),
        ("3", "AddmmBackward0", 0),  # the same tensor
    ]
    assert [row.shared for row in tensors] == [False] * 4 + [True]
    assert report.nbytes == 32 * 16 * 4 + 3 * hidden
    assert report.parameter_nbytes == (64 * 64 + 64 * 8) * 4
    assert {row.dtype for row in report.rows} == {torch.float32}


def test_the_total_is_what_hooks_are_given() -> None:
    model, x = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.randn(4, 10, 32)
    storages: dict[int, Any] = {}

    def pack(saved: Any) -> Any:
        storages[id(saved.untyped_storage())] = saved.untyped_storage()
        return saved.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        _y = model(x)
    parameters = {id(parameter.untyped_storage()) for parameter in model.parameters()}
    expected = sum(storage.nbytes() for key, storage in storages.items() if key not in parameters)
    report = saved_memory(model, x)
    assert report.nbytes == expected
    for hooks in (
        torch.autograd.graph.save_on_cpu(),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved),
    ):
        with hooks:
            assert saved_memory(model, x).nbytes == expected


@pytest.mark.parametrize("inside", [False, True])
def test_compressed_tensors_are_shown_as_such(inside: bool) -> None:
    model, x = network(), torch.randn(128, 16)

    def run(x: Any) -> Any:
        with compressed_activations(QSGD(bits=4), min_size=100):
            return model(x)

    plain = saved_memory(model, x)
    if inside:
        report = saved_memory(run, x)
    else:
        with compressed_activations(QSGD(bits=4), min_size=100) as statistics:
            report = saved_memory(model, x)
        assert report.nbytes == statistics.compressed_nbytes
    assert {row.kind for row in report.rows} == {"compressed", "tensor" if inside else "parameter"}
    compressed = sum(row.nbytes for row in report.rows if row.kind == "compressed")
    assert 0 < compressed < plain.nbytes / 6.5
    assert [row.shape for row in report.rows] == [row.shape for row in plain.rows]
    assert sum(row.shared for row in report.rows) == 1


def test_indices_of_custom_functions_are_shown() -> None:
    class Coarse(torch.autograd.Function):  # type: ignore[misc,name-defined,unused-ignore]
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward((x > 0).to(torch.uint8), None)
            return x.relu()

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * context.saved_tensors[0]

    (row,) = saved_memory(Coarse.apply, torch.randn(100, requires_grad=True)).rows
    assert row == ("", "CoarseBackward", "tensors[0]", (100,), torch.uint8, 100, "tensor", False)


def test_checkpointing_shows_what_is_not_kept() -> None:
    model, x = network(), torch.randn(32, 16, requires_grad=True)

    def run(x: Any) -> Any:
        return checkpoint(model[2], checkpoint(model[1], model[0](x), use_reentrant=False), use_reentrant=False).exp()

    rows = saved_memory(run, x).rows
    assert [row.operation for row in rows if row.kind == "tensor" and row.shape != (16, 64)] == [
        "AddmmBackward0",
        "ExpBackward0",
    ]


def test_compiled_code_is_one_node_and_is_not_compiled_anew() -> None:
    model, x = network(), torch.randn(32, 16)
    compiled = torch.compile(model, backend="aot_eager")
    compiled(x)
    torch._dynamo.utils.counters.clear()
    report = saved_memory(compiled, x)
    assert {row.operation for row in report.rows} == {"CompiledFunctionBackward"}
    assert report.nbytes > 0
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 0
    torch._dynamo.reset()


def test_on_the_meta_device_there_are_sizes() -> None:
    x = torch.randn(32, 16)
    report, meta = saved_memory(network(), x), saved_memory(network().to("meta"), x.to("meta"))
    assert (meta.nbytes, meta.parameter_nbytes) == (report.nbytes, report.parameter_nbytes)


def test_all_kinds_of_inputs_and_outputs_are_taken() -> None:
    def model(a: Any, b: Any) -> Any:
        return {"first": [a.exp()], "second": (b.sin(), 3), "none": a.detach()}

    a, b = torch.randn(10, requires_grad=True), torch.randn(20, requires_grad=True)
    for inputs in ((a, b), [a, b], {"a": a, "b": b}):
        assert [row.nbytes for row in saved_memory(model, inputs).rows] == [40, 80]
    with torch.no_grad():
        assert saved_memory(model, (a, b)).nbytes == 120


def test_nothing_is_left_behind() -> None:
    model = network()
    results = []
    model.register_forward_hook(lambda module, inputs, output: results.append(weakref.ref(output)))
    before = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    gc.disable()
    try:
        report = saved_memory(model, torch.randn(32, 16))
        assert results[0]() is None
    finally:
        gc.enable()
    assert [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()] == before
    lines = str(report).splitlines()
    assert len(lines) == len(report.rows) + 2
    assert "as above" in str(report)
    assert lines[-1] == f"{report.nbytes:,} bytes, and {report.parameter_nbytes:,} of parameters and buffers"


def test_what_cannot_be_reported_is_refused() -> None:
    with pytest.raises(TypeError, match=r"model: expected a torch\.nn\.Module or a function, got 3 \(int\)"):
        saved_memory(3, torch.ones(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="model: expected an output that requires a gradient, got none"):
        saved_memory(torch.sin, torch.ones(1))
