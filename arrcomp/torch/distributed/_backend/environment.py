"""The environment variables of CGX: read here, once for a group.

=========================================  =======  ====================================================================
variable                                   default  means
=========================================  =======  ====================================================================
CGX_COMPRESSION_QUANTIZATION_BITS          32       bits of a value, 1 to 8; above 8 nothing is compressed
CGX_COMPRESSION_BUCKET_SIZE                512      values of a bucket
CGX_COMPRESSION_MINIMAL_SIZE               16       the fewest elements of a tensor that is compressed
CGX_COMPRESSION_SKIP_INCOMPLETE_BUCKETS    0        1 keeps the values of a last, shorter bucket as they are
CGX_COMPRESSION_FAKE_RATIO                 1.0      the share of each tensor that is reduced, as `BackendOptions` has it
CGX_FUSION_BUFFER_SIZE_MB                  64       of values in one exchange, in MiB
CGX_INTRA_COMPRESS                         1        0 compresses between nodes alone: `BackendOptions(local_size=)`, of
                                                    LOCAL_WORLD_SIZE (torchrun) or OMPI_COMM_WORLD_LOCAL_SIZE (mpirun)
CGX_INNER_REDUCTION_TYPE                   SRA      Ring for a ring, which codes each value at every process
CGX_CROSS_REDUCTION_TYPE                   SRA      the same, between nodes, with CGX_INTRA_COMPRESS=0 (CGX: Ring)
=========================================  =======  ====================================================================
"""

import os
from collections.abc import Mapping
from typing import Literal

from ....codecs import QSGD
from .._launcher import integer_variable, local_world_size
from .options import BackendOptions

_COMPRESSION = "CGX_COMPRESSION_"
_BITS, _BUCKET, _MINIMAL, _SKIP, _RATIO = (
    _COMPRESSION + name
    for name in ("QUANTIZATION_BITS", "BUCKET_SIZE", "MINIMAL_SIZE", "SKIP_INCOMPLETE_BUCKETS", "FAKE_RATIO")
)
_FUSION, _INTRA = "CGX_FUSION_BUFFER_SIZE_MB", "CGX_INTRA_COMPRESS"
_INNER, _CROSS = "CGX_INNER_REDUCTION_TYPE", "CGX_CROSS_REDUCTION_TYPE"
_MAX = 1 << 40

_READ = (_BITS, _BUCKET, _MINIMAL, _SKIP, _RATIO, _FUSION, _INTRA, _INNER, _CROSS)
_ALGORITHMS: dict[str, Literal["scatter", "ring"]] = {"SRA": "scatter", "RING": "ring"}
_CARRIER = "the tensor's device chooses: NCCL or Gloo"
_WITHOUT_USE = {
    "CGX_INNER_COMMUNICATOR_TYPE": _CARRIER,
    "CGX_CROSS_COMMUNICATOR_TYPE": _CARRIER,
    "CGX_INTRA_BROADCAST": "all processes of a node exchange their share with other nodes, none leads",
    "CGX_REMOTE_BUF_COMPRESSION": "processes do not write into each other's memory",
    "CGX_DEBUG_ALL_TO_ALL_REDUCTION": "there is no other reduction to compare with",
    "CGX_DEBUG_DUMMY_COMPRESSION": "BackendOptions(codec=arrcomp.Lossless()) keeps every bit",
}


def options_from_environment(environ: Mapping[str, str] = os.environ) -> BackendOptions:
    """Options as CGX's environment variables have them, with CGX's defaults.

    Raises:
        ValueError: a variable has a value that is not allowed; or CGX_INTRA_COMPRESS=0, and none tells the processes of
            a node.
    """
    bits = integer_variable(environ, _BITS, 32, 1, 64)
    size, skip = integer_variable(environ, _BUCKET, 512, 16, _MAX), integer_variable(environ, _SKIP, 0, 0, 1) == 1
    within = integer_variable(environ, _INTRA, 1, 0, 1) == 1
    return BackendOptions(
        QSGD(bits=bits, bucket_size=size, skip_incomplete=skip) if bits <= 8 else None,
        minimal_size=integer_variable(environ, _MINIMAL, 16, 0, _MAX),
        layer_codec=QSGD(bucket_size=size, skip_incomplete=skip),
        fusion_nbytes=integer_variable(environ, _FUSION, 64, 1, 1 << 20) << 20,
        algorithm=_algorithm(environ, _INNER if within else _CROSS),
        local_size=None if within else local_world_size(environ),
        fake_ratio=_ratio(environ),
    )


def without_effect(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The variables of CGX that are set and change nothing, each with its reason."""
    names = [name for name in sorted(environ) if name.startswith("CGX_") and name not in _READ]
    return [f"{name} ({_WITHOUT_USE.get(name, 'CGX has no such variable')})" for name in names]


def _algorithm(environ: Mapping[str, str], name: str) -> Literal["scatter", "ring"]:
    text = environ.get(name, "SRA").strip()
    if text.upper() not in _ALGORITHMS:
        raise ValueError(f"{name}={text!r}: SRA or Ring is allowed")
    return _ALGORITHMS[text.upper()]


def _ratio(environ: Mapping[str, str]) -> float:
    text, allowed = environ.get(_RATIO, "1.0"), "a number above 0 and at most 1 is allowed"
    try:
        ratio = float(text)
    except ValueError:
        raise ValueError(f"{_RATIO}={text!r}: {allowed}") from None
    if not 0 < ratio <= 1:
        raise ValueError(f"{_RATIO}={text!r}: {allowed}")
    return ratio
