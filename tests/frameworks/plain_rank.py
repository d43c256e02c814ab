"""One rank of a loop without a pipeline, with the adapter `plain`.

usage: plain_rank.py WRAPPER MICROBATCHES    WRAPPER: module, ddp, fsdp, compile, checkpoint, short
Trains without Perseus, with its calls recorded, and with each raising. Between iterations it evaluates; in the second
iteration of each, a forward raises, and the loop goes on with the next batch. WRAPPER short: no forward raises, and the
optimizer steps after one batch in the second iteration, as after the last batch of an epoch; another optimizer steps after
each batch. checkpoint: the backward runs each forward of the model again.
Output: JSON: of each mode, losses and weights; if recorded, the steps, the computations, what is wrong with them.
"""

import functools
import hashlib
import json
import sys

import torch
import torch.distributed
import torch.utils.checkpoint
import witness
from pipeline_rank import Refused, refuse, replace_client

from perseus import client, simulated_gpu
from perseus.adapters import plain

ITERATIONS = 4


def wrapped(wrapper, stage):
    if wrapper == "compile":
        return torch.compile(stage, backend="eager")  # inductor needs a C++ compiler
    if wrapper == "ddp":
        return torch.nn.parallel.DistributedDataParallel(stage)
    if wrapper == "fsdp":
        simulated_gpu.let_fully_shard_run_on_cpus()
        mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        return torch.distributed.fsdp.fully_shard(stage, mesh=mesh)
    return stage


def train(wrapper, mode, microbatches):
    log, options, losses, steps = [], {}, [], []
    model = wrapped(wrapper, witness.Stage(0, log))
    run = functools.partial(torch.utils.checkpoint.checkpoint, model, use_reentrant=False) if wrapper == "checkpoint" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    if mode != "without":
        replace_client(mode, log, options, steps)
        plain.install(model, microbatches)
    for iteration in range(ITERATIONS):
        input, target = witness.batch(iteration + 10 * torch.distributed.get_rank(), microbatches)
        for microbatch in range(microbatches):
            chunk = slice(2 * microbatch, 2 * microbatch + 2)
            if wrapper == "short" and iteration == 1 and microbatch == 1:
                break
            refusing = wrapper != "short" and iteration == 1 and microbatch == microbatches - 1
            hook = model.register_forward_pre_hook(refuse) if refusing else None
            try:
                loss = torch.nn.functional.mse_loss(run(input[chunk])[:, : witness.WIDTH], target[chunk])
                (loss / microbatches).backward()
                losses.append(loss.item().hex())
                other.step()
            except Refused as error:
                losses.append(str(error))
            if hook is not None:
                hook.remove()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            losses.append(model(input).sum().item().hex())
    local = [getattr(parameter.detach(), "to_local", parameter.detach)() for parameter in model.parameters()]
    weights = hashlib.sha256(b"".join(parameter.numpy().tobytes() for parameter in local))
    said = {"losses": losses, "weights": weights.hexdigest()}
    if mode == "recorded":
        said["computations"], said["wrong"] = witness.compared(log, {0: 0})
        said["options"], said["steps"] = options, steps
    return said


def main(wrapper, microbatches):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    said = {mode: train(wrapper, mode, microbatches) for mode in ("without", "recorded", "failing")}
    assert client.current() is None
    print(json.dumps(said), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
