"""Connects training loops without a pipeline (plain, DDP or FSDP) to the client, as a pipeline of one stage.

    from perseus.adapters import plain
    plain.install(model, microbatches=1)      # options of perseus.client.start() may follow
    ...                                       # the loop as before

- A call of the model is a forward. Module.__call__ runs what the adapter puts in place of a compiled call (_Calls);
  before torch 2.1 it runs hooks.
- The backward begins when autograd has computed the gradient of the model's output, and ends when autograd has finished.
- An iteration begins with the first of `microbatches` forwards. It ends with the last backward, or earlier when an
  optimizer of the model steps, as trainers do with the last batches of an epoch.
- Calls without gradients between iterations are evaluation, a step each, at the highest clock; within an iteration they
  are ignored.
- A forward that a backward runs again (activation checkpointing of the whole model) belongs to the backward.
- A forward without a backward (an exception, an evaluation with gradients) ends the current iteration, which then counts as
  evaluation; the next iteration is complete again.
- Between two steps of the optimizer, forwards and backwards must alternate (_judge). Another number of them than
  `microbatches` is taken instead. A loop of another shape is neither measured nor planned; one line says what was seen.

Input:   the module that the loop calls, also the result of torch.compile or DistributedDataParallel; the number of calls per
         optimizer step.
Errors:  none reach the loop.

This module does not import torch; it uses the torch that the program has imported.
"""

import functools
import sys
import types
import weakref

from perseus import client
from perseus.adapters import installation
from perseus.adapters.installation import Installation, after_optimizer_steps, as_it_is, not_compiled, outside_of_graphs

_CALL = "_compiled_call_impl"  # Module.__call__ runs it, if there is one; not saved with the module
_IGNORED = "__jit_ignored_attributes__"  # by torch.jit.script
_LOOK_AT = (
    "calls of model.forward() or of a part of the model, and for torch.compile of a "
    "function that calls it (install() on what torch.compile returns)"
)
_MISFIT, _MISFITS = 2, 6  # a step of the optimizer that does not fit weighs as much as two that fit
_MOST_PARTS = 1000  # of an output


