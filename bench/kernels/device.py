"""A CUDA device to measure, by PyTorch or CuPy: memory, events, graphs, what the machine is, the timing of calls.

For rehearsals the CPU stands in for it: every line of the programs runs, and its figures mean nothing.
"""

from __future__ import annotations

import itertools
import math
import platform
import shutil
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

import arrcomp
from arrcomp import DeviceUnavailableError, _core
from arrcomp._arrays import device, registry
from arrcomp._arrays.numpy import numpy_bytes
from harness.timing import by_turns
from kernels.calls import CudaCalls, HostCalls
from kernels.names import short_name

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
        self.calls = CudaCalls(index, self.stream)
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

    def array(self, x: Array) -> Any:
        return registry.to_cuda(x, self.index)

    def bytes_of(self, x: Any) -> Array:
        return self.to_host(x.reshape(-1).view(self.torch.uint8))

    def assign(self, x: Any, values: Array) -> None:
        self.fill(x.view(self.torch.uint8), numpy_bytes(values))

    def compressed(self, made: Any) -> Any:
        return made.to(f"cuda:{self.index}")

    def kernel_seconds(self, work: Call) -> dict[str, float]:
        """Seconds of each kernel that `work` enqueues, by its name; none where the profiler cannot serve."""
        profiler = self.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as found:
            work()
            self.synchronize()
        return seconds_by_kernel(found.events())

    def streams(self, count: int) -> list[Any]:
        return [self.cuda.stream(self.cuda.Stream(self.index)) for _ in range(count)]

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
        self.calls = CudaCalls(index, self.stream)
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

    def array(self, x: Array) -> Any:
        return registry.to_cuda(x, self.index)

    def bytes_of(self, x: Any) -> Array:
        return self.to_host(x.reshape(-1).view(self.cupy.uint8))

    def assign(self, x: Any, values: Array) -> None:
        self.fill(x.view(self.cupy.uint8), numpy_bytes(values))

    def compressed(self, made: Any) -> Any:
        return made.to(f"cuda:{self.index}")

    def kernel_seconds(self, work: Call) -> dict[str, float]:
        return {}  # PyTorch's profiler tells

    def streams(self, count: int) -> list[Any]:
        return [self.cuda.Stream(non_blocking=True) for _ in range(count)]

    def machine(self) -> dict[str, Any]:
        found = self.cuda.runtime.getDeviceProperties(self.index)
        versions = f"cupy {self.cupy.__version__}, CUDA {self.cuda.runtime.runtimeGetVersion()}"
        capability = f"{found['major']}.{found['minor']}"
        return {"gpu": found["name"].decode(), "framework": versions, "compute_capability": capability} | {
            "processors": found["multiProcessorCount"],
            "l2_nbytes": found["l2CacheSize"],
            "memory_nbytes": found["totalGlobalMem"],
        }


class HostFramework:
    """NumPy's memory and this machine's clock in place of a device's."""

    def __init__(self) -> None:
        self.index, self.calls = 0, HostCalls()

    def empty(self, nbytes: int) -> Any:
        return np.empty(nbytes, np.uint8)

    def pointer(self, buffer: Any) -> int:
        return int(buffer.ctypes.data)

    def stream(self) -> int:
        return 0

    def fill(self, buffer: Any, data: Array) -> None:
        buffer[:] = data

    def to_host(self, buffer: Any) -> Array:
        data: Array = buffer.copy()
        return data

    def event(self) -> Any:
        return time.perf_counter()

    def is_done(self, event: Any) -> bool:
        return True

    def seconds(self, start: Any, end: Any) -> float:
        return float(end - start)

    def synchronize(self) -> None:
        pass

    def capture(self, work: Call) -> Call:
        work()
        return work

    def array(self, x: Array) -> Any:
        return x

    def bytes_of(self, x: Any) -> Array:
        return numpy_bytes(x)

    def assign(self, x: Any, values: Array) -> None:
        x[:] = values

    def compressed(self, made: Any) -> Any:
        return made

    def kernel_seconds(self, work: Call) -> dict[str, float]:
        start = time.perf_counter()
        work()
        return {"all of the CPU": time.perf_counter() - start}

    def streams(self, count: int) -> list[Any]:
        return [nullcontext() for _ in range(count)]

    def machine(self) -> dict[str, Any]:
        name = {"gpu": "no GPU: a rehearsal", "framework": f"numpy {np.__version__}", "compute_capability": "-"}
        return name | {"processors": _core.available_threads(), "l2_nbytes": 1 << 16, "memory_nbytes": 0}


def seconds_by_kernel(events: Sequence[Any]) -> dict[str, float]:
    """Seconds on the device of PyTorch's profiler's events, copies and fills too, by the name of the kernel."""
    seconds: dict[str, float] = defaultdict(float)
    for event in events:
        if getattr(event.device_type, "name", "") == "CUDA":
            seconds[short_name(event.name)] += event.time_range.elapsed_us() * 1e-6
    return dict(seconds)


def framework(index: int, rehearse: bool = False) -> Any:
    """The device by the first framework that can use it, or what stands in for it.

    Raises:
        DeviceUnavailableError: there is none, or arrcomp cannot use it.
    """
    if rehearse:
        return HostFramework()
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


def describe(framework: Any) -> dict[str, Any]:
    """The machine and the versions of what is measured."""
    processor = {"host": platform.machine(), "instruction_set": _core.instruction_set()}
    versions = {"python": platform.python_version(), "arrcomp": arrcomp.__version__}
    machine: dict[str, Any] = framework.machine()
    return machine | versions | processor | {"nvidia_smi": driver()}


def machine_name(framework: Any) -> str:
    """The GPU and its CUDA, as figures carry them."""
    machine = framework.machine()
    _, _, version = machine["framework"].partition(", ")
    return ", ".join(word for word in (machine["gpu"], version) if word)


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
        self.framework.fill(buffer, numpy_bytes(array))
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

    def kernels(self, calls: Sequence[Call]) -> dict[str, float]:
        """Seconds of a call's kernels by name, the mean of up to MOST_CALLS; none where nothing can tell."""
        count = min(len(calls), MOST_CALLS)

        def work() -> None:
            for call in calls[:count]:
                call()

        try:
            found: dict[str, float] = self.framework.kernel_seconds(work)
        except (ImportError, RuntimeError):
            return {}
        return {name: seconds / count for name, seconds in found.items()}

    def time_on_host(self, call: Callable[[], Any], count: int) -> dict[str, Any]:
        """Seconds of a call on the host's clock, from samples of `count`; waits only between these."""
        timed = by_turns({"": call}, self.samples, warm=WARM_UP, count=count, settle=self.framework.synchronize)
        return statistics_of(timed[""])
