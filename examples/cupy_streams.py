"""Several compressions at once: a pipeline of arrays, each compressed and decompressed on a stream of its own.

Small arrays do not fill a GPU. On one stream they run one after the other; several streams use the GPU better. The
pipeline is asynchronous: the host enqueues all of it before the device is half done.

Without a GPU, or with an arrcomp built without CUDA, the script says so and ends.

    pip install ".[cupy]"        (with CUDA 12: ".[cupy-cuda12]")
    python examples/cupy_streams.py
"""

import sys
from typing import Any

import numpy as np

import arrcomp

ARRAYS = 64
ELEMENTS = 1 << 18
CODEC = arrcomp.ErrorBounded(abs=1e-3)


def enqueue(arrays: list[Any], streams: list[Any]) -> list[Any]:
    """Compress and decompress every array, on the streams in turn."""
    results = []
    for i, x in enumerate(arrays):
        with streams[i % len(streams)]:
            results.append(arrcomp.decompress(arrcomp.compress(x, CODEC)))
    return results


def milliseconds(cupy: Any, arrays: list[Any], streams: list[Any]) -> float:
    """Time on the device, from the start of the first stream to the end of the last, by events."""
    main = cupy.cuda.get_current_stream()
    start = main.record()
    for stream in streams:
        stream.wait_event(start)
    results = enqueue(arrays, streams)
    for stream in streams:
        main.wait_event(stream.record())
    end = main.record()
    end.synchronize()
    del results
    return float(cupy.cuda.get_elapsed_time(start, end))


def main() -> None:
    """Print the throughput with one stream and with several."""
    try:
        import cupy
    except ImportError as error:
        sys.exit(f'cupy_streams.py needs CuPy ({error}): pip install ".[cupy]"')
    try:
        arrcomp.compress(np.zeros(1)).to("cuda")
    except arrcomp.DeviceUnavailableError as error:
        print(f"cupy_streams.py needs a GPU and an arrcomp built with CUDA, and there is none here: {error}")
        return

    arrays = [cupy.random.standard_normal(ELEMENTS, dtype=cupy.float32) for _ in range(ARRAYS)]
    gigabytes = sum(x.nbytes for x in arrays) / 1e9
    for count in (1, 2, 4, 8):
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
        milliseconds(cupy, arrays, streams)  # fills CuPy's pool, and loads the kernels
        best = min(milliseconds(cupy, arrays, streams) for _ in range(10))
        print(f"{count} streams: {best:.2f} ms, {gigabytes / best * 1e3:.1f} GB/s of input, both ways")
    results = enqueue(arrays, [cupy.cuda.Stream.null])
    worst = max(float(abs(x - y).max()) for x, y in zip(arrays, results, strict=True))
    print(f"largest error: {worst:.2e}, allowed: {CODEC.abs:.0e}")


if __name__ == "__main__":
    main()