class Loop(Installation):
    """Follows one loop: before_forward() and after_forward() run around each forward, by themselves after watch_calls()."""

    def __init__(self, model, options, start=None):
        """options: those of install(), microbatches among them."""
        self.model, self._microbatches = weakref.ref(model), options.pop("microbatches", 1)
        super().__init__(model, options, _LOOK_AT, self._known, functools.partial(_place, options), start)
        self.calls, self._hooks = None, []
        self._done = None  # backwards of this iteration; None: outside of one
        self._open = None  # the open computation
        self._evaluates = False  # since the last iteration
        self._named = False  # a trainer names its batches of evaluation: calls may show none of them
        self._rejected = False
        self._optimizer_seen, self._misfits, self._other_count = False, 0, None
        self._count_anew()
        self._uninstalled = False
        after_optimizer_steps(self._after_optimizer_step)
        self._on_gradient = outside_of_graphs(self._backward_begins)

    def watch_calls(self):
        model = self.model()
        if not hasattr(model, _CALL):
            before, after = lambda *_: self.before_forward(), lambda module, input, output: self.after_forward(output)
            self._hooks = [model.register_forward_pre_hook(before), model.register_forward_hook(after)]
            return
        self.calls = _Calls(self, vars(model).get(_CALL))
        self.put(model, _CALL, self.calls)
        self.put(model, _IGNORED, [*getattr(model, _IGNORED, []), _CALL])

    def again(self, options):
        self._microbatches = options.pop("microbatches", 1)
        super().again(options)

    def uninstall(self, is_freed=False):
        self._uninstalled = True
        super().uninstall(is_freed)
        self.calls = None  # which other code may have wrapped
        for hook in self._hooks:
            hook.remove()
        if self._evaluates:
            client.on_step_end()
        self._evaluates = False
        self._end_iteration()

    def before_forward(self):
        try:
            kind = self._kind_of_call()
        except client.Refused:
            raise
        except Exception as error:
            client.ignore(error, "before the forward of %s: %r", self._name(), error)
            return
        if kind == "evaluate":
            self._evaluate()
        elif kind == "train":
            if self._done is None:
                client.on_step_begin()
                self._done, self._evaluates = 0, False
            self._begin("forward")

    def _kind_of_call(self):
        """Returns "train" for a forward, "evaluate" for a new step of evaluation, else None."""
        if self._rejected:
            return None
        if not _gradients_wanted():
            return None if self._named and self._evaluates else "evaluate"
        if _in_backward():
            if self._open != "backward":  # run again by reentrant checkpointing; the forward itself had no gradients
                self._count("forward")
            return None
        if not self.trains(self.model()):
            return None
        if self._open is not None:  # a forward without its backward
            self._end_iteration(is_whole=False)
        self._count("forward")
        return "train"

    def before_evaluation_batch(self):
        """For trainers, whose batches of evaluation calls do not always show."""
        self._named = True
        self._evaluate()

    def _evaluate(self):
        """A batch of evaluation begins: one step of the client, which ends with the next one."""
        if self._done is None:
            self._evaluates = True
            client.on_step_begin("evaluate")  # else the GPU would keep the clock of the next iteration's first computation

    def before_backward(self, loss):
        """For trainers that name the loss: there the forward ends. A second loss of a batch is another backward."""
        if self._open == "forward":
            self.after_forward(loss)
        else:
            self._count("backward")

    def after_forward(self, output):
        """Ends the forward. output: the tensor at which the backward begins (the model's output or the loss); None if the
        forward raised."""
        try:
            if self._open != "forward":
                return
            self._end()
            tensors = _differentiable(output)
            if not tensors:
                self._end_iteration(is_whole=False)  # the forward raised, or there is nothing to train
                return
            self._open = "no backward yet"
            self._forward = object()
            hook = functools.partial(self._on_gradient, self._forward)
            hook.__torch_unserializable__ = True  # torch.save(output) without a warning
            for tensor in tensors:
                tensor.register_hook(hook)
        except Exception as error:
            client.ignore(error, "after the forward of %s: %r", self._name(), error)

    def _backward_begins(self, forward, _):
        """torch calls it once per output tensor and backward; it returns None, so torch keeps the gradient."""
        try:
            if self._open == "no backward yet" and self._forward is forward:
                sys.modules["torch"].autograd.Variable._execution_engine.queue_callback(self._after_backward)
                self._count("backward")
                self._begin("backward")
            elif self._open != "backward":
                self._count("backward")  # of an earlier forward, or another one of the same, as for a gradient penalty
                if not self._optimizer_seen:
                    self._weigh(False)
        except Exception as error:
            client.ignore(error, "in the backward of %s: %r", self._name(), error)

    def _after_backward(self):
        try:
            if self._open != "backward":
                return
            self._end()
            self._done += 1
            if self._done >= self._microbatches:
                self._end_iteration()
                if not self._optimizer_seen:  # none of torch, or one that steps within the backward
                    self._weigh(self._alternate)
                    if not self._alternate:
                        self._count_anew()
        except Exception as error:
            client.ignore(error, "after the backward of %s: %r", self._name(), error)

    def _after_optimizer_step(self, optimizer):
        """Returns whether the loop is not followed any more."""
        try:
            model = self.model()
            if model is None and not self._uninstalled:
                self.uninstall(is_freed=True)
            if self._uninstalled:
                return True
            if self.calls is not None and vars(model).get(_CALL) is not self.calls:
                self.watch_calls()  # model.compile() has replaced them
            if self._rejected or _in_backward():  # an optimizer in the backward steps at each parameter
                return False
            stepped = next((parameter for group in optimizer.param_groups for parameter in group["params"]), None)
            if any(parameter is stepped for parameter in model.parameters()):
                self._optimizer_seen = True
                self._end_iteration()
                self._judge()
        except Exception as error:
            client.ignore(error, "after an optimizer's step: %r", error)
        return False

    def _count(self, kind):
        forwards, backwards = self._ran
        self._ran = (forwards + 1, backwards) if kind == "forward" else (forwards, backwards + 1)
        self._alternate = self._alternate and kind != self._last
        self._last = kind

    def _count_anew(self):
        """After a step of the optimizer."""
        self._ran, self._last, self._alternate = (0, 0), "backward", True

    def _judge(self):
        """Compares what ran since the last step of the optimizer with the shape of an iteration."""
        calls, fits = self._ran[0], self._alternate and self._last == "backward"
        if calls == 0 and fits:  # another optimizer of the model
            return
        self._weigh(fits)
        self._count_anew()
        if fits and calls == self._other_count != self._microbatches:
            client.say_once(
                "%s is called %d times before its optimizer steps: taken as the microbatches, not the %d of install()",
                self._name(),
                calls,
                self._microbatches,
            )
            self._microbatches = calls
        self._other_count = calls if fits else None

    def _weigh(self, fits):
        if fits:
            self._misfits = max(self._misfits - 1, 0)
            return
        self._misfits += _MISFIT
        if self._misfits >= _MISFITS and not self._rejected:
            self._rejected = True
            self.watch.end()
            self._evaluate()
            client.withhold(
                "this loop is neither measured nor planned: {} ran {} forward and {} backward passes in an iteration, not one "
                "backward after each forward. Write client.on_step_begin(), profiler.begin() and their ends around them "
                "instead (docs/adapters.md, Your own engine)".format(self._name(), *self._ran)
            )

    def _begin(self, instruction):
        self._open = instruction
        client.on_instruction_begin(instruction, self._done, 0)

    def _end(self):
        instruction, self._open = self._open, None
        client.on_instruction_end(instruction, self._done, 0)

    def _end_iteration(self, is_whole=True):
        trained = is_whole and (self._done or self._open == "backward")
        if self._open in ("forward", "backward"):
            self._end()
        self._open = None
        if self._done is not None:
            self._done = None
            if not trained:
                client.on_step_begin("evaluate")  # within the step: it was no training step
            client.on_step_end()

    def _known(self, *_):
        return {"schedule": "1f1b", "microbatches": self._microbatches, "facts": {"framework": "torch"}}

    def _name(self):
        return type(self.model()).__name__


