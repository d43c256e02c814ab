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

    def batch_isend_irecv(operations):
        # To open connections, PyTorch 2.9 sends 8 bytes, receives 4, and sends to itself in a V: gloo refuses both.
        others = [operation for operation in operations if operation.peer != torch.distributed.get_rank()]
        for operation in others:
            if operation.op is torch.distributed.isend and operation.tensor.dtype == torch.int64:
                operation.tensor = operation.tensor.float()
        return [AllOf(original(others) if others else [])]

    torch.distributed.batch_isend_irecv = batch_isend_irecv


def make_schedule(name, rank, ranks, microbatches, make_module, make_loss, group=None, example=None):
    """make_module(stage index), make_loss(index of the last stage). Gives the schedule and this rank's stages. A name that
    ends in "@runtime": the schedule's table, run by _PipelineScheduleRuntime. example: what every stage gets and gives;
    without it, stages exchange shapes, which PyTorch 2.6 cannot do in a V of more than two ranks. Versions that run the stages
    to infer shapes do not need it."""
    if hasattr(pipelining.PipelineStage, "_forward_metadata_inference"):
        example = None
    name, runtime = name.removesuffix("@runtime"), name.endswith("@runtime")
    stages = ranks if name in SINGLE else 2 * ranks
    rank_of = {index: min(index, stages - 1 - index) if name in V_SHAPED else index % ranks for index in range(stages)}
    indices = [index for index in range(stages) if rank_of[index] == rank]
    modules = [make_module(index) for index in indices]
    made = [
        pipelining.PipelineStage(
            module, index, stages, torch.device("cpu"), input_args=example, output_args=example, group=group
        )
        for module, index in zip(modules, indices)
    ]
    for stage in made:
        stage.stage_index_to_group_rank = rank_of
    loss = make_loss(stages - 1)
    if name == "DualPipeV" and not hasattr(schedules, "ScheduleDualPipeV"):  # its table runs in 2.6, without overlap
        schedule = schedules._PipelineScheduleRuntime(made, microbatches, loss_fn=loss)
        schedule._load_csv(Path(__file__).parent / f"tables/dualpipev_{ranks}_ranks_{microbatches}_microbatches.csv")
        return schedule, made
    kind = schedules.get_schedule_class(name)
    if name in SINGLE:
        return kind(made[0], microbatches, loss_fn=loss), made
    schedule = kind(made, microbatches, loss_fn=loss)
    if (runtime or name in V_SHAPED) and not isinstance(schedule, schedules._PipelineScheduleRuntime):
        # The stages in the middle of the V hand over on their rank, which only the runtime does.
        order = schedule.pipeline_order
        schedule = schedules._PipelineScheduleRuntime(made, microbatches, loss_fn=loss)
        schedule.pipeline_order = order
        (getattr(schedule, "_load_actions", None) or schedule._prepare_schedule_with_comms)(order)  # 2.6, later versions
    return schedule, made
