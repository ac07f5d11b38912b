"""The environment variables of CGX, which are read once for each group.

=========================================  =======  ====================================================================
variable                                   default  meaning
=========================================  =======  ====================================================================
CGX_COMPRESSION_QUANTIZATION_BITS          32       bits of a value, 1 to 8; above 8: no compression
CGX_COMPRESSION_BUCKET_SIZE                512      values of a bucket
CGX_COMPRESSION_MINIMAL_SIZE               16       tensors with fewer elements are not compressed
CGX_COMPRESSION_SKIP_INCOMPLETE_BUCKETS    0        1: the values of a last, shorter bucket are not compressed
CGX_COMPRESSION_FAKE_RATIO                 1.0      the fraction of each tensor that is reduced: `fake_ratio`
CGX_FUSION_BUFFER_SIZE_MB                  64       uncompressed values in one exchange, in MiB
CGX_INTRA_COMPRESS                         1        0: compress only between nodes: `BackendOptions(local_size=)` from
                                                    LOCAL_WORLD_SIZE (torchrun) or OMPI_COMM_WORLD_LOCAL_SIZE (mpirun)
CGX_INNER_REDUCTION_TYPE                   SRA      Ring: a ring, which codes each value at every rank
CGX_CROSS_REDUCTION_TYPE                   SRA      the same between nodes, with CGX_INTRA_COMPRESS=0 (CGX: Ring)
=========================================  =======  ====================================================================
"""

import math
import os
from collections.abc import Mapping
from typing import Literal

from ...._arguments import wrong_value
from ....codecs import QSGD
from .._arguments import integer_variable, local_world_size
from .options import BackendOptions

_BITS, _BUCKET = "CGX_COMPRESSION_QUANTIZATION_BITS", "CGX_COMPRESSION_BUCKET_SIZE"
_MINIMAL, _SKIP = "CGX_COMPRESSION_MINIMAL_SIZE", "CGX_COMPRESSION_SKIP_INCOMPLETE_BUCKETS"
_RATIO = "CGX_COMPRESSION_FAKE_RATIO"
_FUSION, _INTRA = "CGX_FUSION_BUFFER_SIZE_MB", "CGX_INTRA_COMPRESS"
_INNER, _CROSS = "CGX_INNER_REDUCTION_TYPE", "CGX_CROSS_REDUCTION_TYPE"
_MAX = 1 << 40

_READ = (_BITS, _BUCKET, _MINIMAL, _SKIP, _RATIO, _FUSION, _INTRA, _INNER, _CROSS)
_ALGORITHMS: dict[str, Literal["scatter", "ring"]] = {"SRA": "scatter", "RING": "ring"}
_COMMUNICATOR = "the tensor's device determines it: NCCL or Gloo"
_UNUSED = {
    "CGX_INNER_COMMUNICATOR_TYPE": _COMMUNICATOR,
    "CGX_CROSS_COMMUNICATOR_TYPE": _COMMUNICATOR,
    "CGX_INTRA_BROADCAST": "all processes of a node exchange their shards with other nodes",
    "CGX_REMOTE_BUF_COMPRESSION": "processes do not write to each other's memory",
    "CGX_DEBUG_ALL_TO_ALL_REDUCTION": "there is no other reduction to compare with",
    "CGX_DEBUG_DUMMY_COMPRESSION": "BackendOptions(codec=arrcomp.Lossless()) keeps every bit",
}


def options_from_environment(environ: Mapping[str, str] = os.environ) -> BackendOptions:
    """The options that CGX's environment variables define, with CGX's defaults.

    Raises:
        ValueError: a variable has an invalid value; or CGX_INTRA_COMPRESS=0, and no variable gives the number of
            processes of a node.
    """
    bits = integer_variable(environ, _BITS, 32, 1, 64)
    size, skip = integer_variable(environ, _BUCKET, 512, 16, _MAX), integer_variable(environ, _SKIP, 0, 0, 1) == 1
    in_nodes = integer_variable(environ, _INTRA, 1, 0, 1) == 1
    return BackendOptions(
        QSGD(bits=bits, bucket_size=size, skip_incomplete=skip) if bits <= 8 else None,
        minimal_size=integer_variable(environ, _MINIMAL, 16, 0, _MAX),
        layer_codec=QSGD(bucket_size=size, skip_incomplete=skip),
        fusion_nbytes=integer_variable(environ, _FUSION, 64, 1, 1 << 20) << 20,
        algorithm=_algorithm(environ, _INNER if in_nodes else _CROSS),
        local_size=None if in_nodes else local_world_size(environ),
        fake_ratio=_ratio(environ),
    )


def without_effect(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The CGX variables that are set but have no effect, each with the reason."""
    names = [name for name in sorted(environ) if name.startswith("CGX_") and name not in _READ]
    return [f"{name} ({_UNUSED.get(name, 'CGX has no such variable')})" for name in names]


def _algorithm(environ: Mapping[str, str], name: str) -> Literal["scatter", "ring"]:
    text = environ.get(name, "SRA").strip()
    if text.upper() not in _ALGORITHMS:
        raise wrong_value(name, "SRA or Ring", text)
    return _ALGORITHMS[text.upper()]


def _ratio(environ: Mapping[str, str]) -> float:
    text = environ.get(_RATIO, "1.0")
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if not 0 < ratio <= 1:
        raise wrong_value(_RATIO, "a number above 0 and at most 1", text)
    return ratio
