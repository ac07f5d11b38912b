"""JAX in several processes: a device's number is CUDA's, not the one that counts the devices of all processes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

jax = pytest.importorskip("jax")

import arrcomp
from arrcomp._arrays.device import Device, parse_kind
from arrcomp.jax import _adapter


@dataclass(frozen=True)
class FakeDevice:
    """A GPU as JAX describes it."""

    id: int
    local_hardware_id: int | None
    platform: str = "gpu"


# As the second of two processes with two GPUs each sees its own.
DEVICES = [FakeDevice(2, 0), FakeDevice(3, 1)]


@dataclass(frozen=True)
class FakeArray:
    """An array on a GPU."""

    device: FakeDevice

    def devices(self) -> set[FakeDevice]:
        return {self.device}


@pytest.mark.parametrize("device", DEVICES)
def test_an_arrays_device_has_the_number_that_cuda_gives_it(device: FakeDevice) -> None:
    assert _adapter.JaxAdapter().device(FakeArray(device)) == Device("jax", "cuda", device.local_hardware_id or 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_named_device_is_found_by_the_number_that_cuda_gives_it(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "local_devices", lambda backend: DEVICES)
    assert _adapter._jax_device(Device("jax", "cuda", device.local_hardware_id or 0)) is device
    with pytest.raises(arrcomp.DeviceUnavailableError, match="got cuda:3"):
        _adapter._jax_device(Device("jax", "cuda", 3))


def test_a_device_that_is_handed_over_is_known_by_the_number_that_cuda_gives_it() -> None:
    assert [parse_kind(device) for device in DEVICES] == [("cuda", 0), ("cuda", 1)]
    assert parse_kind(FakeDevice(5, None)) == ("cuda", 5)
