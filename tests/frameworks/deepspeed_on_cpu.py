"""What DeepSpeed needs on a CPU without its compiled extensions."""

import importlib.util
import logging
import sys
import types
from pathlib import Path

import numpy
from torch.distributed.elastic.agent.server import api

version = Path(importlib.util.find_spec("deepspeed").origin).parents[1].joinpath("version.txt").read_text().split(".")
if tuple(map(int, version[:3])) < (0, 14, 1):
    # What its CPU accelerator imports, and names that PyTorch and NumPy do not have any more.
    for name in ("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"):
        sys.modules.setdefault(name, types.ModuleType(name))
    api.log, api._get_socket_with_port, numpy.BUFSIZE = logging.getLogger(__name__), None, 8192

# DeepSpeed 0.19.6 declares an operator with list[int], which PyTorch before 2.7 does not know.
sys.modules["torch._library.infer_schema"].SUPPORTED_PARAM_TYPES.setdefault(list[int], "SymInt[]")

from deepspeed.accelerator import get_accelerator  # noqa: E402


class _NoStream:
    def __init__(self, **_):
        pass


def install():
    """Call it before deepspeed.init_distributed()."""
    # Collectives that are compiled at run time; Gloo has all that is needed. (The attribute deepspeed.comm.torch is torch.)
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    importlib.import_module("deepspeed.comm.ccl").build_ccl_op = lambda: None


def give_streams():
    """Activation checkpointing calls get_accelerator().Stream(...), which is None in DeepSpeed's CPU accelerator: it ends
    with "'NoneType' object is not callable", also without Perseus."""
    type(get_accelerator()).Stream = property(lambda _: _NoStream)
