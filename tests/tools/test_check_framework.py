#!/usr/bin/env python3
"""tools/check_framework.py sees that a framework lacks or changed what the adapters rely on.

usage: test_check_framework.py REPOSITORY
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1))
ENGINE, SCHEDULE = "deepspeed/runtime/pipe/engine.py", "deepspeed/runtime/pipe/schedule.py"
SCHEDULES = "megatron/core/pipeline_parallel/schedules.py"

DEEPSPEED = {
    "version.txt": "0.17.0\n",
    ENGINE: """
class PipelineEngine:
    def __init__(self):
        self.grid, self.micro_batches, self.global_rank = 0, 0, 0
    def train_batch(self):
        self._exec_schedule(schedule.TrainSchedule())
    def eval_batch(self):
        self._exec_schedule(schedule.InferenceSchedule())
    def _exec_forward_pass(self, buffer_id): ...
    def _exec_backward_pass(self, buffer_id): ...
    _INSTRUCTION_MAP = {schedule.ForwardPass: _exec_forward_pass, schedule.BackwardPass: _exec_backward_pass}
    def _exec_schedule(self, pipe_schedule):
        self._INSTRUCTION_MAP[0]
""",
    SCHEDULE: """
class PipeSchedule:
    def __init__(self, micro_batches, stages, stage_id):
        self.micro_batches, self.stages, self.stage_id = micro_batches, stages, stage_id
class TrainSchedule(PipeSchedule):
    def steps(self):
        yield [ForwardPass(0), BackwardPass(0)]
class InferenceSchedule(PipeSchedule): ...
class BufferOpInstruction:
    def __init__(self, buffer_id, **kwargs): ...
class ForwardPass(BufferOpInstruction): ...
class BackwardPass(BufferOpInstruction): ...
""",
    "deepspeed/runtime/pipe/topology.py": "class PipelineParallelGrid:\n"
    + "".join(
        f"    def get_{kind}_parallel_{what}(self): ...\n"
        for kind in ("pipe", "data", "slice")
        for what in ("world_size", "rank")
    ),
}
ITERATION = """
def forward_backward_{}(*, model, num_microbatches, forward_only):
    forward_step(), backward_step()
"""
KINDS = ("no_pipelining", "pipelining_without_interleaving", "pipelining_with_interleaving")
MEGATRON = {
    "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 12\nPATCH = 3\n",
    SCHEDULES: """
def forward_step(forward_step_func, model, current_microbatch=None):
    forward_step_func()
def backward_step(input_tensor, output_tensor, output_tensor_grad, model_type, config): ...
def get_schedule_table(num_microbatches, num_model_chunks, microbatch_group_size_per_vp_stage): ...
def get_forward_backward_func():
    return """
    + ", ".join("forward_backward_" + kind for kind in KINDS)
    + "".join(ITERATION.format(kind) for kind in KINDS),
    "megatron/core/model_parallel_config.py": "class ModelParallelConfig:\n"
    "    microbatch_group_size_per_vp_stage: int = None\n",
    "megatron/core/parallel_state.py": "".join(
        f"def get_{kind}_parallel_{what}(): ...\n"
        for kind in ("pipeline_model", "data", "tensor_model", "context")
        for what in ("world_size", "rank")
    ),
}


class CheckFramework(unittest.TestCase):
    def check(self, framework, files, *changes):
        """changes: (file, old, new). The exit code, and the lines that are not OK."""
        with tempfile.TemporaryDirectory(prefix="perseus_contracts.") as folder:
            for file, text in files.items():
                for changed, old, new in changes:
                    if changed == file:
                        self.assertIn(old, text)
                        text = text.replace(old, new)
                path = Path(folder) / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            command = [sys.executable, "-B", REPOSITORY / "tools" / "check_framework.py", f"--{framework}", folder]
            result = subprocess.run(command, capture_output=True, text=True)
        lines = result.stdout.splitlines()[1:]
        return result.returncode, [line for line in lines if not line.startswith("OK ")]

    def sees(self, framework, files, change, expected):
        code, lines = self.check(framework, files, change)
        self.assertEqual(code, 1)
        self.assertTrue(any(expected in line for line in lines), lines)

    def test_complete_ones_pass(self):
        self.assertEqual(self.check("megatron", MEGATRON), (0, []))
        self.assertEqual(self.check("deepspeed", DEEPSPEED), (0, []))

    def test_megatron_changes(self):
        for change, expected in (
            ((SCHEDULES, "def backward_step(", "def backward_pass("), "missing "),
            ((SCHEDULES, "current_microbatch=None", "microbatch=None"), "no parameter current_microbatch"),
            ((SCHEDULES, "(*, model", "(model"), "model, num_microbatches, forward_only must be keyword-only"),
            ((SCHEDULES, "    forward_step(), ", "    "), "it does not use forward_step"),
            ((SCHEDULES, "def get_sch", "def forward_backward_dual_pipe(): ...\ndef get_sch"), "new: forward_backward_dual_pipe"),
            (("megatron/core/parallel_state.py", "get_data_parallel_rank()", "get_data_parallel_rank(group)"), "it needs group"),
            (("megatron/core/package_info.py", "MINOR = 12", "MINOR = 19"), "no parameter vp_stage"),
            (("megatron/core/package_info.py", "MINOR = 12", "MINOR = 5"), "versions before 0.6"),
        ):
            with self.subTest(change):
                self.sees("megatron", MEGATRON, change, expected)

    def test_deepspeed_changes(self):
        for change, expected in (
            ((ENGINE, "schedule.BackwardPass: _", "schedule.Backward: _"), "no entry for BackwardPass"),
            ((ENGINE, "self._INSTRUCTION_MAP[0]", "pass"), "it does not use _INSTRUCTION_MAP"),
            ((ENGINE, "(self, pipe_schedule)", "(self, buffers, pipe_schedule)"), "parameter 1 is not pipe_schedule"),
            ((SCHEDULE, "self, buffer_id", "self, slot_id"), "parameter 1 is not buffer_id"),
            ((SCHEDULE, "class BackwardPass", "class BackwardWeightPass: ...\nclass BackwardPass"), "new: BackwardWeightPass"),
        ):
            with self.subTest(change):
                self.sees("deepspeed", DEEPSPEED, change, expected)

    def test_a_parameter_that_moved(self):
        stage = "class _PipelineStageBase:\n    def forward_one_chunk(self, args, fwd_chunk_id): ...\n"
        files = {"torch/version.py": "'2.6.0'", "torch/distributed/pipelining/stage.py": stage}
        _, lines = self.check("torch", files)
        self.assertTrue(any("parameter 1 is not fwd_chunk_id" in line for line in lines), lines)

    def test_no_checkout(self):
        self.assertEqual(self.check("deepspeed", MEGATRON)[0], 2)


if __name__ == "__main__":
    unittest.main()
