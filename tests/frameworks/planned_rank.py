"""One rank of a job of torch.distributed.pipelining on simulated GPUs: trains without Perseus, then with it until there is a
plan, then under the plan.

usage: planned_rank.py SCHEDULE MICROBATCHES FOLDER SERVER PROFILE    PROFILE: the name of one that the server has, or ""
Output: JSON: "without" and "planned", a list of steps each (measured_steps.py); iterations until the plan; statistics.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed
import witness
from measured_steps import steps_between
from real_schedules import V_SHAPED, make_schedule

from perseus import client, simulated_gpu
from perseus.adapters import torch_pipelining

MEASURED, LIMIT = 8, 400
SAMPLE = Path(__file__).parents[2] / "data" / "sample_profile.csv"
SPLIT = ("InterleavedZeroBubble", *V_SHAPED)


class Stage(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        torch.manual_seed(index)
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8))

    def forward(self, tensor):
        return self.layers(tensor)


class Job:
    def __init__(self, name, microbatches, folder):
        self.rank, self.ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.microbatches = microbatches
        self.schedule, self.stages = make_schedule(
            name, self.rank, self.ranks, microbatches, Stage, lambda last: torch.nn.functional.mse_loss,
            example=witness.batch(0, 1)[0][:, : witness.WIDTH].contiguous() if name in V_SHAPED else None,
        )  # fmt: skip
        indices = [stage.stage_index for stage in self.stages]
        scale = float(os.environ.get("TIME_SCALE", "0.5")) / len(indices)
        kernels = simulated_gpu.kernels_of(SAMPLE.read_text(), indices, scale)
        self.gpu = simulated_gpu.SimulatedGpu(folder, self.rank, kernels)
        self.gpu.follow_transfers()
        for stage in self.stages:
            self.gpu.run(stage.submod, stage.stage_index, split=name.removesuffix("@runtime") in SPLIT)
        parameters = [parameter for stage in self.stages for parameter in stage.submod.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=0.01)
        self.step_number, self.losses = 0, []
        torch.distributed.barrier()

    def step(self):
        input, target = witness.batch(self.step_number, self.microbatches)
        self.step_number += 1
        arguments = [input[:, : witness.WIDTH].contiguous()] if any(stage.is_first for stage in self.stages) else []
        last = any(stage.is_last for stage in self.stages)
        losses = []
        self.schedule.step(*arguments, **({"target": target, "losses": losses} if last else {}))
        self.losses += [loss.item().hex() for loss in losses]
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.gpu is not None:
            self.gpu.meet(self.ranks)  # as the norm of all gradients does
            self.gpu.end_step()

    def measured(self, steps):
        stamps = [self.gpu.stamp()]
        for _ in range(steps):
            self.step()
            stamps.append(self.gpu.stamp())
        self.gpu.synchronize()
        return steps_between(stamps)

    def all_agree(self, yes):
        votes = torch.tensor([int(yes)])
        torch.distributed.all_reduce(votes, torch.distributed.ReduceOp.MIN)
        return bool(votes)


def is_planned(state):
    return state.get("state") == "planned" and state["iteration"] > state["plan_from_iteration"]


def say_and_stop(said):
    """At the end of a job, on all of its ranks."""
    torch.distributed.barrier()
    print(json.dumps(said), flush=True)
    client.stop()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main(name, microbatches, folder, server, profile):
    logging.basicConfig(level=logging.INFO, format=f"%(relativeCreated)d {os.environ['RANK']} %(message)s")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    job = Job(name, microbatches, folder)
    job.step()
    without = job.measured(MEASURED)
    torch_pipelining.install(
        job.schedule, server=server, profile=profile or None, report_interval_s=0.2, start_limit_s=60, facts={"model": name}
    )
    began, steps = time.monotonic(), 0
    while steps < LIMIT:
        job.step()
        steps += 1
        if job.all_agree(is_planned(client.current().statistics())):
            break
        if steps % 20 == 0:
            statistics = client.current().statistics()
            log = {key: statistics[key] for key in ("state", "iteration", "plan_version", "last_iteration_time_s")}
            print(job.rank, steps, log, file=sys.stderr, flush=True)
    said = {"without": without, "until_plan": steps, "until_plan_s": time.monotonic() - began}
    job.step()
    said["planned"] = job.measured(MEASURED)
    said["statistics"] = client.current().statistics()
    said["status"] = client.current().status()
    said["job"] = client.current().job
    say_and_stop(said)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:6])
