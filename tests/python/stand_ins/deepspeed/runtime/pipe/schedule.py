"""The parts of deepspeed.runtime.pipe.schedule that an adapter uses. Written from DeepSpeed 0.14 and later."""


class PipeInstruction:
    def __init__(self, **kwargs):
        self.kwargs = kwargs


class OptimizerStep(PipeInstruction):
    pass


class ReduceGrads(PipeInstruction):
    pass


class BufferOpInstruction(PipeInstruction):
    def __init__(self, buffer_id, **kwargs):
        super().__init__(buffer_id=buffer_id, **kwargs)


class LoadMicroBatch(BufferOpInstruction):
    pass


class ForwardPass(BufferOpInstruction):
    pass


class BackwardPass(BufferOpInstruction):
    pass


class SendActivation(BufferOpInstruction):
    pass


class RecvActivation(BufferOpInstruction):
    pass


class PipeSchedule:
    def __init__(self, micro_batches, stages, stage_id):
        self.micro_batches, self.stages, self.stage_id = micro_batches, stages, stage_id

    def num_pipe_buffers(self):
        return self.micro_batches

    def __iter__(self):
        self.it = None
        return self

    def __next__(self):
        if self.it is None:
            self.it = self.steps()
        return next(self.it)


class InferenceSchedule(PipeSchedule):
    def steps(self):
        for microbatch in range(self.micro_batches):
            yield [LoadMicroBatch(microbatch % 2), ForwardPass(microbatch % 2)]


class TrainSchedule(PipeSchedule):
    """1F1B in 2 (M + S - 1) slots: a stage's forwards are in slots of its own parity, its backwards in the others."""

    def steps(self):
        total = 2 * (self.micro_batches + self.stages - 1)
        for step_id in range(total):
            microbatch, is_forward = self._step_to_micro_batch(step_id)
            instructions = []
            if 0 <= microbatch < self.micro_batches:
                buffer = microbatch % self.num_pipe_buffers()
                if is_forward:
                    instructions = [RecvActivation(buffer), ForwardPass(buffer), SendActivation(buffer)]
                else:
                    instructions = [BackwardPass(buffer)]
            if step_id == total - 1:
                instructions += [ReduceGrads(), OptimizerStep()]
            yield instructions

    def num_pipe_buffers(self):
        return max(2, min(self.stages - self.stage_id, self.micro_batches))

    def _step_to_micro_batch(self, step_id):
        is_forward = step_id % 2 == self.stage_id % 2
        if is_forward:
            return (step_id - self.stage_id) // 2, True
        return (step_id - (2 * self.stages - 1 - self.stage_id)) // 2, False
