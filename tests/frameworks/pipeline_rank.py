"""One rank of a job of torch.distributed.pipelining: trains an instrumented model for some iterations, prints its
computations.

usage: pipeline_rank.py SCHEDULE MICROBATCHES FEATURE... [MODE...]    with torchrun's variables in the environment
FEATURES: accumulate: the optimizer steps after every second iteration; evaluate: another schedule, without a loss, runs the
same modules between iterations; eval: the schedule's own eval() does; ddp, fsdp: a stage has two ranks; compile: stages go
through torch.compile without a compiler; inductor: the layers of a stage are compiled to C++; raise-forward, raise-backward,
raise-loss: the second iteration raises, in microbatch 1 of a job of one rank; kill-helper: there is a simulated GPU, and the
process that sets its clock is killed after the first iteration.
MODES: train once each: "without" Perseus; "recorded": the client's calls are recorded; "failing": each of them raises;
"real": with the library, and the test's environment (an unreachable server, a file that is no library).
Output: JSON: of each mode, losses, weights (a digest); if recorded, the computations, what is wrong with them, the options.
"""

import ctypes
import hashlib
import json
import os
import signal
import sys
import tempfile

import torch
import torch.distributed
import witness
from real_schedules import V_SHAPED, keep_transfers_alive, make_schedule

from perseus import client, library, simulated_gpu
from perseus.adapters import torch_pipelining

ITERATIONS = 3
MODES = ("without", "recorded", "failing", "real")


def replace_client(mode, log, options, steps=None):
    """client.start() without a library: its calls go to the log, or raise. As in the library, evaluation is left alone. steps:
    a list that gets the kind of each step."""
    names = {id(code): name for name, code in client._codes.items()}
    kinds = []

    def note(verb):
        def call(_, code, microbatch, chunk):
            if kinds == [library.TRAIN]:
                log.append((verb, names[id(code)], microbatch, chunk))

        return call

    def fail(*_):
        log.append(("failed",))
        raise ctypes.ArgumentError("Perseus fails")

    def begin_step(_, kind):
        kinds[:] = [kind]  # as in the library, it ends the one before
        if steps is not None:
            steps.append("train" if kind == library.TRAIN else "evaluate")

    def start(**given):
        options.update(given)
        if mode == "failing":
            client._set_speed = client._begin = client._end = client._step_begin = client._step_end = fail
            client._step_begin_of = fail
            fail()
        client._begin, client._end = note("begin"), note("end")
        client._step_begin, client._step_end = begin_step, lambda _: kinds.clear()
        client._step_begin_of = lambda handle, kind, _: begin_step(handle, kind)

    client.start = start


class Pipelines:
    """Where this rank is: a pipeline of all ranks, or with replicas of every second one."""

    def __init__(self, features):
        world, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
        self.replicas = 2 if {"ddp", "fsdp"} & set(features) else 1
        self.ranks, self.rank, self.replica = world // self.replicas, rank // self.replicas, rank % self.replicas
        self.group = self.replica_group = None
        if self.replicas > 1:
            mesh = torch.distributed.init_device_mesh("cpu", (self.ranks, self.replicas), mesh_dim_names=("pp", "dp"))
            self.group, self.replica_group, self.mesh = mesh["pp"].get_group(), mesh["dp"].get_group(), mesh["dp"]

    def module(self, index, log, features):
        stage = witness.Stage(index, log, compiled="inductor" in features)
        if "compile" in features:
            stage = torch.compile(stage, backend="eager")  # which calls the witness as the model does
        if "ddp" in features:
            return torch.nn.parallel.DistributedDataParallel(stage, process_group=self.replica_group)
        if "fsdp" in features:
            simulated_gpu.let_fully_shard_run_on_cpus()
            return torch.distributed.fsdp.fully_shard(stage, mesh=self.mesh)
        return stage


def evaluate(place, stages, microbatches, input):
    """By another schedule of the same modules, without a loss: of those of 2.6, which have no eval(), only GPipe can."""
    modules = {stage.stage_index: stage.submod for stage in stages}
    schedule, _ = make_schedule("GPipe", place.rank, place.ranks, microbatches, modules.get, lambda _: None, place.group)
    torch_pipelining.install(schedule)  # as a user might
    with torch.no_grad():
        return schedule.step(*([input] if any(stage.is_first for stage in stages) else []))