class _Calls:
    """Runs in place of _call_impl() of the model, as its compiled form would; pickles and copies to None, which is none."""

    def __init__(self, loop, compiled):
        self._loop, self._compiled, self._is_compiling = loop, compiled, sys.modules["torch"].compiler.is_compiling
        self._is_fx_tracing = getattr(sys.modules.get("torch.fx._symbolic_trace"), "is_fx_tracing", None)
        self._before, self._after = as_it_is(loop.before_forward), as_it_is(loop.after_forward)
        not_compiled(_Calls.__call__.__code__)

    def __call__(self, *args, **kwargs):
        model, caller = self._loop.model(), sys._getframe(1)
        if caller.f_code.co_name == "_wrapped_call_impl" and caller.f_locals["self"] is not model:
            # A copy of the model's __dict__ has this, too: a replica of DataParallel.
            return caller.f_locals["self"]._call_impl(*args, **kwargs)
        call = self._compiled or model._call_impl
        replaced = self._loop.calls is not self  # by one around other code that calls this one
        by_fx = self._is_fx_tracing is not None and self._is_fx_tracing()
        if replaced or by_fx or self._is_compiling() or sys.modules["torch"]._C._get_tracing_state() is not None:
            return call(*args, **kwargs)
        self._before()
        output = None
        try:
            output = call(*args, **kwargs)
            return output
        finally:
            self._after(output)

    def __reduce__(self):
        return type(None), ()


@installation.checks_arguments
def install(model, microbatches=1, start=None, **options):
    """Follows the calls of the model; a second call changes the settings. The first training step starts the client unless
    it already runs. start: called in place of client.start()."""

    def wrap(model, options):
        if isinstance(model, type):
            raise TypeError("it is a class; allowed: a model")
        loop = Loop(model, options, start)
        loop.watch_calls()
        return loop

    return installation.install(lambda: model, {"microbatches": microbatches, **options}, wrap)


def uninstall(model):
    installation.uninstall(lambda: model)


def _gradients_wanted():
    return sys.modules["torch"].is_grad_enabled()


def _in_backward():
    task = getattr(getattr(sys.modules["torch"], "_C", None), "_current_graph_task_id", None)
    return task is not None and task() != -1


def _differentiable(output):
    """Returns the computed tensors that have a gradient, in lists, dicts and objects with attributes, at any depth. A leaf
    (a parameter that the model returns) is none: its hooks would stay, and run in the backward of every loss."""
    found, left = [], [output]
    for _ in range(_MOST_PARTS):
        if not left:
            break
        part = left.pop()
        if hasattr(part, "register_hook"):
            if part.requires_grad and part.grad_fn is not None:
                found.append(part)
        elif isinstance(part, dict):
            left += part.values()
        elif isinstance(part, (list, tuple, set)):
            left += part
        elif not isinstance(part, (type, types.ModuleType)) and not hasattr(part, "parameters"):
            left += getattr(part, "__dict__", {}).values()
    return found


def _place(options, *_):
    known = {"pp_degree": 1, "pp_rank": 0}
    if installation.in_world() is None:
        return known
    rank, world = installation.in_world()
    return {**known, "rank": rank, "world_size": world, **installation.replica(rank, world, options)}
