"""Simulates a GPU for a training process without one: torch computes on the CPU, and the simulated GPU takes the time and
energy of a profile for each computation.

    gpu = simulated_gpu.SimulatedGpu(folder, rank, simulated_gpu.kernels_of(profile_csv, stages=[0], time_scale=0.5))
    gpu.run(module, stage=0)     # the module's forward and backward launch kernels
    gpu.follow_transfers()       # the kernels wait for those of other ranks, as with NCCL

This is for tests and examples, not for training.

Input:   a profile (stage,instruction,frequency,time,energy); a backward may run in two halves.
Output:  a device that perseus.client uses like one of torch.cuda: kernels run asynchronously, and clocks act on them.
Errors:  SimulationFailed with the function and its error code.
Threads: the calling thread, and one that receives messages of other ranks.
Source:  docs/simulated_gpu.md.
"""

import contextlib
import csv
import ctypes
import io
import os
import socket
import struct
import sys
import threading
from ctypes import byref, c_char_p, c_double, c_int, c_uint, c_uint64, c_void_p
from pathlib import Path

from perseus import client

_HALVES = ("input_gradient", "weight_gradient")


class SimulationFailed(Exception):
    pass


class Stamp(ctypes.Structure):
    """Device time and energy of the GPU at the moment when the stream reaches the stamp."""

    _fields_ = [
        ("time_s", c_double),
        ("energy_j", c_double),
        ("start_s", c_double),
        ("end_s", c_double),
        ("kernel_energy_j", c_double),
        ("kernel_clock_mhz", c_int),
        ("made_up_s", c_double),
        ("lost_s", c_double),
        ("starved_s", c_double),
    ]


class Record(ctypes.Structure):
    """What a GPU's file has recorded: energy until a moment of the recent past, and the limit and the clock of now."""

    _fields_ = [
        ("energy_j", c_double),
        ("remembered_from_s", c_double),
        ("power_limit_w", c_double),
        ("clock_mhz", c_int),
        ("locked", c_int),
    ]


def read(path, at_s):
    """Reads a GPU's file from any process: a meter that asks neither the client nor the server. at_s: of time.monotonic(); the
    energy is right if remembered_from_s is not later."""
    record = Record()
    code = _load().perseus_simulated_read_gpu(c_char_p(str(path).encode()), c_double(at_s), byref(record))
    if code != 0:
        raise SimulationFailed(f"perseus_simulated_read_gpu: {path}: CUDA error {code}")
    return record


def kernels_of(profile, stages, time_scale=1.0):
    """Returns {"forward.2": {MHz: (s, W)}, ...} of these stages. A profile with fewer stages is repeated. A backward is two
    kernels, each with half of its time and energy."""
    rows = list(csv.DictReader(io.StringIO(profile)))
    known = 1 + max(int(row["stage"]) for row in rows)
    kernels = {}
    for stage in stages:
        for row in rows:
            if int(row["stage"]) != stage % known:
                continue
            time_s, energy_j = float(row["time"]), float(row["energy"])
            names = _HALVES if row["instruction"] == "backward" else (row["instruction"],)
            for name in names:
                clocks = kernels.setdefault(f"{name}.{stage}", {})
                clocks[int(row["frequency"])] = (time_scale * time_s / len(names), energy_j / time_s)
    return kernels


def _load():
    path = os.environ.get("PERSEUS_CUDA")
    if not path:
        raise SimulationFailed("PERSEUS_CUDA must name libcuda-simulated.so")
    return ctypes.CDLL(path)


def let_fully_shard_run_on_cpus():
    """Adds functions of streams that fully_shard of PyTorch 2.6 calls and torch.cpu lacks; on a CPU they do nothing."""
    import torch

    if not hasattr(torch.cpu.Stream, "record_event"):
        torch.cpu.Stream.record_event = lambda stream, event=None: event or torch.cpu.Event()
        torch.cpu.Stream.wait_event = lambda stream, event: None