class Refused(Exception):
    """What a stage raises."""


def refuse(*_):
    raise Refused("microbatch 1 is refused")


def raising(features, stages, schedule):
    """Has microbatch 1 of the next iteration raise; gives what takes that back."""
    module, (feature,) = stages[0].submod, features
    seen = []

    def refuse_second(*_):
        seen.append(1)
        if len(seen) == 2:
            refuse()

    if feature == "raise-forward":
        return module.register_forward_pre_hook(refuse_second).remove
    if feature == "raise-backward":
        return module.second.register_hook(refuse_second).remove
    loss, schedule._loss_fn = schedule._loss_fn, lambda *given: refuse_second() or loss(*given)
    return lambda: setattr(schedule, "_loss_fn", loss)


def error_chain(error):
    return [] if error is None else [f"{type(error).__name__}: {error}", *error_chain(error.__cause__)]


def train(name, mode, place, microbatches, features):
    log, options, losses = [], {}, []
    schedule, stages = make_schedule(
        name, place.rank, place.ranks, microbatches, lambda index: place.module(index, log, features),
        lambda last: witness.Loss(last, log), place.group, witness.batch(0, 1)[0] if name in V_SHAPED else None,
    )  # fmt: skip
    witness.ignore_metadata_inference(stages, log)
    parameters = [parameter for stage in stages for parameter in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    if mode != "without":
        if mode != "real":
            replace_client(mode, log, options)
        folder = tempfile.mkdtemp(prefix="perseus_frameworks.")
        device = None
        if "kill-helper" in features:
            device = f"simulated:{simulated_gpu.SimulatedGpu(folder, place.rank, {'any': {1500: (0.1, 300), 900: (0.2, 200)}}).path}"
        torch_pipelining.install(schedule, device=device)
    for step in range(ITERATIONS):
        input, target = witness.batch(step + 10 * place.replica, microbatches)
        of_step = []
        arguments = [input] if any(stage.is_first for stage in stages) else []
        last = any(stage.is_last for stage in stages)
        failing = {feature for feature in features if feature.startswith("raise-")} if step == 1 else ()
        restore = raising(failing, stages, schedule) if failing else None
        try:
            schedule.step(*arguments, **({"target": target, "losses": of_step} if last else {}))
        except Exception as error:
            if not failing:
                raise
            losses.append(error_chain(error))
            restore()
            schedule._internal_losses.clear()  # PyTorch 2.6 would take them for those of the next step
            optimizer.zero_grad()
            continue
        if mode == "real" and "kill-helper" in features and step == 0:
            os.kill(client.current().status()["helper_pid"], signal.SIGKILL)
        if "accumulate" not in features or step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        losses += [loss.item().hex() for loss in of_step]
        if "eval" in features:
            witness.unseen(schedule.eval, log)(*arguments, **({"target": target, "losses": of_step} if last else {}))
            losses += [loss.item().hex() for loss in of_step] if last else []
        if "evaluate" in features:
            output = evaluate(place, stages, microbatches, input)
            losses += [] if output is None else [output.double().sum().item().hex()]
    local = [getattr(parameter.detach(), "to_local", parameter.detach)() for parameter in parameters]
    weights = hashlib.sha256(b"".join(parameter.numpy().tobytes() for parameter in local))
    said = {"losses": losses, "weights": weights.hexdigest()}
    if mode == "failing":
        said["failures"] = log.count(("failed",))
    if mode == "recorded":
        chunk_of = {index: chunk for chunk, index in enumerate(sorted(stage.stage_index for stage in stages))}
        said["computations"], said["wrong"] = witness.compared(log, chunk_of)
        said["options"] = {key: value for key, value in options.items() if key != "facts"}
    if mode == "real":
        said["active"], said["reason"] = client.current().active, client.current().reason
        client.stop()
    return said


def main(name, microbatches, *more):
    features, modes = set(more) - set(MODES), [mode for mode in MODES if mode in more] or MODES[:3]
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    keep_transfers_alive()
    place = Pipelines(features)
    said = {mode: train(name, mode, place, microbatches, features) for mode in modes}
    print(json.dumps(said), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
