"""Layers, as functions, that keep less for the backward pass."""

from .linear import randomized_linear

__all__ = ["randomized_linear"]
