"""Connects Megatron-LM, Megatron-Core and frameworks on top of it (NeMo) to the client.

    from perseus.adapters import megatron
    megatron.install()                      # before training; options of perseus.client.start() may follow

The adapter wraps forward_step, backward_step and the three forward_backward functions of the module
megatron.core.pipeline_parallel.schedules. Each call of a forward_backward function is one iteration (with forward_only, the
client does nothing). Microbatch and chunk of a backward follow from the order of Megatron's get_schedule_table().
Combined 1F1B of mixture-of-experts models and CUDA graphs of a whole iteration do not call forward_step and backward_step
for every computation: the adapter logs that once, and the iteration is measured at maximum clock, as advice only. Context
parallel ranks count as tensor parallel ranks. A step that runs again is another iteration. Ranks and degrees are those of
the pg_collection that the caller passes; else those of megatron.core.parallel_state.
"""

import importlib
import inspect

from perseus import client
from perseus.adapters import installation
from perseus.adapters.installation import Installation, argument

_SCHEDULES = "megatron.core.pipeline_parallel.schedules"
_INTERLEAVED = "forward_backward_pipelining_with_interleaving"
_LOOK_AT = (
    "a get_forward_backward_func(), forward_step() or schedule of the program's own, and for functions of "
    "megatron.core.pipeline_parallel.schedules that were imported by name before install()"
)
_FORWARD_BACKWARD = ("forward_backward_no_pipelining", "forward_backward_pipelining_without_interleaving", _INTERLEAVED)


@installation.checks_arguments
def install(schedules=None, **options):
    """Wraps the schedules; a second call changes the options. The first training step starts the client.

    `schedules`: the module of the schedules; default: Megatron's own."""
    return installation.install(lambda: _module(schedules), options, _wrap)


def uninstall(schedules=None):
    installation.uninstall(lambda: _module(schedules))


def _module(given):
    return given or importlib.import_module(_SCHEDULES)


class _Iteration:
    """Arguments and progress of the current call of the forward_backward function."""

    def __init__(self, module, options):
        self._module, self._options = module, options
        self.begin({}, interleaved=False)

    def begin(self, arguments, interleaved):
        self.microbatches = arguments.get("num_microbatches", 0)
        model = arguments.get("model")
        self.model = model if isinstance(model, (list, tuple)) else [model]
        self.forward_only = bool(arguments.get("forward_only", False))
        self.interleaved = interleaved
        self.groups = arguments.get("pg_collection")
        # Combined 1F1B calls forward_step only during warm-up, so a count of its calls would be wrong.
        self.combined = not self.forward_only and _combines(self._module, self.model[0])
        self.forwards = self.backwards = 0
        self.table = None
        self.group = None
        if interleaved:
            try:
                self.group = _microbatch_group(self._module, self.model[0]) or self.pipeline_degree()
                self.table = schedule_table(self.microbatches, len(self.model), self.group)
            except Exception:  # _place() reports it
                pass
        self.followed = not self.combined and (self.table is not None or not interleaved)

    def pipeline_degree(self):
        return self._options.get("pp_degree") or _rank_and_size(self.groups, "pp", "pipeline_model_parallel")[1]

    def forward(self, microbatch, chunk):
        counted, self.forwards = self.forwards, self.forwards + 1
        if not self.followed:
            return None
        if microbatch is None or microbatch < 0:
            microbatch = self.table[counted][0] if self.table else counted
        if chunk is None or chunk < 0:
            chunk = self.table[counted][1] if self.table else 0
        return "forward", microbatch, chunk

    def backward(self):
        counted, self.backwards = self.backwards, self.backwards + 1
        if not self.followed:
            return None
        if not self.table:
            return "backward", counted, 0
        microbatch, chunk = self.table[counted]
        return "backward", microbatch, len(self.model) - 1 - chunk


def schedule_table(microbatches, chunks, group):
    """Returns (microbatch, chunk) of each forward of any rank, in order; backwards take the chunks in reverse order."""
    return [
        (microbatch, chunk)
        for first in range(0, microbatches, group)
        for chunk in range(chunks)
        for microbatch in range(first, min(first + group, microbatches))
    ]


def action_table(ranks, microbatches, chunks, group, extra_forwards=0):
    """Returns the interleaved schedule of every rank as PyTorch's CSV. Stage number: chunk x ranks + rank."""
    table, rows = schedule_table(microbatches, chunks, group), []
    for rank in range(ranks):
        forwards = [f"{chunk * ranks + rank}F{microbatch}" for microbatch, chunk in table]
        backwards = [f"{(chunks - 1 - chunk) * ranks + rank}B{microbatch}" for microbatch, chunk in table]
        ahead = min((ranks - 1 - rank) * 2 + (chunks - 1) * group + extra_forwards, len(table))
        row = forwards[:ahead]
        for forward, backward in zip(forwards[ahead:], backwards):
            row += [forward, backward]
        rows.append(",".join(row + backwards[len(table) - ahead :]))
    return "\n".join(rows) + "\n"


