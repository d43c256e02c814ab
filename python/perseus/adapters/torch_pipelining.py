"""Connects torch.distributed.pipelining to the client: all its schedules, from GPipe to DualPipeV.

    from perseus.adapters import torch_pipelining
    torch_pipelining.install(schedule)      # options of perseus.client.start() may follow
    schedule.step(...)                      # as before

Every schedule calls forward_one_chunk, backward_one_chunk and backward_weight_one_chunk of its stages. The adapter wraps
these methods on the stage objects, and step() and _step_microbatches() of the schedule: the one that the program calls is one
iteration (eval() calls step(), too; the client then does nothing). The server receives the order of computations as PyTorch's
own table, action_table(). The adapter reports the computations that really run:
- The schedule computes the loss after the last stage's forward: that forward ends when the loss is computed.
- PyTorch does not split the first stage's backward, whose input needs no gradient: the I action does nothing, and the
  W action runs the full backward. So I is left out and W is a backward, here and in the table.
- Schedules with several stages per rank that _PipelineScheduleRuntime does not run (PyTorch 2.9 and earlier; 2.14 runs all
  with it) receive each tensor in the step in which it is computed. The table has WAIT cells for that, which PyTorch's has not.
- PyTorch 2.14 runs a forward and a backward of each stage before the first microbatch, to learn shapes: not measured.

A function that a program registers for a type of action (register_custom_function) replaces the stage's methods; the adapter
wraps that function instead. A function for OVERLAP_F_B runs a forward and a backward at once: it gets the backward's clock,
and all of its time counts as the backward's. This module does not import torch.
"""

import re

from perseus import client, job_id
from perseus.adapters import installation
from perseus.adapters.installation import Installation, argument

_INSTRUCTIONS = {"F": "forward", "B": "backward", "I": "input_gradient", "W": "weight_gradient"}
_COMPUTATION = re.compile(r"(\d+)([FBIW])(\d+)")
_OVERLAPPED = re.compile(r"\((.*)\)OVERLAP_F_B")
_EMPTY, _UNSPLIT = re.compile(r"0I\d+"), re.compile(r"^0W(\d+)$")  # I and W actions of the first stage
_NAMES = {"ScheduleGPipe": "gpipe", "Schedule1F1B": "1f1b"}  # for versions of PyTorch without action tables for these

_LOOK_AT = (
    "a schedule that is built anew (install() follows the one that it got), functions that run stages without the "
    "schedule, and calls of the stages' modules"
)

_open_forward = None  # forward of the last stage while the schedule computes its loss
_replaced_by_program = []  # not empty while a registered function runs, which may call stage methods, also in threads


@installation.checks_arguments
def install(schedule, /, **options):
    """Wraps the schedule and its stages; a second call changes the options. The first training step starts the client unless
    it already runs."""

    def wrap(schedule, options):
        following = Installation(schedule, options, _LOOK_AT, lambda *_: _shape(schedule), lambda *_: _place(schedule, options))
        _wrap(following, schedule)
        return following

    return installation.install(lambda: schedule, options, wrap)


def uninstall(schedule):
    installation.uninstall(lambda: schedule)


def action_table(schedule):
    """Returns the computations of every rank as the CSV that `_dump_csv(..., "compute_only")` writes, without bubbles and
    with WAIT cells; None if PyTorch's table is incomplete: the server then gets the schedule's name."""
    order = getattr(schedule, "pipeline_order", None) or getattr(schedule, "pipeline_order_with_comms", None)
    if not order:
        return None
    cells_of = {rank: ["" if action is None else str(action) for action in order[rank]] for rank in sorted(order)}
    waits_of = _waits(cells_of) if _receives_at_once(schedule) else {}
    rows, seen = [], set()
    for rank, of_steps in cells_of.items():
        cells = []
        for step, cell in enumerate(of_steps):
            if not _splits_first_stage(schedule):
                cell = "" if _EMPTY.fullmatch(cell) else _UNSPLIT.sub(r"0B\1", cell)
            for computation in _computations(cell):
                if computation in seen:
                    return None
                seen.add(computation)
            cells += [cell] if _computations(cell) else []
            cells += waits_of.get((rank, step), [])
        rows.append(",".join(cells))
    return "\n".join(rows) + "\n" if _complete(seen, schedule._n_microbatches) else None


