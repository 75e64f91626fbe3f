"""Prints what a disturbed run would change: the weights, the optimizer's state, and what the random generators say next."""

import hashlib
import random

import numpy as np
import torch


def digest(value):
    """The sha256 of everything in a state dict, tensors by their bytes."""
    sha = hashlib.sha256()
    _feed(sha, value)
    return sha.hexdigest()


def _feed(sha, value):
    if isinstance(value, torch.Tensor):
        sha.update(f"{value.dtype}{tuple(value.shape)}".encode())
        sha.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        for key in value:
            sha.update(repr(key).encode())
            _feed(sha, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _feed(sha, item)
    else:
        sha.update(repr(value).encode())


def report(model, *optimizers):
    print("weights", digest(model.state_dict()))
    for optimizer in optimizers:
        print("optimizer", digest(optimizer.state_dict()))
    print("torch", torch.rand(3).tolist(), torch.randint(1 << 60, (1,)).item())
    print("numpy", np.random.rand(3).tolist())
    print("random", random.random(), random.getrandbits(64))


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
