"""CuPy: arrays in and out on the current stream, in memory of CuPy's pool. Needs CuPy 13.2 or newer.

All work is asynchronous on the current stream of the array's device, same as in CuPy, so pipelines on several streams
overlap. Only what needs a number or bytes on the host synchronizes, and the check of a payload that this process did
not make. Before you use a `Compressed` on another stream than its own, record and wait for an event, same as for
every CuPy array.
"""

from ._functions import compress, decompress

__all__ = ["compress", "decompress"]
