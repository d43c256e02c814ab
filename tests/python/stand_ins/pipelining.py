"""The parts of torch.distributed.pipelining that an adapter uses: names, arguments and order of calls, no tensors.

Written from PyTorch's schedules.py and stage.py as of late 2025. One process is one rank; nothing is sent.
"""

import re
import threading
from collections import Counter
from enum import Enum
from typing import NamedTuple, Optional


class _ComputationType(str, Enum):
    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"


class _Action(NamedTuple):
    stage_index: int
    computation_type: _ComputationType
    microbatch_index: Optional[int] = None
    sub_actions: Optional[tuple] = None

    def __repr__(self):
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        microbatch = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{microbatch}"

    __str__ = __repr__

    @staticmethod
    def from_str(text):
        text = text.strip()
        if not text:
            return None
        if text.startswith("("):
            parts, kind = text[1:].split(")")
            subs = tuple(_Action.from_str(part) for part in parts.split(";"))
            return _Action(-1, _ComputationType(kind), None, subs)
        stage, kind, microbatch = re.fullmatch(r"(\d+)([A-Z_]+)(\d*)", text).groups()
        return _Action(int(stage), _ComputationType(kind), int(microbatch) if microbatch else None)


class PipelineStage:
    def __init__(self, stage_index, num_stages, group_rank, group_size):
        self.stage_index, self.num_stages = stage_index, num_stages
        self.group_rank, self.group_size = group_rank, group_size
        self.has_backward = False
        self.done = []
        self.fails_at = None
        self.dw_builder = None

    @property
    def is_last(self):
        return self.stage_index == self.num_stages - 1

    def _do(self, kind, microbatch):
        self.done.append((kind, microbatch))
        if self.fails_at == (kind, microbatch):
            raise FloatingPointError("the loss is not finite")
        return f"{self.stage_index}{kind}{microbatch}"

    def forward_one_chunk(self, fwd_chunk_id, args, kwargs=None, save_forward_output=True):
        return self._do("F", fwd_chunk_id)

    def backward_one_chunk(self, bwd_chunk_id, loss=None, full_backward=True, last_backward=False):
        if not self.has_backward:
            return None
        if full_backward or self._splits():
            return self._do("B" if full_backward else "I", bwd_chunk_id)
        return None

    def _splits(self):
        """As PyTorch: the first stage's W runs the full backward."""
        return self.stage_index != 0 or self.dw_builder is not None

    def backward_weight_one_chunk(self, bwd_chunk_id, last_backward=False):
        if not self.has_backward:
            return None
        return self._do("W" if self._splits() else "B", bwd_chunk_id)

    def perform_reduce_grad(self, grad_scale_factor):
        pass


class _PipelineSchedule:
    def __init__(self, n_microbatches, loss_fn=None):
        self._n_microbatches, self._loss_fn = n_microbatches, loss_fn
        self._has_backward = loss_fn is not None

    def _maybe_compute_loss(self, stage, output, target_mbs, mb_index):
        if stage.is_last and self._has_backward:
            self._loss_fn(output, mb_index)

    def eval(self, *args, target=None, losses=None, **kwargs):
        had = self._has_backward
        try:
            self._has_backward = False
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = had


def _split(schedule, args, kwargs, arg_mbs, kwarg_mbs):
    """Batches that the program splits itself come as arg_mbs and kwarg_mbs, as torchtitan's do since August 2026."""
    count = schedule._n_microbatches
    return arg_mbs or [args] * count, kwarg_mbs or [kwargs] * count


class PipelineScheduleSingle(_PipelineSchedule):
    def __init__(self, stage, n_microbatches, loss_fn=None):
        super().__init__(n_microbatches, loss_fn)
        self._stage = stage
        self._num_stages = stage.num_stages
        self.pipeline_order = self._get_pipeline_order()

    def _get_pipeline_order(self):
        return None

    def step(self, *args, target=None, losses=None, return_outputs=True, arg_mbs=None, kwarg_mbs=None, **kwargs):
        self._stage.has_backward = self._has_backward
        self._step_microbatches(*_split(self, args, kwargs, arg_mbs, kwarg_mbs), return_outputs)
        return "output" if self._stage.is_last else None


