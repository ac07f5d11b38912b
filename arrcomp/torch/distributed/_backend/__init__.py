"""The backend "arrcomp" of torch.distributed: NCCL and Gloo with compressed all-reduces."""

from .environment import options_from_environment
from .group import CompressingGroup
from .options import BackendOptions
from .settings import configure, register_layer, set_quantization_bits, set_quantization_bucket_size

__all__ = [
    "BackendOptions",
    "CompressingGroup",
    "configure",
    "options_from_environment",
    "register_layer",
    "set_quantization_bits",
    "set_quantization_bucket_size",
]
