"""Options of the backend "arrcomp"."""

import json
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

import torch.distributed as dist

from ...._api.compress import checked_codec, checked_seed
from ...._arguments import check_choice, checked_integer, checked_real, shown, thread_count, wrong_type, wrong_value
from ....codecs import QSGD, Codec

_MAX = 1 << 62
_UNDERLYING = ("gloo", "nccl", "mpi")
_PLAIN = QSGD()


@dataclass(frozen=True)
class BackendOptions:
    """Options of a group of the backend "arrcomp": what is compressed, and how.

    All-reduces with SUM and AVG are compressed for dense floating-point tensors with `minimal_size` elements and a
    dtype that `codec` supports, and for layers of `register_layer`. With `all_to_all_codec`, all-to-alls of one tensor
    (`all_to_all_single`) are compressed too. The underlying backends do everything else.

    Args:
        codec: for these tensors; None to compress only registered layers.
        minimal_size: tensors and registered layers with fewer elements are not compressed.
        layer_codec: for registered layers, which replace its bits and bucket size.
        seed: for stochastic rounding; calls, exchanges and ranks derive their own from it.
        threads: CPU threads for the codec; None for PyTorch's number (torch.get_num_threads()).
        fusion_nbytes: the most bytes of uncompressed values in one exchange: small tensors of one call are exchanged
            together, a large one in several exchanges.
        algorithm: "scatter" or "ring", same as in `all_reduce`.
        local_size: processes of a node, within which nothing is compressed (see `hierarchical_all_reduce`); None to
            compress between all processes.
        fake_ratio: the fraction of each compressed tensor that is reduced, from its first element; the rest does not
            change. Below 1 results are wrong: it only measures what less communication would gain.
        all_to_all_codec: for all-to-alls of dense floating-point tensors of any size with a dtype that it supports,
            same as in `all_to_all`; None to compress none, as not all that they carry is as tolerant as gradients.
            Integers, such as indices, are never compressed.
        backends: the underlying backends, for instance "cpu:gloo,cuda:nccl", or "cpu:mpi" if PyTorch was built with
            MPI. None for Gloo on the CPU, and NCCL on CUDA if there is a GPU.
        nccl: a `torch.distributed.ProcessGroupNCCL.Options`, or None.

    Raises:
        TypeError, ValueError: an argument is invalid.

    >>> from arrcomp import QSGD
    >>> BackendOptions(QSGD(bits=4), minimal_size=10_000).codec
    QSGD(bits=4)
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
    all_to_all_codec: Codec | None = None
    backends: str | None = None
    nccl: Any = None

    def __post_init__(self) -> None:
        for codec in (self.codec, self.all_to_all_codec):
            if codec is not None:
                checked_codec(codec)
        if not isinstance(self.layer_codec, QSGD):
            raise TypeError(f"layer_codec: expected a QSGD, got {shown(self.layer_codec)}")
        checked_seed(QSGD(rounding="stochastic"), self.seed)
        thread_count(self.threads)
        check_choice("algorithm", self.algorithm, ("scatter", "ring"))
        for name, least in (("minimal_size", 0), ("fusion_nbytes", 1), ("local_size", 1)):
            value = getattr(self, name)
            if value is not None or name != "local_size":
                checked_integer(name, value, least, _MAX)
        if checked_real("fake_ratio", self.fake_ratio, "a number above 0 and at most 1") > 1:
            raise wrong_value("fake_ratio", "a number above 0 and at most 1", self.fake_ratio)
        if self.backends is not None:
            parsed_backends(self.backends)

    def shared_config(self) -> str:
        """The options that all ranks of a group must share, as JSON."""
        names = [field.name for field in fields(self) if field.name not in ("threads", "nccl")]
        values = {name: getattr(self, name) for name in names}
        configs = {name: value.config() for name, value in values.items() if isinstance(value, Codec)}
        return json.dumps(values | configs)


def parsed_backends(text: Any) -> dict[str, str]:
    """The backend of each device."""
    expected = f"pairs of a device and a backend ({', '.join(_UNDERLYING)}), such as 'cpu:gloo,cuda:nccl'"
    if not isinstance(text, str):
        raise wrong_type("backends", expected, text)
    pairs = [pair.strip().partition(":")[::2] for pair in text.split(",")]
    for device, backend in pairs:
        if device not in ("cpu", "cuda") or backend not in _UNDERLYING or (device, backend) == ("cpu", "nccl"):
            raise wrong_value("backends", expected, text)
        if not dist.is_backend_available(backend):
            raise wrong_value("backends", f"backends that PyTorch was built with ({backend} is not one)", text)
    if len(dict(pairs)) < len(pairs):
        raise wrong_value("backends", "one backend for each device", text)
    return dict(pairs)
