"""torchtitan 0.1 on CPUs with PyTorch 2.6: what it takes from a GPU's module, and packages that it imports and a run of
generated data does not need.

    import torchtitan_on_cpu
    torchtitan_on_cpu.install()     # before torchtitan is imported
"""

import sys
import types
from unittest import mock

import torch
import torch.utils.data

_UNUSED = ("datasets", "datasets.distributed", "tiktoken", "tiktoken.load", "tyro", "torch.utils.tensorboard")
_GIB = 2**30


def install():
    torch._utils._get_available_device_type = lambda: "cpu"
    torch.cpu.get_device_name = lambda *_: "cpu"
    torch.cpu.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=_GIB)
    torch.cpu.memory_stats = lambda *_: {}
    torch.cpu.reset_peak_memory_stats = torch.cpu.empty_cache = lambda *_: None
    for name in _UNUSED:
        sys.modules[name] = mock.MagicMock(name=name)
    for name in ("torchdata", "torchdata.stateful_dataloader"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torchdata.stateful_dataloader"].StatefulDataLoader = torch.utils.data.DataLoader
    barrier = torch.distributed.barrier
    torch.distributed.barrier = lambda *args, device_ids=None, **more: barrier(*args, **more)  # Gloo takes no device_ids
