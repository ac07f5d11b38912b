"""Step functions in place of activations' derivatives, so that a backward pass needs a few bits of each input.

`arrcomp.torch.nn` and `arrcomp.jax.nn` have the activations themselves.
"""

from ._fitting import fit, squared_error
from ._functions import ACTIVATIONS, Activation, activation
from ._steps import StepFunction
from ._tables import steps_of

__all__ = ["ACTIVATIONS", "Activation", "StepFunction", "activation", "fit", "squared_error", "steps_of"]
