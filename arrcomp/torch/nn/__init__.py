"""Layers that keep less for the backward pass, and how a model gets them."""

from .convert import map_modules

__all__ = ["map_modules"]
