"""Connects Megatron-LM, Megatron-Core and frameworks on top of it (NeMo) to the client.

    from perseus.adapters import megatron
    megatron.install()                      # before training; options of perseus.client.start() may follow

The adapter wraps forward_step, backward_step and the three forward_backward functions of the module
megatron.core.pipeline_parallel.schedules. Each call of a forward_backward function is one iteration (with forward_only, the
client does nothing). Microbatch and chunk of a backward follow from the order of Megatron's get_schedule_table().
Combined 1F1B of mixture-of-experts models and CUDA graphs of a whole iteration do not call forward_step and backward_step
for every computation: the adapter logs that once, and the iteration runs at maximum clock. Context parallel ranks count as
tensor parallel ranks. A step that runs again is another iteration.
"""

import importlib
import inspect

from perseus import client
from perseus.adapters.installation import Installation, argument, around, installed, merged

_SCHEDULES = "megatron.core.pipeline_parallel.schedules"
_INTERLEAVED = "forward_backward_pipelining_with_interleaving"
_FORWARD_BACKWARD = ("forward_backward_no_pipelining", "forward_backward_pipelining_without_interleaving", _INTERLEAVED)


def install(schedules=None, **options):
    """Wraps the schedules; idempotent. The first training step starts the client.

    `schedules`: the module of the schedules; default: Megatron's own."""
    try:
        module = schedules or importlib.import_module(_SCHEDULES)
    except ImportError as error:
        client.say_once("Megatron is not installed, nothing is measured or planned: %s", error)
        return None
    if installed(module) is not None:
        return installed(module)
    return _wrap(module, options)


def uninstall(schedules=None):
    try:
        module = schedules or importlib.import_module(_SCHEDULES)
    except ImportError:
        return
    if installed(module) is not None:
        installed(module).uninstall()


class _Iteration:
    """Arguments and progress of the current call of the forward_backward function."""

    def __init__(self, module):
        self._module = module
        self.begin({}, interleaved=False)

    def begin(self, arguments, interleaved):
        self.microbatches = arguments.get("num_microbatches", 0)
        model = arguments.get("model")
        self.model = model if isinstance(model, (list, tuple)) else [model]
        self.forward_only = bool(arguments.get("forward_only", False))
        self.interleaved = interleaved
        # Combined 1F1B calls forward_step only during warm-up, so a count of its calls would be wrong.
        self.combined = not self.forward_only and _combines(self._module, self.model[0])
        self.forwards = self.backwards = 0
        self.table = None
        if interleaved:
            self.group = _microbatch_group(self._module, self.model[0])
            self.table = schedule_table(self.microbatches, len(self.model), self.group)

    def forward(self, microbatch, chunk):
        if self.combined:
            return None
        counted, self.forwards = self.forwards, self.forwards + 1
        if microbatch is None or microbatch < 0:
            microbatch = self.table[counted][0] if self.table else counted
        if chunk is None or chunk < 0:
            chunk = self.table[counted][1] if self.table else 0
        return "forward", microbatch, chunk

    def backward(self):
        if self.combined:
            return None
        counted, self.backwards = self.backwards, self.backwards + 1
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
    iteration = _Iteration(module)
    installation = Installation(module, lambda args, kwargs: merged(_known(iteration), options))
    positions = _positions(getattr(module, "forward_step", None), ("current_microbatch", "vp_stage"))

    def forward(args, kwargs):
        return iteration.forward(
            *(argument(args, kwargs, position, name, None) for name, position in positions.items())
        )

    installation.replace(module, "forward_step", lambda original: around(original, forward))
    for name in ("backward_step", "backward_step_multimodule"):
        wrapped = lambda original: around(original, lambda args, kwargs: iteration.backward())  # noqa: E731
        installation.replace(module, name, wrapped, needed=name == "backward_step")

    for name in _FORWARD_BACKWARD:
        _wrap_iteration(installation, module, name, iteration)
    return installation


def _wrap_iteration(installation, module, name, iteration):
    def prepare(args, kwargs):
        iteration.begin(kwargs, interleaved=name == _INTERLEAVED)  # Megatron's arguments are keyword-only

    def kind(args, kwargs):
        return "evaluate" if kwargs.get("forward_only", False) else "train"

    def wrapped(original):
        step = installation.step(original, kind, prepare)

        def forward_backward(*args, **kwargs):
            result = step(*args, **kwargs)
            if not iteration.forward_only and iteration.forwards == 0:
                client.say_once(
                    "%s does not call forward_step for all (combined 1F1B, or a CUDA graph of the whole iteration): "
                    "its computations are not measured and have no clocks of their own",
                    name,
                )
            return result

        return forward_backward

    installation.replace(module, name, wrapped)


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
    """Returns how many microbatches run in one chunk before the next chunk; default: the pipeline degree."""
    group = getattr(_config(module, model_chunk), "microbatch_group_size_per_vp_stage", None)
    return group or _parallel_state().get_pipeline_model_parallel_world_size()


def _parallel_state():
    return importlib.import_module("megatron.core.parallel_state")


def _known(iteration):
    state = _parallel_state()
    ranks = state.get_pipeline_model_parallel_world_size()
    tensor, context = state.get_tensor_model_parallel_world_size(), _optional(state, "get_context_parallel_world_size", 1)
    options = {
        "microbatches": iteration.microbatches,
        "chunks": len(iteration.model),
        "pp_degree": ranks,
        "pp_rank": state.get_pipeline_model_parallel_rank(),
        "dp_degree": state.get_data_parallel_world_size(),
        "dp_rank": state.get_data_parallel_rank(),
        "tp_degree": tensor * context,
        "tp_rank": state.get_tensor_model_parallel_rank() + tensor * _optional(state, "get_context_parallel_rank", 0),
        "facts": {"framework": "megatron"},
    }
    if iteration.interleaved:
        config = _config(iteration._module, iteration.model[0])
        extra = 1 if getattr(config, "overlap_moe_expert_parallel_comm", False) else 0
        chunks, group = len(iteration.model), iteration.group
        options["action_table"] = action_table(ranks, iteration.microbatches, chunks, group, extra)
    else:
        options["schedule"] = "1f1b"
    return options


def _optional(state, name, otherwise):
    return getattr(state, name)() if hasattr(state, name) else otherwise
