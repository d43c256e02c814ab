"""One rank of a job of torch.distributed.pipelining: trains a witnessed model for some iterations, says what ran.

usage: pipeline_rank.py SCHEDULE MICROBATCHES    with torchrun's variables in the environment
Trains three times: "without" Perseus; "recorded": the client's calls are written down; "failing": each of them raises.
Output: JSON: of each, losses, weights (a digest); if recorded, the computations, what is wrong with them, the options.
"""

import hashlib
import json
import sys

import torch
import torch.distributed
import witness
from real_schedules import keep_transfers_alive, make_schedule

from perseus import client
from perseus.adapters import torch_pipelining

ITERATIONS = 3


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
    schedule, stages = make_schedule(
        name, rank, ranks, microbatches, lambda index: witness.Stage(index, log), lambda last: witness.Loss(last, log)
    )
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