class ScheduleGPipe(PipelineScheduleSingle):
    def _step_microbatches(self, arg_mbs, kwarg_mbs, return_outputs):
        for i in range(self._n_microbatches):
            output = self._stage.forward_one_chunk(i, arg_mbs[i], kwarg_mbs[i], save_forward_output=return_outputs)
            self._maybe_compute_loss(self._stage, output, None, i)
        for i in range(self._n_microbatches):
            self._stage.backward_one_chunk(i, loss=None, last_backward=i == self._n_microbatches - 1)
        self._stage.perform_reduce_grad(self._n_microbatches)

    def _get_pipeline_order(self):
        order = {}
        for rank in range(self._num_stages):
            microbatches = range(self._n_microbatches)
            forwards = [_Action(rank, _ComputationType.FORWARD, i) for i in microbatches]
            backwards = [_Action(rank, _ComputationType.FULL_BACKWARD, i) for i in microbatches]
            order[rank] = [*forwards, *backwards, _Action(rank, _ComputationType.REDUCE_GRAD)]
        return order


class Schedule1F1B(PipelineScheduleSingle):
    def _step_microbatches(self, arg_mbs, kwarg_mbs, return_outputs):
        total = self._n_microbatches
        ahead = min(total, self._num_stages - self._stage.stage_index)
        for i in range(ahead):
            output = self._stage.forward_one_chunk(i, arg_mbs[i], kwarg_mbs[i], save_forward_output=return_outputs)
            self._maybe_compute_loss(self._stage, output, None, i)
        for i in range(total):
            self._stage.backward_one_chunk(i, loss=None, last_backward=i == total - 1)
            if ahead + i < total:
                output = self._stage.forward_one_chunk(
                    ahead + i, arg_mbs[ahead + i], kwarg_mbs[ahead + i], save_forward_output=return_outputs
                )
                self._maybe_compute_loss(self._stage, output, None, ahead + i)
        self._stage.perform_reduce_grad(total)

    def _get_pipeline_order(self):
        """With PyTorch's bug: the last rank's forwards are those of microbatches 1 to M."""
        order = {}
        for rank in range(self._num_stages):
            ahead = self._num_stages - 1 - rank
            forwards = [_Action(rank, _ComputationType.FORWARD, i) for i in range(ahead)]
            row, last = list(forwards), max(ahead - 1, 0)
            for i in range(self._n_microbatches - ahead):
                row.append(_Action(rank, _ComputationType.FORWARD, last + 1 + i))
                row.append(_Action(rank, _ComputationType.FULL_BACKWARD, i))
            for i in range(self._n_microbatches - ahead, self._n_microbatches):
                row += [None, _Action(rank, _ComputationType.FULL_BACKWARD, i)]
            order[rank] = row
        return order


