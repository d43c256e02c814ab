#!/usr/bin/env python3
"""Trains a small GPT with fully_shard (FSDP), without a pipeline; Perseus plans its clocks.

usage: torchrun --nproc-per-node 2 train_fsdp.py [STEPS]     with PERSEUS_SERVER=http://host:7787
It uses torch's GPUs; without any, the CPU with simulated GPUs: PERSEUS_CUDA=.../libcuda-simulated.so.
All ranks are equally fast, so a plan saves only where a lower clock is no slower, or where a policy allows slower steps.
"""

import sys

import torch
from setting import Setting
from small_gpt import batch, loss, part
from torch.distributed.fsdp import fully_shard

from perseus import simulated_gpu
from perseus.adapters import plain

MICROBATCHES = 2


def main(steps):
    setting = Setting(ranks_differ=False, time_scale=2)
    torch.manual_seed(0)
    if not setting.on_gpus:
        simulated_gpu.let_fully_shard_run_on_cpus()
    mesh = torch.distributed.init_device_mesh(setting.device.type, (setting.ranks,))
    module = fully_shard(setting.run(part(blocks=2)), mesh=mesh)
    plain.install(module, microbatches=MICROBATCHES, facts={"model": "small-gpt"})  # all that Perseus needs
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)

    for step in range(steps):
        for microbatch in range(MICROBATCHES):
            input, target = batch((step * MICROBATCHES + microbatch) * setting.ranks + setting.rank, 8, setting.device)
            mean = loss(module(input), target)
            (mean / MICROBATCHES).backward()
        optimizer.step()
        optimizer.zero_grad()
        if setting.rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {mean.item():.3f}", flush=True)
        if setting.end_step():
            break
    setting.say_what_was_saved()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
