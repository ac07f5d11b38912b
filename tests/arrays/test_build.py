"""What a source build leaves out, and what users are told of it: it compiles for the machine that it runs on."""

import importlib

import pytest

from arrcomp import DeviceUnavailableError, _core, cpu
from arrcomp._arrays.device import check_device


def test_a_processor_whose_code_is_missing_goes_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "missing_instruction_set", lambda: "avx2")
    with pytest.warns(RuntimeWarning, match=r"has no avx2 code.*ARRCOMP_CPU=ALL"):
        importlib.reload(cpu)
    monkeypatch.undo()
    importlib.reload(cpu)  # without a warning, which would be an error


def test_a_build_lacks_the_code_of_the_processor_that_it_was_built_on() -> None:
    assert not _core.missing_instruction_set()
    assert cpu.instruction_sets()[-1] == "plain"


@pytest.mark.skipif(_core.cuda_built(), reason="this build has CUDA kernels")
def test_a_build_without_kernels_does_not_say_how_to_make_them() -> None:
    with pytest.raises(DeviceUnavailableError, match=r"no CUDA kernels.*-C cmake.define.ARRCOMP_CUDA=ON"):
        check_device(0)
