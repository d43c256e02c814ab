"""Connects training loops without a pipeline (plain, DDP or FSDP) to the client, as a pipeline of one stage.

    from perseus.adapters import plain
    plain.install(model, microbatches=1)      # options of perseus.client.start() may follow
    ...                                       # the loop as before

Hooks of torch observe the loop:
- A call of the model is a forward.
- The backward begins when autograd has computed the gradient of the model's output, and ends when autograd has finished.
- An iteration begins with the first of `microbatches` forwards. It ends with the last backward, or earlier when an
  optimizer of the model steps, as trainers do with the last batches of an epoch.
- Calls without gradients between iterations are evaluation, a step each, at the highest clock; within an iteration they
  are ignored.
- A forward that a backward runs again (activation checkpointing of the whole model) belongs to the backward.
- A forward without a backward (an exception, an evaluation with gradients) ends the current iteration; the next
  iteration is complete again.

Input:   the module that the loop calls, such as the result of torch.compile or DistributedDataParallel; the number of
         calls per optimizer step.
Errors:  none reach the loop.

This module does not import torch; it uses the torch that the program has imported.
"""

import sys

from perseus import client
from perseus.adapters.installation import merged

_MARK = "_perseus_loop"


class Loop:
    """Follows one loop: before_forward() and after_forward() run around each forward, as hooks after watch_calls()."""

    def __init__(self, model, microbatches, options):
        self._model, self._microbatches, self._options = model, microbatches, options
        self._asked_to_start = False
        self._done = None  # backwards of this iteration; None: outside of one
        self._open = None  # the open computation
        self._evaluates = False  # since the last iteration
        self._named = False  # a trainer names its batches of evaluation: hooks may see none of them
        optimizers = sys.modules.get("torch.optim.optimizer")
        watch_steps = getattr(optimizers, "register_optimizer_step_post_hook", None)  # torch 2.0 and later
        self._hooks = [] if watch_steps is None else [watch_steps(self._after_optimizer_step)]

    def watch_calls(self):
        model = self._model
        self._hooks.append(model.register_forward_pre_hook(lambda *_: self.before_forward()))
        after = lambda module, arguments, output: self.after_forward(output)  # noqa: E731: None: torch keeps output
        try:
            self._hooks.append(model.register_forward_hook(after, always_call=True))
        except TypeError:  # torch before 2.1: a forward that raises ends when the next one begins
            self._hooks.append(model.register_forward_hook(after))
        setattr(model, _MARK, self)

    def uninstall(self):
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if self._evaluates:
            client.on_step_end()
        self._end_iteration()
        if vars(self._model).get(_MARK) is self:
            delattr(self._model, _MARK)

    def before_forward(self):
        try:
            kind = self._kind_of_call()
        except Exception as error:
            client.say_once("before the forward of %s: %r", type(self._model).__name__, error)
            return
        # What the handler of a signal raises while a paced job waits must reach the loop: see client.on_step_begin().
        if kind == "evaluate":
            self._evaluate()
        elif kind == "train":
            if self._done is None:
                client.on_step_begin()
                self._done, self._evaluates = 0, False
            self._begin("forward")

    def _kind_of_call(self):
        """Returns "train" for a forward, "evaluate" for a new step of evaluation, else None."""
        if not _gradients_wanted():
            return None if self._named and self._evaluates else "evaluate"
        if self._open == "backward" and _in_backward():
            return None
        if self._open is not None:  # a forward without its backward
            self._end_iteration()
        if self._done is None:
            self._start()
        return "train"

    def before_evaluation_batch(self):
        """For trainers, whose batches of evaluation hooks do not always see."""
        self._named = True
        self._evaluate()

    def _evaluate(self):
        """A batch of evaluation begins: one step of the client, which ends with the next one."""
        if self._done is None:
            self._evaluates = True
            client.on_step_begin("evaluate")  # else the GPU would keep the clock of the next iteration's first computation

    def after_forward(self, output):
        """Ends the forward. output: the tensor at which the backward begins (the model's output or the loss); None if the
        forward raised."""
        try:
            if self._open != "forward":
                return
            self._end()
            tensors = [tensor for tensor in _tensors(output) if tensor.requires_grad]
            if not tensors:
                self._end_iteration()  # the forward raised, or there is nothing to train
                return
            self._open = "no backward yet"
            self._forward = object()
            for tensor in tensors:
                tensor.register_hook(self._backward_of(self._forward))
        except Exception as error:
            client.say_once("after the forward of %s: %r", type(self._model).__name__, error)

    def _backward_of(self, forward):
        def backward(gradient):  # torch calls it once per output tensor; it returns None, so torch keeps the gradient
            try:
                if self._open == "no backward yet" and self._forward is forward:
                    engine = sys.modules["torch"].autograd.Variable._execution_engine
                    engine.queue_callback(self._after_backward)
                    self._begin("backward")
            except Exception as error:
                client.say_once("in the backward of %s: %r", type(self._model).__name__, error)

        return backward

    def _after_backward(self):
        try:
            if self._open != "backward":
                return
            self._end()
            self._done += 1
            if self._done >= self._microbatches:
                self._end_iteration()
        except Exception as error:
            client.say_once("after the backward of %s: %r", type(self._model).__name__, error)

    def _after_optimizer_step(self, optimizer, *_):
        try:
            if self._done is None:
                return
            stepped = next((parameter for group in optimizer.param_groups for parameter in group["params"]), None)
            if any(parameter is stepped for parameter in self._model.parameters()):
                self._end_iteration()
        except Exception as error:
            client.say_once("after an optimizer's step: %r", error)

    def _begin(self, instruction):
        self._open = instruction
        client.on_instruction_begin(instruction, self._done, 0)

    def _end(self):
        instruction, self._open = self._open, None
        client.on_instruction_end(instruction, self._done, 0)

    def _end_iteration(self):
        if self._open in ("forward", "backward"):
            self._end()
        self._open = None
        if self._done is not None:
            self._done = None
            client.on_step_end()

    def _start(self):
        if self._asked_to_start:
            return
        self._asked_to_start = True
        if client.current() is None:
            known = {
                "schedule": "1f1b",
                "microbatches": self._microbatches,
                "pp_degree": 1,
                "pp_rank": 0,
                "facts": {"framework": "torch"},
            }
            client.start(**merged({**known, **_place(self._options)}, self._options))


