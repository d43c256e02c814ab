"""Loops without a pipeline: the adapter reports what the model recorded, also after an exception, and training is the
same bit for bit without Perseus, with it, and when each of its calls raises. Runs in the root that make_root.sh makes."""

import unittest

from run_job import run

MICROBATCHES = 3


class Loops(unittest.TestCase):
    def follow(self, wrapper, ranks=2):
        for rank, said in enumerate(run("plain_rank.py", ranks, wrapper, MICROBATCHES)):
            with self.subTest(wrapper, rank=rank):
                for mode in ("recorded", "failing"):
                    self.assertEqual(said[mode]["losses"], said["without"]["losses"])
                    self.assertEqual(said[mode]["weights"], said["without"]["weights"])
                recorded = said["recorded"]
                iteration = [[kind, i, 0] for i in range(MICROBATCHES) for kind in ("forward", "backward")]
                # The last forward of the second iteration raises: if torch reports it, it is a computation that ends.
                whole, cut = recorded["computations"][:6], recorded["computations"][6 : -2 * len(iteration)]
                self.assertEqual(whole, iteration)
                self.assertEqual(cut, iteration[: len(cut)])
                self.assertIn(len(cut), (4, 5))
                self.assertEqual(recorded["computations"][-12:], 2 * iteration)
                self.assertEqual(len(recorded["wrong"]), len(cut) - 4)
                # That iteration turns into evaluation.
                steps = 2 * ["train", "evaluate"] + ["evaluate"] + 2 * ["train", "evaluate"]
                self.assertEqual(recorded["steps"], steps)
                self.assertEqual((recorded["options"]["dp_rank"], recorded["options"]["dp_degree"]), (rank, ranks))

    def test_an_iteration_ends_with_the_step_of_the_optimizer_of_the_model(self):
        (said,) = run("plain_rank.py", 1, "short", MICROBATCHES)
        recorded = said["recorded"]
        iteration = [[kind, i, 0] for i in range(MICROBATCHES) for kind in ("forward", "backward")]
        self.assertEqual(recorded["computations"], iteration + iteration[:2] + 2 * iteration)
        self.assertEqual(recorded["wrong"], [])
        self.assertEqual(recorded["weights"], said["without"]["weights"])

    def test_a_module(self):
        self.follow("module", ranks=1)

    def test_ddp(self):
        self.follow("ddp")

    def test_fsdp(self):
        self.follow("fsdp")

    def test_checkpointed(self):
        self.follow("checkpoint", ranks=1)

    def test_compiled(self):
        self.follow("compile", ranks=1)


if __name__ == "__main__":
    unittest.main()
