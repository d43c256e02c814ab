"""One rank of a job of torch.distributed.pipelining that exports its timeline with the Torch profiler.

usage: profiled_rank.py SCHEDULE MICROBATCHES FOLDER    the last stage has twice the layers; writes FOLDER/rankR.json
SCHEDULE: GPipe, whose computations PyTorch 2.6 names, or 1F1B, whose computations the modules name here.
Output: JSON: the file.
"""

import json
import sys

import torch
import torch.distributed
from real_schedules import keep_transfers_alive, make_schedule

WIDTH, LAYERS, ROWS, STEPS = 512, 8, 32, 6


class Stage(torch.nn.Module):
    def __init__(self, index, last):
        super().__init__()
        layers = LAYERS * (2 if index == last else 1)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(layers)))

    def forward(self, tensor):
        return self.layers(tensor)


def name_computations(stage, index):
    """As docs/traces.md says, around what torch calls a microbatch's forward and backward."""
    for kind, method in (("F", "forward_one_chunk"), ("B", "backward_one_chunk")):
        original = getattr(stage, method)

        def named(microbatch, *arguments, original=original, kind=kind, **more):
            with torch.profiler.record_function(f"{index}{kind}{microbatch}"):
                return original(microbatch, *arguments, **more)

        setattr(stage, method, named)


def main(name, microbatches, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    keep_transfers_alive()
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    schedule, stages = make_schedule(
        name, rank, ranks, microbatches, lambda index: Stage(index, ranks - 1), lambda last: torch.nn.functional.mse_loss
    )
    if name != "GPipe":
        name_computations(stages[0], rank)
    optimizer = torch.optim.SGD(stages[0].submod.parameters(), lr=0.01)
    file = f"{folder}/rank{rank}.json"
    rows = torch.ones(ROWS * microbatches, WIDTH)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=STEPS - 2),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(file),
    ) as profiler:
        for _ in range(STEPS):
            more = {"target": rows} if rank == ranks - 1 else {}
            schedule.step(*([rows] if rank == 0 else []), **more)
            optimizer.step()
            optimizer.zero_grad()
            torch.distributed.barrier()
            profiler.step()
    print(json.dumps({"file": file}), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
