"""CuPy: arrays in and out on the current stream, in memory of CuPy's pool. Needs CuPy 13.2 or newer.

All work is enqueued on the current stream of the array's device, as CuPy's own functions do it, so that pipelines on
several streams overlap. Nothing waits, except for what needs a number or bytes on the host, and for the verdict on a
payload that this process did not make. A `Compressed` that is used on another stream than the one it was made on needs
an event between the two, as every CuPy array does.
"""

from ._functions import compress, decompress

__all__ = ["compress", "decompress"]
