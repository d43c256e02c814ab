"""The schedules of torch.distributed.pipelining, made as a user makes them, for tests in any number of ranks."""

from pathlib import Path

import torch
import torch.distributed
from torch.distributed import pipelining
from torch.distributed.pipelining import schedules

V_SHAPED = ("ZBVZeroBubble", "DualPipeV")
SINGLE = ("GPipe", "1F1B")


class AllOf:
    def __init__(self, works):
        self._works = works

    def wait(self):
        for work in self._works:
            work.wait()


def keep_transfers_alive():
    """PyTorch 2.6 waits for the last transfer of a batch and drops the others, which with gloo ends them: it hangs, with
    or without Perseus. NCCL has one work for a batch."""
    original = torch.distributed.batch_isend_irecv
    torch.distributed.batch_isend_irecv = lambda operations: [AllOf(original(operations))]


def make_schedule(name, rank, ranks, microbatches, make_module, make_loss):
    """make_module(stage index), make_loss(index of the last stage). Gives the schedule and this rank's stages."""
    stages = ranks if name in SINGLE else 2 * ranks
    rank_of = {index: min(index, stages - 1 - index) if name in V_SHAPED else index % ranks for index in range(stages)}
    indices = [index for index in range(stages) if rank_of[index] == rank]
    modules = [make_module(index) for index in indices]
    made = [
        pipelining.PipelineStage(module, index, stages, torch.device("cpu")) for module, index in zip(modules, indices)
    ]
    for stage in made:
        stage.stage_index_to_group_rank = rank_of
    loss = make_loss(stages - 1)
    if name == "DualPipeV":  # of later versions; its table runs in 2.6, without overlap
        schedule = schedules._PipelineScheduleRuntime(made, microbatches, loss_fn=loss)
        schedule._load_csv(Path(__file__).parent / f"tables/dualpipev_{ranks}_ranks_{microbatches}_microbatches.csv")
        return schedule, made
    kind = schedules.get_schedule_class(name)
    if name in SINGLE:
        return kind(made[0], microbatches, loss_fn=loss), made
    schedule = kind(made, microbatches, loss_fn=loss)
    if name in V_SHAPED and not isinstance(schedule, schedules._PipelineScheduleRuntime):
        # The stages in the middle of the V hand over on their rank, which only the runtime does.
        order = schedule.pipeline_order
        schedule = schedules._PipelineScheduleRuntime(made, microbatches, loss_fn=loss)
        schedule.pipeline_order = order
        schedule._load_actions(order)
    return schedule, made
