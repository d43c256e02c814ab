"""Connects DeepSpeed's pipeline engine to the client.

    from perseus.adapters import deepspeed
    deepspeed.install()                     # before train_batch(); options of perseus.client.start() may follow

PipelineEngine executes a list of instructions through its table _INSTRUCTION_MAP. The adapter wraps the entries of
ForwardPass and BackwardPass, and _exec_schedule: each call of it is one iteration (for an InferenceSchedule, the client
does nothing). An instruction names a buffer, not a microbatch; TrainSchedule._step_to_micro_batch() gives the microbatch.
"""

import importlib

from perseus import client
from perseus.adapters.installation import Installation, argument, around, installed, merged


def install(engine=None, schedule=None, **options):
    """Wraps the engine; idempotent. The first training step starts the client.

    `engine`, `schedule`: a class like PipelineEngine and the module of its instructions; default: DeepSpeed's own."""
    try:
        engine = engine or importlib.import_module("deepspeed.runtime.pipe.engine").PipelineEngine
        schedule = schedule or importlib.import_module("deepspeed.runtime.pipe.schedule")
    except (ImportError, AttributeError) as error:
        client.say_once("DeepSpeed's pipeline engine is not installed, nothing is measured or planned: %s", error)
        return None
    return installed(engine) or _wrap(engine, schedule, options)


def uninstall(engine=None):
    try:
        engine = engine or importlib.import_module("deepspeed.runtime.pipe.engine").PipelineEngine
    except (ImportError, AttributeError):
        return
    if installed(engine) is not None:
        installed(engine).uninstall()


def _wrap(engine, schedule, options):
    installation = Installation(engine, lambda args, kwargs: merged(_known(args[0]), options))
    microbatches = {"forward": iter(()), "backward": iter(())}

    table = getattr(engine, "_INSTRUCTION_MAP", {})
    for type_name, instruction in (("ForwardPass", "forward"), ("BackwardPass", "backward")):
        type_ = getattr(schedule, type_name, None)
        if type_ not in table:
            client.say_once("%s has no %s in this version: not measured, not planned", engine.__name__, type_name)
            continue

        def computation(args, kwargs, instruction=instruction):
            return instruction, next(microbatches[instruction], -1), 0

        installation.replace_entry(table, type_, lambda original, c=computation: around(original, c))

    def kind(args, kwargs):
        inference = getattr(schedule, "InferenceSchedule", ())
        return "evaluate" if isinstance(argument(args, kwargs, 1, "pipe_schedule"), inference) else "train"

    def prepare(args, kwargs):
        microbatches.update(_in_order(argument(args, kwargs, 1, "pipe_schedule")))

    installation.replace(engine, "_exec_schedule", lambda original: installation.step(original, kind, prepare))
    return installation


def _in_order(schedule):
    """Returns the microbatches of the forwards and of the backwards, in the order of the schedule."""
    order = {"forward": [], "backward": []}
    total = schedule.micro_batches
    if hasattr(schedule, "_step_to_micro_batch"):
        for step in range(2 * (total + schedule.stages - 1)):
            microbatch, is_forward = schedule._step_to_micro_batch(step)
            if 0 <= microbatch < total:
                order["forward" if is_forward else "backward"].append(microbatch)
    else:
        order = {"forward": range(total), "backward": range(total)}
    return {instruction: iter(ids) for instruction, ids in order.items()}


def _known(engine):
    grid = engine.grid
    return {
        "microbatches": engine.micro_batches,
        "schedule": "1f1b",
        "rank": engine.global_rank,
        "pp_degree": grid.get_pipe_parallel_world_size(),
        "pp_rank": grid.get_pipe_parallel_rank(),
        "dp_degree": grid.get_data_parallel_world_size(),
        "dp_rank": grid.get_data_parallel_rank(),
        "tp_degree": grid.get_slice_parallel_world_size(),
        "tp_rank": grid.get_slice_parallel_rank(),
        "facts": {"framework": "deepspeed"},
    }
