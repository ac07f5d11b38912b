"""Codecs for other libraries' stores: `arrcomp.stores.zarr` and `arrcomp.stores.numcodecs`; options for HDF5."""

__all__: list[str] = []
