"""One rank of a job that torchrun starts again: in the first attempt rank 1 is killed under the plan, within an iteration.

usage: elastic_rank.py FOLDER SERVER PROFILE    by torchrun_without_libuv.py, 2 ranks
Trains by 1F1B on a simulated GPU until there is a plan and it was followed for some steps; a DataLoader's forked worker and
a spawned process call the client as if they trained.
Output: FOLDER/ATTEMPT.RANK.json: the GPU's clock before the client started and after it ended, the steps that were trained,
statistics, the job, what the other processes found. Of an attempt that is killed, as it was before.
"""

import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import torchrun_without_libuv  # noqa: F401

import torch
import torch.distributed
import torch.utils.data
from planned_rank import Job, is_planned

from perseus import client
from perseus.adapters import torch_pipelining

STEPS_UNDER_PLAN, LIMIT = 4, 100


def use_the_client():
    """Whether a process without a client finds no client, and calls have no effect."""
    before = client.current()
    client.on_step_begin()
    client.on_instruction_begin("forward", 0, 0)
    client.on_instruction_end("forward", 0, 0)
    client.on_step_end()
    client.stop()
    return before is None and client.current() is None


def spawned(answer):
    answer.put(use_the_client())


class Found(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(use_the_client())


def found_elsewhere():
    """Results of a DataLoader's forked worker and of a spawned process."""
    batches = torch.utils.data.DataLoader(Found(), num_workers=1, multiprocessing_context="fork")
    by_worker = all(bool(found.all()) for found in batches)
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=spawned, args=(answer,))
    process.start()
    by_spawned = answer.get(timeout=120)
    process.join()
    return {"worker": by_worker, "spawned": by_spawned}


def clock_of(gpu):
    """MHz of a kernel that runs now."""
    gpu.launch(next(iter(gpu._kernels)))
    stamp = gpu.stamp()
    gpu.synchronize()
    return stamp.kernel_clock_mhz


def init_process_group(attempt):
    """In the store that torchrun gives every attempt. Gloo needs one of its own: it takes the addresses of the attempt before
    for those of this one."""
    base, _, _ = next(torch.distributed.rendezvous("env://"))
    store = torch.distributed.PrefixStore(f"attempt {attempt}", base)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    if "own" not in os.environ.get("STORES", ""):
        torch.distributed.distributed_c10d._get_default_store = lambda: base


def main(folder, server, profile):
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.set_num_threads(1)
    init_process_group(attempt)
    job = Job("1F1B", 4, folder)
    said = {"clock_before": clock_of(job.gpu), "trained": 0}
    file = Path(folder) / f"{attempt}.{job.rank}.json"

    def step():
        job.step()
        said["trained"] += 1

    torch_pipelining.install(
        job.schedule, server=server, profile=profile, report_interval_s=0.2, start_limit_s=60, plan_tolerance=-1
    )
    while said["trained"] < LIMIT:
        step()
        if job.all_agree(is_planned(client.current().statistics())):
            break
    for _ in range(STEPS_UNDER_PLAN):
        step()
    said["elsewhere"] = found_elsewhere()
    said["statistics"], said["job"] = client.current().statistics(), client.current().job
    said["wrong"] = client.current().status()["wrong"]
    file.write_text(json.dumps(said))
    torch.distributed.barrier()
    if attempt == 0:
        job.gpu.synchronize()
        if job.rank == 1:
            job.stages[0].submod.register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        try:
            while True:
                job.step()
        except RuntimeError:
            if "own" in os.environ.get("STORES", ""):
                raise  # its job ends
            signal.pause()  # as with NCCL, until torchrun ends this rank, too
    client.stop()
    said["clock_after"] = clock_of(job.gpu)
    file.write_text(json.dumps(said))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
