"""The parts of deepspeed.runtime.pipe.engine that an adapter uses. Written from DeepSpeed 0.14 and later."""

from types import MethodType

from deepspeed.runtime.pipe import schedule


class Grid:
    """PipelineParallelGrid's methods for one rank."""

    def __init__(self, pipe, data=(0, 1), model=(0, 1)):
        self._pipe, self._data, self._model = pipe, data, model

    def get_pipe_parallel_rank(self):
        return self._pipe[0]

    def get_pipe_parallel_world_size(self):
        return self._pipe[1]

    def get_data_parallel_rank(self):
        return self._data[0]

    def get_data_parallel_world_size(self):
        return self._data[1]

    def get_slice_parallel_rank(self):
        return self._model[0]

    def get_slice_parallel_world_size(self):
        return self._model[1]


class PipelineEngine:
    def __init__(self, grid, micro_batches, global_rank=0):
        self.grid, self.micro_batches, self.global_rank = grid, micro_batches, global_rank
        self.stage_id, self.num_stages = grid.get_pipe_parallel_rank(), grid.get_pipe_parallel_world_size()
        self.ran, self.fails = [], False

    def train_batch(self, data_iter=None):
        self._exec_schedule(schedule.TrainSchedule(self.micro_batches, self.num_stages, self.stage_id))
        return "loss"

    def eval_batch(self, data_iter=None):
        self._exec_schedule(schedule.InferenceSchedule(self.micro_batches, self.num_stages, self.stage_id))
        return "loss"

    def _exec_forward_pass(self, buffer_id):
        self.ran.append(("forward", buffer_id))
        if self.fails:
            raise FloatingPointError("not finite")

    def _exec_backward_pass(self, buffer_id):
        self.ran.append(("backward", buffer_id))

    def _exec_load_micro_batch(self, buffer_id):
        pass

    def _exec_send_activations(self, buffer_id):
        pass

    def _exec_recv_activations(self, buffer_id):
        pass

    def _exec_reduce_grads(self):
        pass

    def _exec_optimizer_step(self):
        pass

    _INSTRUCTION_MAP = {
        schedule.OptimizerStep: _exec_optimizer_step,
        schedule.ReduceGrads: _exec_reduce_grads,
        schedule.LoadMicroBatch: _exec_load_micro_batch,
        schedule.ForwardPass: _exec_forward_pass,
        schedule.BackwardPass: _exec_backward_pass,
        schedule.SendActivation: _exec_send_activations,
        schedule.RecvActivation: _exec_recv_activations,
    }

    def _exec_schedule(self, pipe_schedule):
        for step_cmds in pipe_schedule:
            for cmd in step_cmds:
                if type(cmd) not in self._INSTRUCTION_MAP:
                    raise RuntimeError(f"{self.__class__.__name__} does not understand instruction {cmd!r}")
                self._exec_instr = MethodType(self._INSTRUCTION_MAP[type(cmd)], self)
                self._exec_instr(**cmd.kwargs)
