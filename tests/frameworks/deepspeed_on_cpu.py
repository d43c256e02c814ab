"""What DeepSpeed needs on a CPU without its compiled extensions."""

import importlib
import logging
import sys
import types

from torch.distributed.elastic.agent.server import api

# Before 0.14: what its CPU accelerator imports, and a name that later PyTorch does not have.
api.log = getattr(api, "log", logging.getLogger(__name__))
for name in ("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"):
    sys.modules.setdefault(name, types.ModuleType(name))

from deepspeed.accelerator import get_accelerator  # noqa: E402


class _NoStream:
    def __init__(self, **_):
        pass


def install():
    """Call it before deepspeed.init_distributed()."""
    # Its shared memory collectives are compiled at run time; Gloo has all that is needed. (deepspeed.comm.torch is torch.)
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


def give_streams():
    """Activation checkpointing calls get_accelerator().Stream(...), which is None in DeepSpeed's CPU accelerator: it ends
    with "'NoneType' object is not callable", also without Perseus."""
    type(get_accelerator()).Stream = property(lambda _: _NoStream)