class SimulatedGpu:
    def __init__(self, folder, rank, kernels, blocking_power_w=90.0, switch_latency_s=0.004):
        self.path, self._folder, self._rank = str(Path(folder) / f"gpu{rank}"), Path(folder), rank
        self._library = _load()
        lines = [f"blocking_power_w {blocking_power_w}", f"switch_latency_s {switch_latency_s}"]
        for kernel, clocks in kernels.items():
            lines += [f"{kernel} {mhz} {time_s!r} {power_w!r}" for mhz, (time_s, power_w) in clocks.items()]
        if not Path(self.path).exists():  # a process that replaces an ended one reuses its GPU
            self._call("perseus_simulated_make_gpu", c_char_p(self.path.encode()), c_char_p("\n".join(lines).encode()))
        os.environ["PERSEUS_SIMULATED_GPUS"] = self.path
        self._context, module, self._stream = c_void_p(), c_void_p(), c_void_p()
        self._call("cuInit", c_uint(0))
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), c_int(0))
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuModuleLoadData", byref(module), c_char_p(b"any"))
        self._call("cuStreamCreate", byref(self._stream), c_uint(1))
        self._kernels = {}
        for kernel in kernels:
            function = c_void_p()
            self._call("cuModuleGetFunction", byref(function), module, c_char_p(kernel.encode()))
            self._kernels[kernel] = function
        self._steps = []
        self._sent, self._awaited, self._peers, self._socket = {}, {}, {}, None
        client._note_torch = self._note

    # The functions of torch.cuda that the client calls.

    def _note(self, options):
        options.setdefault("device", f"simulated:{self.path}")
        return self, 0, self._stream.value

    @contextlib.contextmanager
    def device(self, _):
        self._call("cuCtxSetCurrent", self._context)
        yield

    # Kernels.

    def launch(self, kernel):
        one = c_uint(1)
        function = self._kernels[kernel]
        self._call("cuLaunchKernel", function, one, one, one, one, one, one, c_uint(0), self._stream, None, None)

    def run(self, module, stage, split=False):
        """Makes the module's forward and backward take the time and energy of that stage. split: the gradients of the
        weights may be computed at another time than the gradient of the input."""
        import torch

        class Backward(torch.autograd.Function):
            @staticmethod
            def forward(ctx, tensor):
                return tensor.clone()  # pipelining detaches its outputs in place, which a view does not support

            @staticmethod
            def backward(ctx, gradient):
                self.launch(f"input_gradient.{stage}")
                if not split:
                    self.launch(f"weight_gradient.{stage}")
                return gradient

        def after_forward(module, arguments, output):
            self.launch(f"forward.{stage}")
            return Backward.apply(output) if torch.is_grad_enabled() else output

        module.register_forward_hook(after_forward)
        if split:
            weight = next(parameter for parameter in module.parameters() if parameter.requires_grad)
            weight.register_hook(lambda gradient: self.launch(f"weight_gradient.{stage}"))

    def stamp(self):
        """Enqueues a stamp on the stream; its values are valid after synchronize()."""
        stamp = Stamp()
        self._call("perseus_simulated_stream_stamp", self._stream, byref(stamp))
        return stamp

    def synchronize(self):
        self._call("cuStreamSynchronize", self._stream)

    def end_step(self, ahead=1):
        """Waits until the host is at most `ahead` steps ahead of the GPU; call it after each step."""
        event = c_void_p()
        self._call("cuEventCreate", byref(event), c_uint(2))
        self._call("cuEventRecord", event, self._stream)
        self._steps.append(event)
        while len(self._steps) > ahead:
            oldest = self._steps.pop(0)
            self._call("cuEventSynchronize", oldest)
            self._call("cuEventDestroy_v2", oldest)

    # Other ranks.

    def follow_transfers(self):
        """Replaces torch.distributed.batch_isend_irecv: a receive makes the stream wait for the sender's GPU.

        It also keeps the transfers alive: PyTorch 2.6 waits for the last one of a batch and drops the others, and gloo
        ends dropped transfers."""
        import torch.distributed

        self._listen()
        original = torch.distributed.batch_isend_irecv

        def batch_isend_irecv(operations):
            awaited = []
            for operation in operations:
                if operation.op is torch.distributed.isend:
                    self.send(operation.peer)
                else:
                    awaited.append(self._next(self._awaited, operation.peer, self._rank))
            return [_Transfers(self, original(operations), awaited)]

        torch.distributed.batch_isend_irecv = batch_isend_irecv

    def meet(self, ranks):
        """Makes the streams of all ranks wait until the last one gets here."""
        self._listen()
        if self._rank == 0:
            for peer in range(1, ranks):
                self.wait(self._next(self._awaited, peer, 0))
            for peer in range(1, ranks):
                self.send(peer)
        else:
            self.send(0)
            self.wait(self._next(self._awaited, 0, self._rank))

    def send(self, peer):
        self._listen()
        if peer not in self._peers:
            self._peers[peer] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._peers[peer].connect(str(self._folder / f"messages{peer}"))
        message = self._next(self._sent, self._rank, peer)
        descriptor = c_int(self._peers[peer].fileno())
        self._call("perseus_simulated_stream_send", self._stream, descriptor, c_uint64(message))

    def wait(self, message):
        self._call("perseus_simulated_stream_await", self._stream, c_uint64(message), c_double(0))

    @staticmethod
    def _next(counts, sender, receiver):
        counts[sender, receiver] = counts.get((sender, receiver), 0) + 1
        return sender << 48 | receiver << 32 | counts[sender, receiver]

    def _listen(self):
        if self._socket is not None:
            return
        sys.setswitchinterval(0.0005)  # the receiving thread must not wait long for the computing thread
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        address = self._folder / f"messages{self._rank}"
        if address.exists():
            address.unlink()
        self._socket.bind(str(address))
        threading.Thread(target=self._receive, name="simulated-gpu", daemon=True).start()

    def _receive(self):
        while True:
            message, time_s = struct.unpack("Qd", self._socket.recv(16))
            self._call("perseus_simulated_deliver", self._context, c_uint64(message), c_double(time_s))

    def _call(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise SimulationFailed(f"{name}: CUDA error {code}")


class _Transfers:
    def __init__(self, gpu, works, messages):
        self._gpu, self._works, self._messages = gpu, works, messages

    def wait(self):
        while self._messages:
            self._gpu.wait(self._messages.pop(0))
        for work in self._works:
            work.wait()
