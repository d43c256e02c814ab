"""The adapter for DeepSpeed's pipeline engine, on a stand-in that executes instructions as it does."""

import importlib.util
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

from recording import RecordedTest
from tables import computations, table_of

from perseus import client
from perseus.adapters import deepspeed

REAL = importlib.util.find_spec("deepspeed") is not None
sys.path.insert(0, str(Path(__file__).parent / "stand_ins"))

from deepspeed.runtime.pipe import engine, schedule  # noqa: E402


class FillAndDrain(schedule.PipeSchedule):
    def steps(self):
        yield [schedule.ForwardPass(i) for i in range(self.micro_batches)]
        yield [schedule.BackwardPass(i) for i in range(self.micro_batches)]


class DeepSpeed(RecordedTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(deepspeed.uninstall)

    def test_1f1b(self):
        for ranks, microbatches in ((4, 8), (4, 2), (1, 3), (3, 5)):
            table = table_of("1f1b", ranks, microbatches)
            for rank in range(ranks):
                with self.subTest(ranks=ranks, rank=rank, microbatches=microbatches):
                    self.restart()
                    deepspeed.uninstall()
                    deepspeed.install()
                    pipeline = engine.PipelineEngine(engine.Grid((rank, ranks)), microbatches)
                    self.assertEqual(pipeline.train_batch(), "loss")
                    self.assertEqual(self.computations(), computations(table, rank))
                    self.assertEqual(len(pipeline.ran), 2 * microbatches)
                    self.assertEqual(self.steps(), ["step_begin 0", "step_end"])

    def test_place(self):
        deepspeed.install(server="http://host", job="j")
        engine.PipelineEngine(engine.Grid((1, 4), (2, 3), (1, 2)), 5, global_rank=11).train_batch()
        options = self.options()
        self.assertEqual((options["ranks"], options["degrees"]), ("11 2 1 1", "3 4 2"))
        self.assertEqual((options["microbatches"], options["schedule"]), ("5", "1f1b"))
        self.assertEqual((options["facts"], options["server"]), ("framework=deepspeed", "http://host"))

    def test_the_batch_size_is_set_anew(self):
        deepspeed.install()
        pipeline = engine.PipelineEngine(engine.Grid((1, 2)), 4)
        for microbatches in (4, 8, 4):
            pipeline.micro_batches = microbatches  # as set_train_batch_size() does
            pipeline.train_batch()
        self.assertEqual(self.microbatches(), [4, 8, 4])
        self.assertEqual(self.computations()[8:24], computations(table_of("1f1b", 2, 8), 1))
        self.assertEqual(self.calls().count("stop"), 0)

    def test_evaluation_of_another_size_leaves_training_alone(self):
        deepspeed.install()
        pipeline = engine.PipelineEngine(engine.Grid((0, 2)), 8)
        pipeline.train_batch()
        pipeline.micro_batches = 3
        pipeline.eval_batch()
        pipeline.micro_batches = 8
        pipeline.train_batch()
        self.assertEqual(self.microbatches(), [8, 8])
        self.assertEqual(self.computations()[-16:], computations(table_of("1f1b", 2, 8), 0))

    def test_another_place_registers_anew(self):
        deepspeed.install()
        engine.PipelineEngine(engine.Grid((1, 4)), 4, global_rank=1).train_batch()
        engine.PipelineEngine(engine.Grid((0, 3)), 4, global_rank=0).train_batch()
        self.assertEqual(self.options()["degrees"], "1 3 1")
        self.assertEqual(self.calls().count("stop"), 1)

    def test_evaluation(self):
        deepspeed.install()
        pipeline = engine.PipelineEngine(engine.Grid((0, 2)), 3)
        pipeline.eval_batch()
        self.assertIsNone(client.current())
        pipeline.train_batch()
        pipeline.eval_batch()
        self.assertEqual([line for line in self.steps() if "begin" in line], ["step_begin 0", "step_begin 1"])

    def test_exceptions_pass(self):
        deepspeed.install()
        pipeline = engine.PipelineEngine(engine.Grid((0, 2)), 3)
        pipeline.fails = True
        with self.assertRaises(FloatingPointError):
            pipeline.train_batch()
        self.assertEqual(self.calls()[-2:], ["end 0 0 0", "step_end"])

    def test_install_and_uninstall(self):
        before, table = dict(vars(engine.PipelineEngine)), dict(engine.PipelineEngine._INSTRUCTION_MAP)
        first = deepspeed.install()
        self.assertIs(deepspeed.install(), first)
        self.assertNotEqual(engine.PipelineEngine._INSTRUCTION_MAP, table)
        deepspeed.uninstall()
        deepspeed.uninstall()
        self.assertEqual(dict(vars(engine.PipelineEngine)), before)
        self.assertEqual(engine.PipelineEngine._INSTRUCTION_MAP, table)

    def test_a_schedule_of_its_own(self):
        """Microbatches in order, where there is no _step_to_micro_batch."""

        deepspeed.install()
        engine.PipelineEngine(engine.Grid((0, 2)), 3)._exec_schedule(FillAndDrain(3, 2, 0))
        self.assertEqual(self.computations(), computations(table_of("gpipe", 2, 3), 0))

    def test_the_order_of_a_schedule_of_its_own(self):
        """It is registered as what it runs, not as 1f1b."""
        deepspeed.install()
        engine.PipelineEngine(engine.Grid((1, 2)), 3)._exec_schedule(FillAndDrain(3, 2, 1))
        options = self.options()
        self.assertNotIn("schedule", options)
        self.assertEqual(options["action_table"], "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n")

    def test_two_stages_a_rank(self):
        """An engine of another kind: its iterations are measured, its computations and its order are not known."""

        class DualPipeV(schedule.PipeSchedule):
            def steps(self):
                for chunk in range(2):
                    for i in range(self.micro_batches):
                        yield [schedule.ForwardPass(i + chunk * self.micro_batches)]
                for i in range(2 * self.micro_batches):
                    yield [schedule.BackwardPass(i)]

            def num_pipe_buffers(self):
                return 2 * self.micro_batches

        class DualPipeVEngine(engine.PipelineEngine):
            pass

        deepspeed.install(server="http://host")
        pipeline = DualPipeVEngine(engine.Grid((0, 2)), 4)
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(2):
                pipeline._exec_schedule(DualPipeV(4, 2, 0))
        self.assertIn("PipelineEngine is measured only, no job is registered", logged.output[0])
        self.assertIn("the order of DualPipeV is not known", logged.output[0])
        self.assertEqual((self.options()["server"], self.options().get("schedule")), ("", None))
        self.assertEqual(self.steps(), 2 * ["step_begin 0", "step_end"])
        self.assertEqual(len(pipeline.ran), 2 * 16)

    def test_evaluation_with_another_number_of_microbatches(self):
        deepspeed.install()
        pipeline = engine.PipelineEngine(engine.Grid((0, 2)), 8)
        for _ in range(2):
            pipeline.train_batch()
            pipeline._exec_schedule(schedule.InferenceSchedule(3, 2, 0))
        training = computations(table_of("1f1b", 2, 8), 0)
        found = [entry for entry in self.computations()]
        self.assertEqual([entry for entry in found if entry in training], found)
        self.assertEqual(found[: len(training)], training)
        self.assertEqual([line for line in self.steps() if "begin" in line], 2 * ["step_begin 0", "step_begin 1"])

    def test_two_engines(self):
        deepspeed.install()
        first, second = (engine.PipelineEngine(engine.Grid((0, 2)), 3) for _ in range(2))
        with self.assertLogs("perseus", "WARNING") as logged:
            for _ in range(2):
                first.train_batch()
                second.train_batch()
        self.assertEqual([line for line in self.steps() if "begin" in line], 2 * ["step_begin 0", "step_begin 1"])
        self.assertEqual(sum("another PipelineEngine trains, too" in line for line in logged.output), 1)

    def test_another_version(self):
        class Engine:
            grid = None

            def _exec_schedule(self, pipe_schedule):
                return "executed"

        with self.assertLogs("perseus", "WARNING") as logged:
            deepspeed.install(Engine, types.SimpleNamespace())
            for _ in range(2):
                self.assertEqual(Engine()._exec_schedule(None), "executed")
        self.assertIn("Engine has no ForwardPass in this version", logged.output[0])

    def test_no_deepspeed(self):
        with mock.patch.dict(sys.modules, {"deepspeed.runtime.pipe.engine": None}):
            with self.assertLogs("perseus", "WARNING"):
                self.assertIsNone(deepspeed.install())
            deepspeed.uninstall()

    @unittest.skipUnless(REAL, "DeepSpeed is not installed")
    def test_the_real_one_has_these_names(self):
        stand_ins = sys.path.pop(0)
        try:
            with mock.patch.dict(sys.modules):
                for name in [name for name in sys.modules if name.partition(".")[0] == "deepspeed"]:
                    del sys.modules[name]
                real = importlib.import_module("deepspeed.runtime.pipe.schedule")
                for stage in range(4):
                    theirs, ours = real.TrainSchedule(8, 4, stage), schedule.TrainSchedule(8, 4, stage)
                    for step in range(22):
                        self.assertEqual(theirs._step_to_micro_batch(step), ours._step_to_micro_batch(step))
        finally:
            sys.path.insert(0, stand_ins)


if __name__ == "__main__":
    unittest.main()
