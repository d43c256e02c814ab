"""The Python of README and docs/adapters.md: every block compiles, and runs with stand-ins for its framework.

The blocks of Lightning, Hugging Face, Accelerate and Ray Train are only compiled.
"""

import ast
import atexit
import re
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

from recording import RecordedTest
from stand_ins import pipelining
from tables import computations, table_of

sys.path.insert(0, str(Path(__file__).parent / "stand_ins"))
from deepspeed.runtime.pipe import engine  # noqa: E402
from megatron.core import parallel_state  # noqa: E402
from megatron.core.pipeline_parallel import schedules  # noqa: E402

from perseus import client, measure  # noqa: E402
from perseus.adapters import deepspeed, megatron  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/adapters.md")
COMPILED_ONLY = "PerseusCallback"


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.M | re.S)


class Tensor:
    requires_grad, grad_fn = True, object()

    def __init__(self, torch):
        self._torch, self._hooks = torch, []

    def register_hook(self, hook):
        self._hooks.append(hook)

    def backward(self):
        for hook in self._hooks:
            hook("gradient")
        for after in self._torch.callbacks:
            after()
        self._torch.callbacks.clear()


class Module:
    """A torch.nn.Module with its forward hooks."""

    def __init__(self, torch):
        self._torch, self._before, self._after = torch, [], []

    def register_forward_pre_hook(self, hook):
        self._before.append(hook)
        return types.SimpleNamespace(remove=lambda: self._before.remove(hook))

    def register_forward_hook(self, hook, always_call=False):
        self._after.append(hook)
        return types.SimpleNamespace(remove=lambda: self._after.remove(hook))

    def parameters(self):
        return []

    def __call__(self, *input):
        for hook in self._before:
            hook(self, input)
        output = Tensor(self._torch)
        for hook in self._after:
            hook(self, input, output)
        return output


def torch_stand_in():
    torch = types.SimpleNamespace(callbacks=[], is_grad_enabled=lambda: True, version=types.SimpleNamespace(cuda=None))
    backward_engine = types.SimpleNamespace(queue_callback=torch.callbacks.append)
    torch.autograd = types.SimpleNamespace(Variable=types.SimpleNamespace(_execution_engine=backward_engine))
    return torch


class Documentation(RecordedTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(megatron.uninstall)
        self.addCleanup(deepspeed.uninstall)
        self.addCleanup(atexit.unregister, measure._print_that_none_came)
        self.torch = torch_stand_in()
        self.enterContext(mock.patch.dict(sys.modules, torch=self.torch))
        parallel_state.ranks = {"pipeline_model": (1, 4)}

    def names(self):
        """What the blocks take from the program around them: rank 1 of 4, and a model."""
        stage = pipelining.PipelineStage(1, 4, 1, 4)
        schedule = pipelining.Schedule1F1B(stage, 8, lambda *_: 0)
        config = types.SimpleNamespace(microbatch_group_size_per_vp_stage=None)

        def pretrain(*_):
            schedules.get_forward_backward_func()(
                forward_step_func=lambda iterator, model: "loss",
                data_iterator=iter(()),
                model=[types.SimpleNamespace(config=config)],
                num_microbatches=8,
                seq_length=1,
                micro_batch_size=1,
            )

        return {
            "Schedule1F1B": pipelining.Schedule1F1B,
            "stage": stage,
            "loss": lambda output, target: output,
            "x": "input",
            "y": "target",
            "trainer": types.SimpleNamespace(pp_schedule=schedule, train=lambda: schedule.step("input", target="target")),
            "engine": engine.PipelineEngine(engine.Grid((1, 4)), 8),
            "pretrain": pretrain,
            "model": Module(self.torch),
            "input": "input",
            "data": [("input", "target")],
        }

    def run_block(self, block):
        self.restart()
        megatron.uninstall()
        deepspeed.uninstall()
        names = self.names()
        exec(compile(block, "block", "exec"), names)
        self.assertEqual(client._said, set())
        return names

    def test_every_block_compiles(self):
        for page in PAGES:
            for block in blocks(page):
                with self.subTest(page=page, block=block):
                    ast.parse(block)
        self.assertGreaterEqual(len(blocks("README.md")), 2)
        self.assertGreaterEqual(len(blocks("docs/adapters.md")), 7)

    def test_every_block_of_a_pipeline_measures_what_runs(self):
        tested = set()
        for page in PAGES:
            for block in blocks(page):
                name = next((n for n in ("torch_pipelining", "megatron", "deepspeed") if f"import {n}" in block), None)
                if name is None:
                    continue
                with self.subTest(page=page, block=block):
                    microbatches = int((re.search(r"n_microbatches=(\d+)", block) or [0, 8])[1])
                    self.run_block(block)
                    self.assertEqual(self.computations(), computations(table_of("1f1b", 4, microbatches), 1))
                    self.assertRegex(self.options()["server"], "^http://")
                    tested.add((page, name))
        self.assertEqual(len(tested), 4)

    def test_loops_without_a_pipeline(self):
        once = [("forward", 0, 0), ("backward", 0, 0)]
        measured = next(block for block in blocks("README.md") if "measure.loop" in block)
        names = self.run_block(measured)
        names["model"]("input").backward()
        self.assertEqual(self.computations(), once)
        self.assertEqual(self.options()["server"], "")
        self.run_block(next(block for block in blocks("docs/adapters.md") if "plain.install" in block and "for " in block))
        self.assertEqual(self.computations(), once)

    def test_your_own_loop(self):
        self.run_block(next(block for block in blocks("docs/adapters.md") if "profiler.begin" in block))
        self.assertEqual(self.calls(), ["set_speed 0 -1 -1", "begin 0 -1 -1", "end 0 -1 -1"])
        self.assertEqual(self.options()["schedule"], "1f1b")

    def test_every_other_block_runs(self):
        for page in PAGES:
            for block in blocks(page):
                if COMPILED_ONLY not in block:
                    with self.subTest(page=page, block=block):
                        self.run_block(block)


if __name__ == "__main__":
    unittest.main()
