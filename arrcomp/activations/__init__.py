"""Activations whose backward pass needs a few bits of each input: what their derivatives become, for all frameworks.

`arrcomp.torch.nn` and `arrcomp.jax.nn` have the activations themselves.
"""

from .fitting import fit, squared_error
from .functions import ACTIVATIONS, Activation, activation
from .steps import StepFunction
from .tables import steps_of

__all__ = ["ACTIVATIONS", "Activation", "StepFunction", "activation", "fit", "squared_error", "steps_of"]
