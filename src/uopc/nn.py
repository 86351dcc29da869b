"""Layers, optimizers, schedules and checkpoints: `from uopc import nn`. See frontend/nn/."""

from uopc.frontend.nn import *  # noqa: F403
from uopc.frontend.nn import __all__ as __all__
