"""Connects DeepSpeed's pipeline engine to the client.

    from perseus.adapters import deepspeed
    deepspeed.install()                     # before train_batch(); options of perseus.client.start() may follow

PipelineEngine executes a list of instructions through its table _INSTRUCTION_MAP. The adapter wraps the entries of
ForwardPass and BackwardPass, and _exec_schedule: each call of it is one iteration (for an InferenceSchedule, the client
does nothing). An instruction names a buffer, not a microbatch: forwards take the microbatches in order, and a backward has
the microbatch whose forward used its buffer last. The order of a schedule that is not TrainSchedule follows from its
instructions in the same way; if a microbatch has not one forward and one backward (two stages per rank), only the iteration
is measured.
"""

import functools
import importlib
import itertools

from perseus import client
from perseus.adapters import installation
from perseus.adapters.installation import Installation, argument

_LOOK_AT = (
    "a subclass of PipelineEngine with a train_batch() or _exec_schedule() of its own, and for an engine that is no "
    "pipeline (perseus.adapters.plain follows it)"
)


@installation.checks_arguments
def install(engine=None, schedule=None, **options):
    """Wraps the engine; a second call changes the options. The first training step starts the client.

    `engine`, `schedule`: a class like PipelineEngine and the module of its instructions; default: DeepSpeed's own."""

    if isinstance(schedule, str):  # the option of that name
        schedule, options = None, {**options, "schedule": schedule}

    def wrap(engine, options):
        return _wrap(engine, schedule or importlib.import_module("deepspeed.runtime.pipe.schedule"), options)

    return installation.install(lambda: _engine(engine), options, wrap)


def uninstall(engine=None):
    installation.uninstall(lambda: _engine(engine))


def _engine(given):
    return given or importlib.import_module("deepspeed.runtime.pipe.engine").PipelineEngine


def _order_of(pipe_schedule, types, stage=None):
    """Returns ("F" or "B", microbatch) of each computation of a stage, by default the schedule's own; none if the schedule's
    instructions do not give each microbatch one of both. types: the classes of forward and backward instructions."""
    try:
        stage = pipe_schedule.stage_id if stage is None else stage
        return _order(type(pipe_schedule), pipe_schedule.micro_batches, pipe_schedule.stages, stage, types)
    except Exception:  # a schedule that is built or names its buffers in another way
        return []


@functools.lru_cache(maxsize=4096)
def _order(kind, microbatches, stages, stage, types):
    order, forwards, in_buffer = [], 0, {}
    for command in itertools.chain(*kind(microbatches, stages, stage).steps()):
        if type(command) is types[0]:
            in_buffer[command.kwargs["buffer_id"]] = forwards
            order.append(("F", forwards))
            forwards += 1
        elif type(command) is types[1]:
            order.append(("B", in_buffer.pop(command.kwargs["buffer_id"])))
    return order if sorted(order) == [(name, i) for name in "BF" for i in range(microbatches)] else []


def _wrap(engine, schedule, options):
    running = {"schedule": None, "forward": iter(()), "backward": iter(())}

    types = tuple(getattr(schedule, name, None) for name in ("ForwardPass", "BackwardPass"))

    def shape(args, kwargs):
        pipe_schedule, train = running["schedule"], getattr(schedule, "TrainSchedule", None)
        options = {"microbatches": pipe_schedule.micro_batches, "facts": {"framework": "deepspeed"}}
        place = pipe_schedule.micro_batches, pipe_schedule.stages, pipe_schedule.stage_id
        order = _order_of(pipe_schedule, types)
        if train is not None and order and order == _order(train, *place, types):
            return {**options, "schedule": "1f1b"}
        orders = [_order_of(pipe_schedule, types, stage) for stage in range(pipe_schedule.stages)]
        if not all(orders):
            raise ValueError(f"the order of {type(pipe_schedule).__name__} is not known")
        rows = [",".join(f"{stage}{name}{i}" for name, i in order) for stage, order in enumerate(orders)]
        return {**options, "action_table": "\n".join(rows) + "\n"}

    following = Installation(engine, options, _LOOK_AT, shape, lambda args, kwargs: _place(args[0]))

    table = getattr(engine, "_INSTRUCTION_MAP", {})
    for type_, name, instruction in zip(types, ("ForwardPass", "BackwardPass"), ("forward", "backward")):
        if type_ not in table:
            client.say_once("%s has no %s in this version: not measured, not planned", engine.__name__, name)
            continue

        def computation(args, kwargs, instruction=instruction):
            microbatch = next(running[instruction], None)
            return None if microbatch is None else (instruction, microbatch, 0)

        following.replace_entry(table, type_, lambda original, c=computation: following.around(original, c))

    def kind(args, kwargs):
        inference = getattr(schedule, "InferenceSchedule", ())
        return "evaluate" if isinstance(argument(args, kwargs, 1, "pipe_schedule"), inference) else "train"

    def prepare(args, kwargs):
        running["schedule"] = argument(args, kwargs, 1, "pipe_schedule")
        order = _order_of(running["schedule"], types)
        for instruction, letter in (("forward", "F"), ("backward", "B")):
            running[instruction] = iter([microbatch for name, microbatch in order if name == letter])

    def microbatches(args, kwargs):
        return running["schedule"].micro_batches

    step = lambda original: following.step(original, kind, prepare, lambda args: args[0], microbatches)  # noqa: E731
    following.replace(engine, "_exec_schedule", step)
    return following


def _place(engine):
    grid = engine.grid
    return {
        "rank": engine.global_rank,
        "pp_degree": grid.get_pipe_parallel_world_size(),
        "pp_rank": grid.get_pipe_parallel_rank(),
        "dp_degree": grid.get_data_parallel_world_size(),
        "dp_rank": grid.get_data_parallel_rank(),
        "tp_degree": grid.get_slice_parallel_world_size(),
        "tp_rank": grid.get_slice_parallel_rank(),
    }
