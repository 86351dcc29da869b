"""Layers, optimizers, schedules and checkpoints; imported as `uopc.nn`.

    from uopc import nn

    model = nn.Sequential(nn.Linear(784, 128), Tensor.relu, nn.Linear(128, 10))
    opt = nn.AdamW(model.parameters(), lr=1e-3)

Names, shapes and starting values of parameters are torch's, so state dicts go both ways.
"""

from __future__ import annotations

from uopc.frontend.nn import optim, schedules, state
from uopc.frontend.nn.attention import MultiHeadAttention
from uopc.frontend.nn.clipping import clip_grad_norm_, clip_grad_value_
from uopc.frontend.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from uopc.frontend.nn.linear import Embedding, Linear, parameter
from uopc.frontend.nn.module import Dropout, Module, Sequential
from uopc.frontend.nn.normalization import (
    BatchNorm,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    RMSNorm,
)
from uopc.frontend.nn.optim import SGD, Adam, AdamW, Optimizer, ParamGroup
from uopc.frontend.nn.scaling import LossScaler
from uopc.frontend.nn.schedules import (
    CosineLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRSchedule,
    MultiStepLR,
    StepLR,
)
from uopc.frontend.nn.state import get_parameters, get_state_dict, load, load_state_dict, save

__all__ = [
    "SGD", "Adam", "AdamW", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d",
    "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineLR",
    "Dropout", "Embedding", "ExponentialLR", "GroupNorm", "InstanceNorm", "LRSchedule", "LambdaLR",
    "LayerNorm", "Linear", "LinearLR", "LossScaler", "Module", "MultiHeadAttention", "MultiStepLR",
    "Optimizer", "ParamGroup", "RMSNorm", "Sequential", "StepLR", "clip_grad_norm_",
    "clip_grad_value_", "get_parameters", "get_state_dict", "load", "load_state_dict", "optim",
    "parameter", "save", "schedules", "state",
]  # fmt: skip
