"""A CUDA device to measure, by PyTorch or CuPy: memory, events, graphs, what the machine is, the timing of calls."""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from arrcomp import DeviceUnavailableError
from arrcomp._arrays import device, host
from harness.timing import by_turns

Array = NDArray[Any]
Call = Callable[[], None]

MOST_CALLS = 32  # in a sample
LEAD_SECONDS = 2e-3  # of copies in front of a sample: longer than the host takes to enqueue it
WARM_UP = 3


class TorchFramework:
    """PyTorch's memory, events and graphs."""

    def __init__(self, index: int) -> None:
        import torch

        self.index, self.torch, self.cuda = index, torch, torch.cuda
        torch.cuda.set_device(index)

    def empty(self, nbytes: int) -> Any:
        return self.torch.empty(nbytes, dtype=self.torch.uint8, device=f"cuda:{self.index}")

    def pointer(self, buffer: Any) -> int:
        return int(buffer.data_ptr())

    def stream(self) -> int:
        return int(self.cuda.current_stream(self.index).cuda_stream)

    def fill(self, buffer: Any, data: Array) -> None:
        buffer.copy_(self.torch.from_numpy(data.copy()))  # torch takes no read-only arrays

    def to_host(self, buffer: Any) -> Array:
        data: Array = buffer.cpu().numpy()
        return data

    def event(self) -> Any:
        event = self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def is_done(self, event: Any) -> bool:
        return bool(event.query())

    def seconds(self, start: Any, end: Any) -> float:
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3

    def synchronize(self) -> None:
        self.cuda.synchronize()

    def capture(self, work: Call) -> Call:
        graph = self.cuda.CUDAGraph()
        with self.cuda.graph(graph):
            work()
        replay: Call = graph.replay
        return replay

    def machine(self) -> dict[str, Any]:
        found = self.cuda.get_device_properties(self.index)
        versions = f"torch {self.torch.__version__}, CUDA {self.torch.version.cuda}"
        return {"gpu": found.name, "framework": versions, "compute_capability": f"{found.major}.{found.minor}"} | {
            "processors": found.multi_processor_count,
            "l2_nbytes": found.L2_cache_size,
            "memory_nbytes": found.total_memory,
        }


class CupyFramework:
    """CuPy's memory, events and graphs."""

    def __init__(self, index: int) -> None:
        import cupy  # type: ignore[import-not-found,unused-ignore]

        self.index, self.cupy, self.cuda = index, cupy, cupy.cuda
        cupy.cuda.Device(index).use()

    def empty(self, nbytes: int) -> Any:
        return self.cupy.empty(nbytes, dtype=self.cupy.uint8)

    def pointer(self, buffer: Any) -> int:
        return int(buffer.data.ptr)

    def stream(self) -> int:
        return int(self.cuda.get_current_stream().ptr)

    def fill(self, buffer: Any, data: Array) -> None:
        buffer.set(data)

    def to_host(self, buffer: Any) -> Array:
        data: Array = self.cupy.asnumpy(buffer)
        return data

    def event(self) -> Any:
        event = self.cuda.Event()
        event.record()
        return event

    def is_done(self, event: Any) -> bool:
        return bool(event.done)

    def seconds(self, start: Any, end: Any) -> float:
        end.synchronize()
        return float(self.cuda.get_elapsed_time(start, end)) * 1e-3

    def synchronize(self) -> None:
        self.cuda.runtime.deviceSynchronize()

    def capture(self, work: Call) -> Call:
        stream = self.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            work()
            graph = stream.end_capture()
        return lambda: graph.launch(stream)

    def machine(self) -> dict[str, Any]:
        found = self.cuda.runtime.getDeviceProperties(self.index)
        versions = f"cupy {self.cupy.__version__}, CUDA {self.cuda.runtime.runtimeGetVersion()}"
        capability = f"{found['major']}.{found['minor']}"
        return {"gpu": found["name"].decode(), "framework": versions, "compute_capability": capability} | {
            "processors": found["multiProcessorCount"],
            "l2_nbytes": found["l2CacheSize"],
            "memory_nbytes": found["totalGlobalMem"],
        }


def framework(index: int) -> Any:
    """The device by the first framework that can use it.

    Raises:
        DeviceUnavailableError: there is none, or arrcomp cannot use it.
    """
    device.check_device(index)
    for make in (TorchFramework, CupyFramework):
        try:
            found = make(index)
            found.empty(1)
        except (ImportError, AssertionError, RuntimeError):
            continue
        return found
    raise DeviceUnavailableError(f"cuda:{index}: neither a torch with CUDA nor cupy is installed")


def driver() -> list[str]:
    """What nvidia-smi says of each GPU's driver and clocks; nothing where it is missing."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    fields = "index,name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit,temperature.gpu"
    command = [program, f"--query-gpu={fields}", "--format=csv"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    return answer.stdout.splitlines() if answer.returncode == 0 else []


def statistics_of(samples: Sequence[float]) -> dict[str, Any]:
    """Median, least and most of the seconds that a call took."""
    return {"seconds": statistics.median(samples), "least": min(samples), "most": max(samples)}


class Gpu:
    """A device with the memory and events to measure it."""

    def __init__(self, framework: Any, copied: Array, samples: int) -> None:
        self.framework = framework
        self.samples, self.copy_nbytes, self.lead_copies = samples, copied.nbytes, 1
        self._from, self._to = self.put(copied), framework.empty(copied.nbytes)
        self.lead_copies = math.ceil(LEAD_SECONDS / self.time([self.copy])["seconds"])

    def put(self, array: Array) -> Any:
        """A copy of the array's bytes on the device."""
        buffer = self.framework.empty(array.nbytes)
        self.framework.fill(buffer, host.numpy_bytes(array))
        return buffer

    def copy(self) -> None:
        """Enqueue a device-to-device copy, larger than the cache."""
        self._to[:] = self._from

    def time(self, calls: Sequence[Call]) -> dict[str, Any]:
        """Seconds of a call by events, in samples of up to MOST_CALLS, and whether the device may have waited."""
        ring, count = itertools.cycle(calls), min(len(calls), MOST_CALLS)
        samples, waits = [], []
        for _ in range(WARM_UP + self.samples):
            for _ in range(self.lead_copies):
                self.copy()
            start = self.framework.event()
            for call in itertools.islice(ring, count):
                call()
            end = self.framework.event()
            waits.append(self.framework.is_done(start))
            samples.append(self.framework.seconds(start, end) / count)
        return statistics_of(samples[WARM_UP:]) | {"waited": any(waits[WARM_UP:])}

    def time_on_host(self, call: Callable[[], Any], count: int) -> dict[str, Any]:
        """Seconds of a call on the host's clock, from samples of `count`; waits only between these."""
        timed = by_turns({"": call}, self.samples, warm=WARM_UP, count=count, settle=self.framework.synchronize)
        return statistics_of(timed[""])
