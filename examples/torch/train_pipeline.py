#!/usr/bin/env python3
"""Trains a small GPT with torch.distributed.pipelining; Perseus plans its clocks.

usage: torchrun --nproc-per-node 2 train_pipeline.py [STEPS]     with PERSEUS_SERVER=http://host:7787
It uses torch's GPUs; without any, the CPU with simulated GPUs: PERSEUS_CUDA=.../libcuda-simulated.so.
"""

import sys

import torch
from setting import Setting
from small_gpt import batch, loss, part
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from perseus.adapters import torch_pipelining

MICROBATCHES = 8


def main(steps):
    setting = Setting()
    torch.manual_seed(setting.rank)
    is_first, is_last = setting.rank == 0, setting.rank == setting.ranks - 1
    module = setting.run(part(blocks=2, is_first=is_first, is_last=is_last))
    stage = PipelineStage(module, setting.rank, setting.ranks, setting.device)
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=loss)
    torch_pipelining.install(schedule, facts={"model": "small-gpt"})  # all that Perseus needs
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)

    for step in range(steps):
        input, target = batch(step, 4 * MICROBATCHES, setting.device)
        losses = []
        arguments = [input] if is_first else []
        schedule.step(*arguments, **({"target": target, "losses": losses} if is_last else {}))
        optimizer.step()
        optimizer.zero_grad()
        if is_last and step % 50 == 0:
            print(f"step {step}: loss {torch.stack(losses).mean():.3f}", flush=True)
        if setting.end_step():
            break
    setting.say_what_was_saved()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