def install(model, microbatches=1, **options):
    """Follows the calls of the model; idempotent. The first training step starts the client unless it already runs."""
    existing = vars(model).get(_MARK)
    if existing is not None:
        return existing
    loop = Loop(model, microbatches, options)
    loop.watch_calls()
    return loop


def uninstall(model):
    existing = vars(model).get(_MARK)
    if existing is not None:
        existing.uninstall()


def _gradients_wanted():
    return sys.modules["torch"].is_grad_enabled()


def _in_backward():
    task = getattr(sys.modules["torch"]._C, "_current_graph_task_id", None)  # torch 2.0 and later
    return task is not None and task() != -1


def _tensors(output):
    """Returns the tensors in a tensor, list, dict, or object with attributes (as models of Hugging Face return)."""
    if hasattr(output, "register_hook"):
        return [output]
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        return [tensor for part in output for tensor in _tensors(part)]
    return [value for value in getattr(output, "__dict__", {}).values() if hasattr(value, "register_hook")]


def _place(options):
    """Returns this rank's position among the data-parallel replicas, each of tp_degree ranks (default 1)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return {}
    rank, world, tp = distributed.get_rank(), distributed.get_world_size(), options.get("tp_degree", 1)
    return {"rank": rank, "world_size": world, "dp_rank": rank // tp, "tp_rank": rank % tp, "dp_degree": world // tp}