class PipelineScheduleMulti(_PipelineSchedule):
    def __init__(self, stages, n_microbatches, loss_fn=None):
        super().__init__(n_microbatches, loss_fn)
        self._stages = stages
        self._num_stages = stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        self.pipeline_order = {}

    def step(self, *args, target=None, losses=None, return_outputs=True, arg_mbs=None, kwarg_mbs=None, **kwargs):
        for stage in self._stages:
            stage.has_backward = self._has_backward
        self._step_microbatches(*_split(self, args, kwargs, arg_mbs, kwarg_mbs), return_outputs)
        return "output" if any(stage.is_last for stage in self._stages) else None

    def _load_csv(self, text):
        """Of a text, where PyTorch's takes a file's name."""
        for rank, row in enumerate(text.splitlines()):
            self.pipeline_order[rank] = [_Action.from_str(cell) for cell in row.split(",")]

    def _step_microbatches(self, arg_mbs, kwarg_mbs, return_outputs):
        self._backwards = Counter()
        for action in self.pipeline_order[self.rank]:
            if action is not None:
                self._perform(action, arg_mbs, kwarg_mbs, return_outputs)

    def _perform(self, action, arg_mbs, kwarg_mbs, return_outputs):
        kind, i = action.computation_type, action.microbatch_index
        stage = {stage.stage_index: stage for stage in self._stages}[action.stage_index]
        if kind in (_ComputationType.FULL_BACKWARD, _ComputationType.BACKWARD_WEIGHT):
            self._backwards[action.stage_index] += 1
        last = self._backwards[action.stage_index] == self._n_microbatches
        if kind == _ComputationType.FORWARD:
            output = stage.forward_one_chunk(i, arg_mbs[i], kwarg_mbs[i], save_forward_output=return_outputs)
            self._maybe_compute_loss(stage, output, None, i)
        elif kind == _ComputationType.FULL_BACKWARD:
            stage.backward_one_chunk(i, loss=None, full_backward=True, last_backward=last)
        elif kind == _ComputationType.BACKWARD_INPUT:
            stage.backward_one_chunk(i, loss=None, full_backward=False, last_backward=False)
        elif kind == _ComputationType.BACKWARD_WEIGHT:
            stage.backward_weight_one_chunk(i, last_backward=last)
        elif kind == _ComputationType.REDUCE_GRAD:
            stage.perform_reduce_grad(self._n_microbatches)


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._comp_type_to_function_map = {}
        self.pipeline_order_with_comms = {}

    def register_custom_function(self, computation_type, custom_function):
        self._comp_type_to_function_map[computation_type] = custom_function

    def _load_csv(self, text, format="compute_only"):
        if format == "compute_only":
            super()._load_csv(text)
            self.pipeline_order_with_comms = {rank: self._lowered(row) for rank, row in self.pipeline_order.items()}
        else:
            for rank, row in enumerate(text.splitlines()):
                self.pipeline_order_with_comms[rank] = [_Action.from_str(cell) for cell in row.split(",")]

    def _lowered(self, row):
        """Some communication around the computations; bubbles go."""
        lowered = []
        for action in row:
            if action is not None:
                stage = (action.sub_actions or [action])[0].stage_index
                lowered += [_Action(stage, _ComputationType.UNSHARD), action]
        return lowered

    def _step_microbatches(self, arg_mbs, kwarg_mbs, return_outputs):
        self._backwards = Counter()
        for action in self.pipeline_order_with_comms[self.rank]:
            if action.computation_type in self._comp_type_to_function_map:
                self._comp_type_to_function_map[action.computation_type](action, self)
            elif action.computation_type == _ComputationType.OVERLAP_F_B:
                for sub_action in action.sub_actions:
                    self._perform(sub_action, arg_mbs, kwarg_mbs, return_outputs)
            else:
                self._perform(action, arg_mbs, kwarg_mbs, return_outputs)


class ScheduleInterleaved1F1B(_PipelineScheduleRuntime):
    pass


class ScheduleInterleavedZeroBubble(_PipelineScheduleRuntime):
    pass


class ScheduleZBVZeroBubble(_PipelineScheduleRuntime):
    pass


class ScheduleDualPipeV(_PipelineScheduleRuntime):
    pass


def overlap_callback(action, schedule):
    """As torchtitan's: the forward runs in a thread beside the backward."""
    stages = {stage.stage_index: stage for stage in schedule._stages}
    forward, backward = action.sub_actions
    thread = threading.Thread(
        target=stages[forward.stage_index].forward_one_chunk, args=(forward.microbatch_index, ())
    )
    thread.start()
    stages[backward.stage_index].backward_one_chunk(backward.microbatch_index)
    thread.join()
