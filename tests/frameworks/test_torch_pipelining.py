"""torch.distributed.pipelining itself: the adapter reports what the model recorded, and training is the same bit for
bit without Perseus, with it, and when it fails in one way or another. Runs in the root that make_root.sh makes."""

import re
import shutil
import sys
import unittest
from pathlib import Path

import torch
from run_job import run

MICROBATCHES, ITERATIONS = 4, 3
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
KINDS = {"F": "forward", "B": "backward", "I": "input_gradient", "W": "weight_gradient"}


def row_of(table, rank):
    """The computations of a rank in the table that goes to the server: (instruction, microbatch, chunk)."""
    cells = re.findall(r"(\d+)([FBIW])(\d+)", table.splitlines()[rank])  # a WAIT cell has none
    chunk_of = {stage: chunk for chunk, stage in enumerate(sorted({int(stage) for stage, _, _ in cells}))}
    return [[KINDS[kind], int(microbatch), chunk_of[int(stage)]] for stage, kind, microbatch in cells]


class Job(unittest.TestCase):
    def follow(self, name, computations_of_rank, table=True, microbatches=MICROBATCHES, features=(), world=None):
        """computations_of_rank: how many a rank of the pipeline has in an iteration."""
        ranks = world or len(computations_of_rank)
        said_by = run("pipeline_rank.py", ranks, name, microbatches, *features)
        without, recorded, failing = ([said[mode] for said in said_by] for mode in ("without", "recorded", "failing"))
        for rank, said in enumerate(recorded):
            place = rank * len(computations_of_rank) // ranks
            with self.subTest(name, rank=rank):
                self.assertEqual(said["wrong"], [])
                self.assertEqual(len(said["computations"]), ITERATIONS * computations_of_rank[place])
                if table or "action_table" in said["options"]:  # later versions have tables of more schedules
                    expected = row_of(said["options"]["action_table"], place)
                    self.assertEqual(said["computations"], ITERATIONS * expected)
                else:
                    self.assertIn("schedule", said["options"])
                self.assertEqual(said["options"]["microbatches"], microbatches)
                self.assertEqual(said["options"]["pp_rank"], place)
            calls = 3 * computations_of_rank[place] + 2  # set_speed, begin, end; of the step, begin and end
            self.assertGreaterEqual(failing[rank]["failures"], ITERATIONS * calls)
        self.assertGreaterEqual(sum(len(said["losses"]) for said in without), ITERATIONS * microbatches)
        self.same(without, recorded, failing)

    def same(self, without, *others):
        for key in ("losses", "weights"):
            for other in others:
                self.assertEqual([said[key] for said in other], [said[key] for said in without])


class Schedules(Job):
    def test_gpipe(self):
        self.follow("GPipe", [8, 8], table=False)

    def test_1f1b(self):
        self.follow("1F1B", [8, 8], table=False)

    def test_interleaved_1f1b(self):
        self.follow("Interleaved1F1B", [16, 16])

    def test_looped_bfs(self):
        self.follow("LoopedBFS", [16, 16])

    def test_interleaved_zero_bubble(self):
        self.follow("InterleavedZeroBubble", [20, 24])

    def test_interleaved_zero_bubble_by_the_runtime(self):
        self.follow("InterleavedZeroBubble@runtime", [20, 24])

    def test_zbv_zero_bubble(self):
        self.follow("ZBVZeroBubble", [20, 24])

    def test_dual_pipe_v(self):
        """By PyTorch's own schedule, which overlaps a forward and a backward; before 2.8 by a table without overlap."""
        self.follow("DualPipeV", [17, 18])

    def test_4_ranks(self):
        self.follow("1F1B", [16] * 4, table=False, microbatches=8)
        self.follow("Interleaved1F1B", [32] * 4, microbatches=8)
        self.follow("InterleavedZeroBubble", [40, 48, 48, 48], microbatches=8)
        self.follow("ZBVZeroBubble", [40, 48, 48, 48], microbatches=8)


class Features(Job):
    def test_gradient_accumulation(self):
        self.follow("1F1B", [8, 8], table=False, features=["accumulate"])

    def test_evaluation_between_iterations(self):
        self.follow("1F1B", [8, 8], table=False, features=["evaluate"])

    @unittest.skipIf(VERSION < (2, 9), "this PyTorch has no eval()")
    def test_eval_between_iterations(self):
        self.follow("1F1B", [8, 8], table=False, features=["eval"])
        self.follow("Interleaved1F1B", [16, 16], features=["eval"])

    @unittest.skipIf(VERSION < (2, 10) and sys.version_info >= (3, 14), "this PyTorch compiles nothing with this Python")
    def test_compiled_stages(self):
        if VERSION < (2, 9):  # later versions refuse compiled stages where backwards are split
            self.follow("InterleavedZeroBubble", [20, 24], features=["compile"])
        self.follow("Interleaved1F1B", [16, 16], features=["compile"])

    @unittest.skipUnless(shutil.which("g++") and Path("/usr/include/ATen").is_dir(), "inductor needs g++ and libtorch-dev")
    def test_stages_compiled_by_inductor(self):
        self.follow("1F1B", [8, 8], table=False, features=["inductor"])

    def test_ddp_stages(self):
        self.follow("1F1B", [8, 8], table=False, features=["ddp"], world=4)

    def test_fsdp_stages(self):
        self.follow("InterleavedZeroBubble@runtime", [20, 24], features=["fsdp"], world=4)

    def test_an_exception_reaches_the_caller_and_the_next_step_works(self):
        for feature, error in (
            ("raise-forward", "RuntimeError"),  # PyTorch's, of which the stage's is the cause
            ("raise-backward", "RuntimeError"),
            ("raise-loss", "Refused"),
        ):
            with self.subTest(feature):
                (said,) = run("pipeline_rank.py", 1, "1F1B", MICROBATCHES, feature)
                raised = said["without"]["losses"][MICROBATCHES]
                self.assertTrue(raised[0].startswith(error), raised)
                self.assertEqual(raised[-1], "Refused: microbatch 1 is refused")
                self.same([said["without"]], [said["recorded"]], [said["failing"]])
                self.assertLessEqual(len(said["recorded"]["wrong"]), 1)  # the computation that raised
                whole = said["recorded"]["computations"]
                self.assertEqual(whole[:8], whole[-8:])


class Failures(Job):
    """With the library itself: training is unchanged."""

    def train(self, reason, *features, **environment):
        said_by = run(
            "pipeline_rank.py", 2, "1F1B", MICROBATCHES, "without", "real", *features, environment=environment
        )
        self.same([said["without"] for said in said_by], [said["real"] for said in said_by])
        for said in said_by:
            self.assertIn(reason, said["real"]["reason"])
        return said_by

    def test_no_library(self):
        self.train("/nowhere/libperseus.so", PERSEUS_LIBRARY="/nowhere/libperseus.so")

    def test_no_server(self):
        self.train("", PERSEUS_SERVER="http://127.0.0.1:9", PERSEUS_START_LIMIT_S="0.2", PERSEUS_DEVICE="none")

    def test_a_helper_that_is_killed(self):
        for said in self.train("", "kill-helper"):
            self.assertTrue(said["real"]["active"])


if __name__ == "__main__":
    unittest.main()
