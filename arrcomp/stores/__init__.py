"""Codecs for other libraries' stores: `arrcomp.stores.zarr` and `arrcomp.stores.numcodecs`."""

__all__: list[str] = []
