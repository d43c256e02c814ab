"""A small model that records each computation as it runs: a reference for the adapters' reports.

A stage's tensors carry the number of their microbatch in the last column, so the witness does not rely on any order.
Marks are identity functions of autograd inside the model: a mark on an activation runs backward exactly when a gradient
of an activation is computed, a mark on a weight exactly when a gradient of a weight is.
"""

import torch

WIDTH = 8


class _Mark(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, ran):
        ctx.ran = ran
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx, gradient):
        ctx.ran()
        return gradient, None


def _layer(hidden, weight):
    return torch.tanh(hidden @ weight)


class Stage(torch.nn.Module):
    """Two layers: even the first stage, whose input needs no gradient, has an activation's gradient in its backward.
    compiled: the layers are, by inductor; the marks between them are not, as a compiled graph has no place for them."""

    def __init__(self, index, log, compiled=False):
        super().__init__()
        self.index, self.log = index, log
        self.layer = torch.compile(_layer, dynamic=False) if compiled else _layer
        generator = torch.Generator().manual_seed(index)
        for name in ("first", "second"):
            weight = torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5
            setattr(self, name, torch.nn.Parameter(weight))

    def forward(self, tensor):
        hidden, number = tensor[:, :WIDTH], tensor[:, WIDTH:].detach()
        microbatch = int(number[0])
        if torch._C._current_graph_task_id() != -1:  # in a backward
            self.log.append(("ran", "recomputed", microbatch, self.index))
        elif torch.is_grad_enabled():  # torch infers shapes by a forward of zeros, before the first microbatch
            self.log.append(("ran", "forward", microbatch, self.index))
        hidden = self._mark(hidden, "activation", microbatch)
        hidden = self.layer(hidden, self._mark(self.first, "weight", microbatch))
        hidden = self._mark(hidden, "activation", microbatch)
        hidden = self.layer(hidden, self._mark(self.second, "weight", microbatch))
        return torch.cat([hidden, number], 1)

    def _mark(self, tensor, kind, microbatch):
        return _Mark.apply(tensor, lambda: self.log.append(("ran", kind, microbatch, self.index)))


def unseen(function, log):
    """Wraps the function: the log keeps what the adapter reports in it, not what the model runs."""

    def run(*args, **kwargs):
        length = len(log)
        try:
            return function(*args, **kwargs)
        finally:
            log[length:] = [entry for entry in log[length:] if entry[0] != "ran"]

    return run


def ignore_metadata_inference(stages, log):
    """Recent versions of PyTorch (2.14 does, 2.9 does not) run a forward and a backward before the first microbatch to learn
    shapes. The schedule does not have these computations."""
    for stage in stages:
        for name in ("_forward_metadata_inference", "_backward_metadata_inference"):
            if hasattr(stage, name):
                setattr(stage, name, unseen(getattr(stage, name), log))


class Loss:
    def __init__(self, last_stage, log):
        self.last_stage, self.log = last_stage, log

    def __call__(self, output, target):
        self.log.append(("ran", "forward", int(output[0, WIDTH]), self.last_stage))
        return torch.nn.functional.mse_loss(output[:, :WIDTH], target)


def batch(step, microbatches, size=2):
    """Input and target of one iteration, the microbatches numbered."""
    generator = torch.Generator().manual_seed(1000 + step)
    values = torch.randn(microbatches * size, 2 * WIDTH, generator=generator)
    numbers = torch.arange(microbatches).repeat_interleave(size).unsqueeze(1)
    return torch.cat([values[:, :WIDTH], numbers], 1), values[:, WIDTH:]


_KIND = {
    frozenset(["forward"]): "forward",
    frozenset(["activation", "weight"]): "backward",
    frozenset(["activation", "weight", "recomputed"]): "backward",
    frozenset(["activation"]): "input_gradient",
    frozenset(["weight"]): "weight_gradient",
}


def compared(log, chunk_of):
    """The computations that ran and were reported, in order, and a list of what is wrong with them. The log has
    ("begin" or "end", kind, microbatch, chunk) of the adapter and ("ran", what, microbatch, stage) of the model."""
    found, wrong, reported, inside = [], [], None, []
    for verb, *what in log:
        what = tuple(what)
        if verb == "begin":
            if reported is not None:
                wrong.append(f"{what} begins in {reported}")
            reported, inside = what, []
        elif verb == "ran":
            if reported is None:
                wrong.append(f"outside: {what}")
            inside.append(what)
        elif what != reported:
            wrong.append(f"{what} ends in {reported}")
            reported = None
        else:
            ran = {(_KIND.get(frozenset(kind for kind, *_ in inside)), m, chunk_of[stage]) for _, m, stage in inside}
            if ran != {reported}:
                wrong.append(f"{'empty' if not ran else 'wrong'}: {reported} reported, ran {sorted(map(str, ran))}")
            found.append(reported)
            reported = None
    if reported is not None:
        wrong.append(f"{reported} does not end")
    return found, wrong
