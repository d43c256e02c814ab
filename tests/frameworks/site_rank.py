"""One rank of a job of torch.distributed.pipelining under a site's limit, on a simulated GPU, until it is told to stop.

usage: site_rank.py SCHEDULE MICROBATCHES FOLDER SERVER PROFILE     with the client, until FOLDER/stop exists
       site_rank.py SCHEDULE MICROBATCHES FOLDER --steps N          the same training without Perseus and GPU
FOLDER/step<rank> has the number of steps, the client's state, its job and the process, for the test that waits for them.
Output: JSON: "losses", "weights" (a hash), "trained"; with the client "steps" (time_s, energy_j, lost_s: measured_steps.py;
at_s: their ends; state and plan of the client then), statistics, status.
"""

import hashlib
import json
import logging
import os
import sys
from pathlib import Path

import torch
import torch.distributed
import witness
from measured_steps import steps_between
from planned_rank import Job, Stage, say_and_stop
from real_schedules import V_SHAPED, keep_transfers_alive, make_schedule

from perseus import client
from perseus.adapters import torch_pipelining

SHOWN = ("state", "plan_version", "planned_iteration_time_s", "ceiling_mhz", "paced_s")


class JobWithoutGpu:
    """As planned_rank.Job: the same modules, data and optimizer."""

    def __init__(self, name, microbatches):
        self.rank, self.ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.microbatches, self.step_number, self.losses, self.gpu = microbatches, 0, [], None
        keep_transfers_alive()
        self.schedule, self.stages = make_schedule(
            name, self.rank, self.ranks, microbatches, Stage, lambda last: torch.nn.functional.mse_loss,
            example=witness.batch(0, 1)[0][:, : witness.WIDTH].contiguous() if name in V_SHAPED else None,
        )  # fmt: skip
        parameters = [parameter for stage in self.stages for parameter in stage.submod.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=0.01)

    step = Job.step


def weights_of(job):
    parameters = [parameter for stage in job.stages for parameter in stage.submod.parameters()]
    return hashlib.sha256(b"".join(parameter.detach().numpy().tobytes() for parameter in parameters)).hexdigest()


def all_agree(yes):
    votes = torch.tensor([int(yes)])
    torch.distributed.all_reduce(votes, torch.distributed.ReduceOp.MIN)
    return bool(votes)


def train_until_stopped(job, folder, options):
    torch_pipelining.install(job.schedule, report_interval_s=0.2, start_limit_s=60, plan_tolerance=-1, **options)
    stamps, shown, progress = [job.gpu.stamp()], [], folder / f"step{job.rank}"
    while not all_agree((folder / "stop").exists()):
        job.step()
        stamps.append(job.gpu.stamp())
        statistics = client.current().statistics()
        shown.append({key: statistics.get(key) for key in SHOWN})
        partial = progress.with_suffix(".partial")
        now = {"step": len(shown), "job": client.current().job, "pid": os.getpid(), **shown[-1]}
        partial.write_text(json.dumps(now), encoding="utf-8")
        partial.rename(progress)
    job.gpu.synchronize()
    steps = [
        {**step, **state, "at_s": stamp.time_s} for step, state, stamp in zip(steps_between(stamps), shown, stamps[1:])
    ]
    return {"steps": steps, "statistics": client.current().statistics(), "status": client.current().status()}


def main(name, microbatches, folder, server, profile_or_steps):
    logging.basicConfig(level=logging.INFO, format=f"%(relativeCreated)d {os.environ['RANK']} %(message)s")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    if server == "--steps":
        job, said = JobWithoutGpu(name, microbatches), {}
        for _ in range(int(profile_or_steps)):
            job.step()
    else:
        job = Job(name, microbatches, folder)
        said = train_until_stopped(job, folder, {"server": server, "profile": profile_or_steps, "job_name": "trained"})
    said.update(losses=job.losses, weights=weights_of(job), trained=job.step_number)
    say_and_stop(said)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
