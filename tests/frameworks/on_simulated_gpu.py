"""Runs a training script of Megatron Core that was written for GPUs on a CPU and a simulated GPU per rank.

usage: on_simulated_gpu.py FOLDER SCRIPT [ARGUMENT...]    with torchrun's variables, PERSEUS_CUDA = libcuda-simulated.so

FOLDER is empty and the same for all ranks, which form one pipeline. Each GPTModel takes the time and energy of a stage of
data/sample_profile.csv, times $TIME_SCALE; transfers wait for the sender's GPU; after an optimizer's step the host waits for
the GPU's step before.
Output: the script's. FOLDER/steps<rank>.json: of each optimizer's step "time_s", "energy_j" of the GPU, and "lost_s", how long
the GPU had nothing to run because this machine was late.
"""

import json
import os
import runpy
import sys
from pathlib import Path

import cuda_on_cpu

cuda_on_cpu.install()

import torch  # noqa: E402
from measured_steps import steps_between  # noqa: E402
from megatron.core.models.gpt import GPTModel  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: E402

from perseus import simulated_gpu  # noqa: E402

SAMPLE = Path(__file__).parents[2] / "data" / "sample_profile.csv"


def main(folder, script):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    scale = float(os.environ.get("TIME_SCALE", "0.5"))
    gpu = simulated_gpu.SimulatedGpu(folder, rank, simulated_gpu.kernels_of(SAMPLE.read_text(), [rank], scale))
    gpu.follow_transfers()
    make, stamps = GPTModel.__init__, [gpu.stamp()]

    def make_on_gpu(model, *args, **options):
        make(model, *args, **options)
        gpu.run(model, rank)

    def end_step(*_):
        gpu.meet(ranks)  # as the norm of all gradients has the ranks do
        gpu.end_step()
        stamps.append(gpu.stamp())

    GPTModel.__init__ = make_on_gpu
    register_optimizer_step_post_hook(end_step)
    torch.cuda.synchronize = gpu.synchronize
    torch.set_num_threads(1)
    initialize = torch.distributed.init_process_group

    def init_process_group(*args, **options):
        initialize(*(args or ("gloo",)), **options)
        torch.distributed.barrier()

    torch.distributed.init_process_group = init_process_group
    runpy.run_path(script, run_name="__main__")
    gpu.synchronize()
    (Path(folder) / f"steps{rank}.json").write_text(json.dumps(steps_between(stamps)), encoding="utf-8")


if __name__ == "__main__":
    folder, sys.argv = sys.argv[1], sys.argv[2:]
    main(folder, sys.argv[0])
