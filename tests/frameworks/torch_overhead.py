"""What the adapter adds to a computation of torch.distributed.pipelining: prints microseconds, by the process's CPU time.

usage: run.sh BUILD torch_overhead.py
A client without a server, device or plan; the least of several runs without and with it, on a stage that computes nothing.
"""

import time

import torch
import torch.distributed
from real_schedules import make_schedule

from perseus import client
from perseus.adapters import torch_pipelining

MICROBATCHES, RUNS = 500, 15


class Nothing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, tensor):
        return tensor + self.weight


def run(schedule, tensor):
    began = time.process_time()
    schedule.step(tensor, target=tensor)
    return (time.process_time() - began) / (2 * MICROBATCHES)


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    schedule, _ = make_schedule("1F1B", 0, 1, MICROBATCHES, lambda _: Nothing(), lambda _: lambda output, _: output.sum())
    tensor, without, with_it = torch.ones(MICROBATCHES, 1), [], []
    for _ in range(RUNS):
        without.append(run(schedule, tensor))
        torch_pipelining.install(schedule, device="none")
        with_it.append(run(schedule, tensor))
        torch_pipelining.uninstall(schedule)
    client.stop()
    print(f"{1e6 * (min(with_it) - min(without)):.1f} us of {1e6 * min(without):.1f} us a computation")


if __name__ == "__main__":
    main()
