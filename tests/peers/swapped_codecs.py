"""A plugin for pytest: zarr's arrays have arrcomp's codecs by default. `test_zarr.py` runs zarr's own tests with it."""

from __future__ import annotations

from typing import Any

import pytest
import zarr.core.array
from hypothesis import HealthCheck, settings
from zarr.codecs import BytesCodec

from arrcomp import Lossless
from arrcomp.stores.numcodecs import Arrcomp
from arrcomp.stores.zarr import ArrcompCodec, ArrcompCompressor

# zarr's own profiles try hundreds of examples: minutes.
settings.register_profile(
    "few",
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --codec."""
    parser.addoption("--codec", choices=("serializer", "compressor"), required=True, help="which one has format 3")


def pytest_configure(config: pytest.Config) -> None:
    """Change zarr's defaults."""
    _replace("default_compressor_v2", lambda dtype: Arrcomp())
    if config.getoption("codec") == "compressor":
        _replace("default_compressors_v3", lambda dtype: (ArrcompCompressor(),))
        return
    usual = zarr.core.array.default_serializer_v3

    def serializer(dtype: Any) -> Any:
        """arrcomp's, but for dtypes that it refuses: what is no number."""
        other = usual(dtype)
        takes = isinstance(other, BytesCodec) and Lossless().takes_numpy(dtype.to_native_dtype())
        return ArrcompCodec() if takes else other

    _replace("default_serializer_v3", serializer)
    _replace("default_compressors_v3", lambda dtype: ())


def _replace(name: str, function: Any) -> None:
    assert hasattr(zarr.core.array, name), "zarr has its defaults elsewhere"
    setattr(zarr.core.array, name, function)
