"""One rank of a job of torch.distributed.pipelining: trains a witnessed model for some iterations, says what ran.

usage: pipeline_rank.py SCHEDULE MICROBATCHES    with torchrun's variables in the environment
Trains three times: "without" Perseus; "recorded": the client's calls are written down; "failing": each of them raises.
Output: JSON: of each, losses, weights (a digest); if recorded, the computations, what is wrong with them, the options.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed
import witness
from torch.distributed import pipelining
from torch.distributed.pipelining import schedules

from perseus import client
from perseus.adapters import torch_pipelining

ITERATIONS = 3
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


def make_schedule(name, rank, ranks, microbatches, log):
    stages = ranks if name in SINGLE else 2 * ranks
    rank_of = {index: min(index, stages - 1 - index) if name in V_SHAPED else index % ranks for index in range(stages)}
    indices = [index for index in range(stages) if rank_of[index] == rank]
    modules = [witness.Stage(index, log) for index in indices]
    made = [
        pipelining.PipelineStage(module, index, stages, torch.device("cpu")) for module, index in zip(modules, indices)
    ]
    for stage in made:
        stage.stage_index_to_group_rank = rank_of
    loss = witness.Loss(stages - 1, log)
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


def replace_client(mode, log, options):
    """client.start() without a library: its calls go to the log, or raise."""
    names = {id(code): name for name, code in client._codes.items()}

    def note(verb):
        def call(_, code, microbatch, chunk):
            log.append((verb, names[id(code)], microbatch, chunk))

        return call

    def fail(*_):
        log.append(("failed",))
        raise RuntimeError("Perseus fails")

    def start(**given):
        options.update(given)
        if mode == "failing":
            client._set_speed = client._begin = client._end = client._step_begin = client._step_end = fail
            fail()
        client._begin, client._end = note("begin"), note("end")

    client.start = start


def train(name, mode, rank, ranks, microbatches):
    log, options, losses = [], {}, []
    schedule, stages = make_schedule(name, rank, ranks, microbatches, log)
    parameters = [parameter for stage in stages for parameter in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    if mode != "without":
        replace_client(mode, log, options)
        torch_pipelining.install(schedule)
    for step in range(ITERATIONS):
        input, target = witness.batch(step, microbatches)
        of_step = []
        arguments = [input] if any(stage.is_first for stage in stages) else []
        last = any(stage.is_last for stage in stages)
        schedule.step(*arguments, **({"target": target, "losses": of_step} if last else {}))
        optimizer.step()
        optimizer.zero_grad()
        losses += [loss.item().hex() for loss in of_step]
    weights = hashlib.sha256(b"".join(parameter.detach().numpy().tobytes() for parameter in parameters))
    said = {"losses": losses, "weights": weights.hexdigest()}
    if mode == "failing":
        said["failures"] = log.count(("failed",))
    if mode == "recorded":
        chunk_of = {index: chunk for chunk, index in enumerate(sorted(stage.stage_index for stage in stages))}
        said["computations"], said["wrong"] = witness.compared(log, chunk_of)
        said["options"] = {key: value for key, value in options.items() if key != "facts"}
    return said


def main(name, microbatches):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    keep_transfers_alive()
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    said = {mode: train(name, mode, rank, ranks, microbatches) for mode in ("without", "recorded", "failing")}
    print(json.dumps(said), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