def _receives_at_once(schedule):
    """Returns whether a rank waits, in each step of the table, for the tensors that its neighbors compute for it in that
    step, even if it needs them later: schedules with several stages per rank without _PipelineScheduleRuntime."""
    names = [base.__name__ for base in type(schedule).__mro__]
    return "PipelineScheduleMulti" in names and "_PipelineScheduleRuntime" not in names


def _waits(cells_of):
    """Returns, by (rank, step), cells like 1WAIT_F0: the rank's next computation waits for that forward or backward."""
    rank_of = {stage: rank for rank, cells in cells_of.items() for cell in cells for stage, *_ in _computations(cell)}
    waits = {}
    for rank, cells in cells_of.items():
        for step, cell in enumerate(cells):
            for stage, kind, microbatch in _computations(cell):
                receiver = rank_of.get(stage + 1 if kind == "F" else stage - 1)
                if kind != "W" and receiver not in (None, rank):
                    direction = "F" if kind == "F" else "B"
                    waits.setdefault((receiver, step), []).append(f"{stage}WAIT_{direction}{microbatch}")
    return waits


def _computations(cell):
    """Returns the (stage, type, microbatch) of each computation of a cell; none for a bubble or a communication."""
    overlapped = _OVERLAPPED.fullmatch(cell)
    found = [_COMPUTATION.fullmatch(part.strip()) for part in (overlapped.group(1) if overlapped else cell).split(";")]
    return [(int(match[1]), match[2], int(match[3])) for match in found if match]


def _complete(computations, microbatches):
    """Returns whether each stage computes every microbatch. PyTorch's table of 1F1B, for example, is incomplete (2.9,
    2.14): the forwards of its last rank begin with microbatch 1."""
    stages = {stage for stage, _, _ in computations}
    for stage in stages:
        for microbatch in range(microbatches):
            kinds = {kind for kind in "FBIW" if (stage, kind, microbatch) in computations}
            if kinds not in ({"F", "B"}, {"F", "I", "W"}, {"F", "B", "W"}):  # the last: PyTorch 2.5 writes B for I
                return False
    return bool(stages) and all(microbatch < microbatches for _, _, microbatch in computations)


def _stages(schedule):
    stages = getattr(schedule, "_stages", None)
    return list(stages) if stages else [schedule._stage]


def _splits_first_stage(schedule):
    """Returns whether I and W of the first stage really run apart: with the program's own functions or a dw_builder."""
    functions = getattr(schedule, "_comp_type_to_function_map", {})
    if any(_text(action_type) in ("I", "W") for action_type in functions):
        return True
    stages = _stages(schedule)
    first = [stage for stage in stages if stage.stage_index == 0]  # if another rank has it: assume that it is like ours
    return any(getattr(stage, "dw_builder", None) is not None for stage in first or stages)


def _wrap(following, schedule):
    stages = _stages(schedule)
    chunk_of = {index: chunk for chunk, index in enumerate(sorted(stage.stage_index for stage in stages))}

    computes_loss = callable(getattr(schedule, "_maybe_compute_loss", None))
    for stage in stages:
        _wrap_stage(following, stage, chunk_of[stage.stage_index], computes_loss)
    following.replace(schedule, "_maybe_compute_loss", lambda original: _ending_forward(following, original), needed=False)

    def kind(args, kwargs):
        return "train" if getattr(schedule, "_has_backward", True) else "evaluate"

    def prepare(args, kwargs):
        _leave_forward_open(None)  # an exception may have ended the step before

    def follow(function):
        def computation(args, kwargs):
            return _only_measured(argument(args, kwargs, 0, "action", None), chunk_of)

        measured = following.around(function, computation)

        def registered(*args, **kwargs):
            _replaced_by_program.append(function)
            try:
                return measured(*args, **kwargs)
            finally:
                _replaced_by_program.pop()

        return registered

    followed = [*_INSTRUCTIONS, "OVERLAP_F_B"]
    functions = getattr(schedule, "_comp_type_to_function_map", {})
    for action_type in list(functions):
        if _text(action_type) in followed:
            following.replace_entry(functions, action_type, follow)

    def register(original):
        def register_custom_function(computation_type, custom_function):
            if _text(computation_type) in followed:
                custom_function = follow(custom_function)
            return original(computation_type, custom_function)

        return register_custom_function

    following.replace(schedule, "register_custom_function", register, needed=False)
    for name in ("step", "_step_microbatches"):  # the first calls the second, but for programs that split batches themselves
        step = lambda original: following.step(  # noqa: E731
            original, kind, prepare, lambda _: stages[0], lambda *_: schedule._n_microbatches
        )
        following.replace(schedule, name, step, needed=name == "step")


