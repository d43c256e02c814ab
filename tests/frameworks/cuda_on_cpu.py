"""Runs framework code that was written for CUDA on a CPU: tensors stay in host memory, streams and events do nothing.

Input: install() before the framework is imported. Output: torch with `device="cuda"`, Tensor.cuda() and torch.cuda as no-ops.
torch.cuda.is_available() stays False. Limits: what a framework computes in CUDA extensions cannot run.
"""

import contextlib
import importlib.machinery
import sys
from unittest.mock import MagicMock

import torch
import torch._dynamo  # it compares torch's functions with a table: before they are replaced
import torch._inductor.pattern_matcher  # it looks for triton: before the empty one is there
import torch.distributed
from torch.overrides import TorchFunctionMode

_CPU = torch.device("cpu")
_FACTORIES = ("Tensor", "FloatTensor", "HalfTensor", "BFloat16Tensor", "IntTensor", "LongTensor", "ByteTensor")


class _NoStream:
    """Stands for a stream, an event and a graph: every method does nothing."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self

    def query(self):
        return True

    def elapsed_time(self, _):
        return 0.0


def _on_cpu(value):
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return _CPU
    if isinstance(value, torch.device) and value.type == "cuda":
        return _CPU
    return value


class _CpuForCuda(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        return function(*map(_on_cpu, args), **kwargs)


def _import_without_triton():
    """`import triton` gives an empty module of version 0, whose kernels are never called."""

    def decorator(function=None, **_):
        return function if callable(function) else lambda function: function

    for name in ("triton", "triton.language"):
        module = sys.modules[name] = MagicMock(name=name, __version__="0", __path__=[])
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules["triton"].language = sys.modules["triton.language"]
    for name in ("jit", "autotune", "heuristics"):
        setattr(sys.modules["triton"], name, decorator if name == "jit" else lambda *_, **__: lambda function: function)


def install():
    # Compiling takes a compiler, and minutes.
    torch.compile = lambda model=None, **_: (lambda function: function) if model is None else model
    _import_without_triton()
    cuda = torch.cuda
    nothing = lambda *_, **__: None  # noqa: E731
    for name in ("synchronize", "empty_cache", "set_device", "reset_peak_memory_stats", "_lazy_init", "set_stream"):
        setattr(cuda, name, nothing)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        setattr(cuda, name, lambda *_, **__: 0)
    cuda._lazy_call = lambda call, **_: call()
    cuda.current_device = lambda: _CPU
    cuda.device_count = lambda: 1
    cuda.default_generators = {_CPU: torch.default_generator}
    cuda.manual_seed = cuda.manual_seed_all = torch.default_generator.manual_seed
    for module in (cuda, cuda.random):
        module.get_rng_state = lambda *_, **__: torch.get_rng_state()
        module.set_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    stream = _NoStream()
    cuda.Stream = cuda.Event = _NoStream
    cuda.current_stream = cuda.default_stream = lambda *_: stream
    cuda.stream = cuda.device = lambda *_: contextlib.nullcontext()
    cuda.nvtx.range_push = cuda.nvtx.range_pop = nothing
    if not hasattr(torch, "float8_e8m0fnu"):  # torch before 2.7: Megatron Core 0.20 names it
        torch.float8_e8m0fnu = torch.float8_e5m2
    for name in _FACTORIES:
        setattr(cuda, name, getattr(torch, name))
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    torch.nn.Module.cuda = lambda module, *_, **__: module
    type_of = torch.Tensor.type
    torch.Tensor.type = lambda tensor, *args, **options: (
        type_of(tensor, *args, **options) if args or options else "torch.cuda." + type_of(tensor).split(".")[-1]
    )
    _add_missing_collectives()
    _send_copies()
    _CpuForCuda().__enter__()


class _Done:
    def wait(self, *_):
        return True

    def is_completed(self):
        return True


@contextlib.contextmanager
def _coalesced(*_, **__):
    """Gloo cannot coalesce: the collectives inside run at once."""
    yield _Done()


def _send_copies():
    """A schedule frees what it sends and drops the handle, which is right on a CUDA stream. Gloo sends from that memory
    later, and only while the handle is there."""
    from torch.distributed import distributed_c10d

    isend, under_way = torch.distributed.isend, []

    def isend_of_a_copy(tensor, *args, **options):
        under_way[:] = [work for work in under_way if not work.is_completed()]
        work = isend(tensor.detach().clone(), *args, **options)
        if work is not None:
            under_way.append(work)
        return work

    torch.distributed.isend = distributed_c10d.isend = isend_of_a_copy


def _add_missing_collectives():
    """Gloo has no reduce_scatter of tensors: an all_reduce of a copy, of which each rank keeps its part."""

    def reduce_scatter(output, input, op=torch.distributed.ReduceOp.SUM, group=None, async_op=False):
        average = op == torch.distributed.ReduceOp.AVG
        whole = input.clone()
        torch.distributed.all_reduce(whole, torch.distributed.ReduceOp.SUM if average else op, group)
        ranks, rank = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
        output.copy_(whole.view(-1).chunk(ranks)[rank].view_as(output))
        if average:
            output /= ranks
        return _Done() if async_op else None

    torch.distributed.reduce_scatter_tensor = torch.distributed._reduce_scatter_base = reduce_scatter
    torch.distributed._coalescing_manager = _coalesced
