"""What the backend does with the all-reduces of a group."""

import json
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

import torch.distributed as dist

from ...._api.compress import checked_codec, checked_seed
from ...._arguments import check_choice, checked_integer, checked_real, thread_count
from ....codecs import QSGD, Codec

_MAX = 1 << 62
_UNDERLYING = ("gloo", "nccl", "mpi")
_PLAIN = QSGD()
_OWN = ("threads", "nccl")  # each process may have its own


@dataclass(frozen=True)
class BackendOptions:
    """Which all-reduces of a group of the backend "arrcomp" are compressed, and how.

    Those of SUM and AVG of dense floating-point tensors with `minimal_size` elements or more, of a dtype that `codec`
    takes; and the layers of buckets that `register_layer` tells of. All others, and all other operations, are left to
    the backends underneath.

    Args:
        codec: for all of them; None compresses registered layers alone.
        minimal_size: the fewest elements of a tensor, or of a registered layer.
        layer_codec: of registered layers, but for the bits and bucket sizes they are registered with.
        seed: of codecs that round at random; each call, exchange and process derives its own from it.
        threads: for the codec, on the CPU; None for PyTorch's number (torch.get_num_threads()).
        fusion_nbytes: of uncompressed values in one exchange, at most: small tensors of one call go together, a large
            one takes several.
        algorithm: "scatter" or "ring", as of `all_reduce`.
        local_size: processes of a node, between which nothing is compressed, as `hierarchical_all_reduce` does it; None
            for compression between all.
        fake_ratio: the share of each compressed tensor that is reduced, from its first element on; the rest stays as
            each process has it. Below 1 results are wrong: to see what less data on the wire would gain.
        backends: those underneath, for instance "cpu:gloo,cuda:nccl"; "cpu:mpi" where PyTorch has MPI built in. None
            for Gloo on the CPU, and NCCL on CUDA where there is a GPU.
        nccl: a `torch.distributed.ProcessGroupNCCL.Options`, or None.

    Raises:
        TypeError, ValueError: an argument is not allowed.

    >>> from arrcomp import QSGD
    >>> BackendOptions(QSGD(bits=4), minimal_size=10_000).codec
    QSGD()
    """

    codec: Codec | None = None
    _: KW_ONLY
    minimal_size: int = 1024
    layer_codec: QSGD = _PLAIN
    seed: int = 0
    threads: int | None = None
    fusion_nbytes: int = 64 << 20
    algorithm: Literal["scatter", "ring"] = "scatter"
    local_size: int | None = None
    fake_ratio: float = 1.0
    backends: str | None = None
    nccl: Any = None

    def __post_init__(self) -> None:
        if self.codec is not None:
            checked_codec(self.codec)
        if not isinstance(self.layer_codec, QSGD):
            raise TypeError(f"layer_codec={self.layer_codec!r}: a QSGD is allowed")
        checked_seed(QSGD(rounding="stochastic"), self.seed)
        thread_count(self.threads)
        check_choice("algorithm", self.algorithm, ("scatter", "ring"))
        for name, least in (("minimal_size", 0), ("fusion_nbytes", 1), ("local_size", 1)):
            value = getattr(self, name)
            if value is not None or name != "local_size":
                checked_integer(name, value, least, _MAX)
        if checked_real("fake_ratio", self.fake_ratio, "a number above 0 and at most 1") > 1:
            raise ValueError(f"fake_ratio={self.fake_ratio}: a number above 0 and at most 1 is allowed")
        if self.backends is not None:
            parsed_backends(self.backends)

    def shared_config(self) -> str:
        """What all processes of a group must have alike, as JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _OWN}
        configs = {name: value.config() for name, value in values.items() if isinstance(value, Codec)}
        return json.dumps(values | configs)


def parsed_backends(text: Any) -> dict[str, str]:
    """The backend of each device.

    Raises:
        TypeError: it is no text.
        ValueError: it is not a list of devices and backends, or PyTorch was built without one of them.
    """
    allowed = "pairs of a device and a backend as in 'cpu:gloo,cuda:nccl' are allowed"
    if not isinstance(text, str):
        raise TypeError(f"backends={text!r}: {allowed}")
    pairs = [pair.strip().partition(":")[::2] for pair in text.split(",")]
    for device, backend in pairs:
        if device not in ("cpu", "cuda") or backend not in _UNDERLYING or (device, backend) == ("cpu", "nccl"):
            raise ValueError(f"backends={text!r}: {allowed}, of {', '.join(_UNDERLYING)}")
        if not dist.is_backend_available(backend):
            raise ValueError(f"backends={text!r}: this PyTorch was built without {backend}")
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"backends={text!r}: one backend for each device is allowed")
    return dict(pairs)