def _wrap_stage(following, stage, chunk, computes_loss):
    has_loss = computes_loss and getattr(stage, "is_last", False)
    is_first = stage.stage_index == 0
    splits = not is_first or getattr(stage, "dw_builder", None) is not None

    def computation(instruction, microbatch):
        _end_forward()
        return None if _replaced_by_program else (instruction, microbatch, chunk)

    def forward(args, kwargs):
        return computation("forward", argument(args, kwargs, 0, "fwd_chunk_id"))

    def backward(args, kwargs):
        full = argument(args, kwargs, 2, "full_backward", True)
        if not full and not splits:
            return None
        return computation("backward" if full else "input_gradient", argument(args, kwargs, 0, "bwd_chunk_id"))

    def weight(args, kwargs):
        instruction = "weight_gradient" if splits else "backward"
        return computation(instruction, argument(args, kwargs, 0, "bwd_chunk_id"))

    around, ended = following.around, {"ended": _leave_forward_open} if has_loss else {}
    following.replace(stage, "forward_one_chunk", lambda original: around(original, forward, **ended))
    following.replace(stage, "backward_one_chunk", lambda original: around(original, backward))
    # PyTorch before 2.5 has no such method, and no schedule that needs it.
    following.replace(stage, "backward_weight_one_chunk", lambda original: around(original, weight), needed=False)


def _leave_forward_open(computation):
    global _open_forward
    _open_forward = computation


def _end_forward():
    global _open_forward
    if _open_forward is not None:
        computation, _open_forward = _open_forward, None
        client.on_instruction_end(*computation)


def _ending_forward(following, original):
    """Wraps the schedule's _maybe_compute_loss, which runs after each forward and computes the loss of the last stage."""

    def compute_loss(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        finally:
            if following.is_open():
                _end_forward()

    return compute_loss


def _text(action_type):
    """Returns F for _ComputationType.FORWARD, an Enum of strings or, before PyTorch 2.9, of numbers."""
    value = getattr(action_type, "value", action_type)
    return value if isinstance(value, str) else str(action_type)


def _only_measured(action, chunk_of):
    """Returns the computation that represents the action: of overlapping computations the last, the backward."""
    computations = [(_INSTRUCTIONS[kind], i, chunk_of[stage]) for stage, kind, i in _computations(str(action))]
    for instruction, microbatch, chunk in computations[:-1]:
        client.say_once("OVERLAP_F_B runs by a function of the program: its time and clock are those of the backward")
        client.begin(instruction, microbatch, chunk)  # the plan contains this computation
        client.end(instruction, microbatch, chunk)
    return computations[-1]


def _shape(schedule):
    options = {
        "microbatches": schedule._n_microbatches,
        "chunks": len(_stages(schedule)),
        "facts": {"framework": "torch.distributed.pipelining"},
    }
    name = _schedule_name(type(schedule))
    table = action_table(schedule) if name or getattr(schedule, "_stages", None) else None
    if table is not None:
        options["action_table"] = table
    elif name:
        options["schedule"] = name
    return options


def _schedule_name(kind):
    """Returns the name of PyTorch's schedule of one stage whose order this class runs; None if it runs one of its own."""
    for base in kind.__mro__:
        if base.__name__ in _NAMES and base._step_microbatches is kind._step_microbatches:
            return _NAMES[base.__name__]
    return None


def _place(schedule, options):
    """Returns this rank's position in its pipeline and among all pipelines; the ranks of one pipeline are `stride` apart."""
    stage = _stages(schedule)[0]
    return {"pp_degree": stage.group_size, "pp_rank": stage.group_rank, **_among_pipelines(stage, options)}


def _among_pipelines(stage, options):
    if installation.in_world() is None:
        return {}
    rank, world = installation.in_world()
    group = getattr(stage, "group", None)
    # The group None means all ranks; get_process_group_ranks() of PyTorch 2.6 does not accept it.
    ranks = list(range(world)) if group is None else sorted(job_id.distributed().get_process_group_ranks(group))
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    if ranks != list(range(ranks[0], ranks[0] + stride * len(ranks), stride)) or world % len(ranks) != 0:
        client.say_once("the pipelines' ranks are in no order that is known: dp_rank and tp_rank must be given")
        return {"rank": rank, "world_size": world}
    pipeline = ranks[0] // (stride * len(ranks)) * stride + ranks[0] % stride
    return {"rank": rank, "world_size": world, **installation.replica(pipeline, world // len(ranks), options)}