def _wrap(module, options):
    iteration = _Iteration(module, options)
    following = Installation(module, options, _LOOK_AT, lambda *_: _shape(iteration), lambda *_: _place(iteration.groups))
    around = following.around
    positions = _positions(getattr(module, "forward_step", None), ("current_microbatch", "vp_stage"))

    def forward(args, kwargs):
        return iteration.forward(
            *(argument(args, kwargs, position, name, None) for name, position in positions.items())
        )

    following.replace(module, "forward_step", lambda original: around(original, forward))
    for name in ("backward_step", "backward_step_multimodule"):
        wrapped = lambda original: around(original, lambda args, kwargs: iteration.backward())  # noqa: E731
        following.replace(module, name, wrapped, needed=name == "backward_step")

    for name in _FORWARD_BACKWARD:
        _wrap_iteration(following, module, name, iteration)
    return following


def _wrap_iteration(following, module, name, iteration):
    def prepare(args, kwargs):
        iteration.begin(kwargs, interleaved=name == _INTERLEAVED)  # Megatron's arguments are keyword-only

    def kind(args, kwargs):
        return "evaluate" if kwargs.get("forward_only", False) else "train"

    def wrapped(original):
        step = following.step(original, kind, prepare, microbatches_of=lambda *_: iteration.microbatches)

        def forward_backward(*args, **kwargs):
            result = step(*args, **kwargs)
            if iteration.combined or (not iteration.forward_only and iteration.forwards == 0):
                client.say_once(
                    "%s does not call forward_step for all (combined 1F1B, or a CUDA graph of the whole iteration): "
                    "its computations are not measured and have no clocks of their own",
                    name,
                )
            return result

        return forward_backward

    following.replace(module, name, wrapped)


def _positions(function, names):
    """Returns the position of each argument in this version of Megatron; 1000, beyond all of them, if it does not exist."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    return {name: parameters.index(name) if name in parameters else 1000 for name in names}


def _config(module, model_chunk):
    config = getattr(model_chunk, "config", None)
    if config is None and hasattr(module, "get_model_config"):
        config = module.get_model_config(model_chunk)
    return config


def _combines(module, model_chunk):
    """Returns whether the schedule is combined 1F1B."""
    try:
        return bool(getattr(_config(module, model_chunk), "overlap_moe_expert_parallel_comm", False))
    except Exception:  # a version or model without this configuration has no combined 1F1B
        return False


def _microbatch_group(module, model_chunk):
    """Returns how many microbatches run in one chunk before the next chunk; None: as many as there are stages."""
    return getattr(_config(module, model_chunk), "microbatch_group_size_per_vp_stage", None)


def _shape(iteration):
    options = {
        "microbatches": iteration.microbatches,
        "chunks": len(iteration.model),
        "facts": {"framework": "megatron"},
    }
    if iteration.combined:
        options["advice_only"] = True  # no computation is seen, so the job cannot be profiled
    if iteration.interleaved:
        config = _config(iteration._module, iteration.model[0])
        extra = 1 if getattr(config, "overlap_moe_expert_parallel_comm", False) else 0
        shape = iteration.microbatches, len(iteration.model), iteration.group, extra
        options["action_table"] = action_table(iteration.pipeline_degree(), *shape)
    else:
        options["schedule"] = "1f1b"
    return options


def _place(groups):
    pipeline, tensor = (
        _rank_and_size(groups, name, f"{full}_model_parallel") for name, full in (("pp", "pipeline"), ("tp", "tensor"))
    )
    data, context = _rank_and_size(groups, "dp", "data_parallel"), _rank_and_size(groups, "cp", "context_parallel", (0, 1))
    return {
        "pp_degree": pipeline[1],
        "pp_rank": pipeline[0],
        "dp_degree": data[1],
        "dp_rank": data[0],
        "tp_degree": tensor[1] * context[1],
        "tp_rank": tensor[0] + tensor[1] * context[0],
    }


def _rank_and_size(groups, name, full_name, otherwise=None):
    group = getattr(groups, name, None)
    if group is not None:
        return group.rank(), group.size()
    state = importlib.import_module("megatron.core.parallel_state")
    if otherwise is not None and not hasattr(state, f"get_{full_name}_rank"):
        return otherwise
    return getattr(state, f"get_{full_name}_rank")(), getattr(state, f"get_{full_name}_world_size")()
