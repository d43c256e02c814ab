"""torch.distributed.pipelining itself, 2 ranks: what the adapter reports is what the model saw run, and training is the
same bit for bit without Perseus, with it, and when each of its calls raises. Runs in the root that make_root.sh makes."""

import unittest

from run_job import run

RANKS, MICROBATCHES, ITERATIONS = 2, 4, 3
KINDS = {"F": "forward", "B": "backward", "I": "input_gradient", "W": "weight_gradient"}


def row_of(table, rank):
    """The computations of a rank in the table that goes to the server: (instruction, microbatch, chunk)."""
    cells = [(int(cell[0]), cell[1], int(cell[2:])) for cell in table.splitlines()[rank].split(",")]
    chunk_of = {stage: chunk for chunk, stage in enumerate(sorted({stage for stage, _, _ in cells}))}
    return [[KINDS[kind], microbatch, chunk_of[stage]] for stage, kind, microbatch in cells]


class Schedules(unittest.TestCase):
    def follow(self, name, computations_of_rank, table=True):
        """computations_of_rank: how many a rank has in an iteration."""
        ranks = run("pipeline_rank.py", RANKS, name, MICROBATCHES)
        without, recorded, failing = ([said[mode] for said in ranks] for mode in ("without", "recorded", "failing"))
        for rank, said in enumerate(recorded):
            with self.subTest(name, rank=rank):
                self.assertEqual(said["wrong"], [])
                self.assertEqual(len(said["computations"]), ITERATIONS * computations_of_rank[rank])
                if table:
                    expected = row_of(said["options"]["action_table"], rank)
                    self.assertEqual(said["computations"], ITERATIONS * expected)
                else:
                    self.assertIn("schedule", said["options"])
                self.assertEqual(said["options"]["microbatches"], MICROBATCHES)
            calls = 3 * computations_of_rank[rank] + 2  # set_speed, begin, end; of the step, begin and end
            self.assertGreaterEqual(failing[rank]["failures"], ITERATIONS * calls)
        self.assertEqual(sum(len(said["losses"]) for said in without), ITERATIONS * MICROBATCHES)
        for key in ("losses", "weights"):
            expected = [said[key] for said in without]
            self.assertEqual([said[key] for said in recorded], expected)
            self.assertEqual([said[key] for said in failing], expected)

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

    def test_zbv_zero_bubble(self):
        self.follow("ZBVZeroBubble", [20, 24])

    def test_dual_pipe_v_loaded_from_a_table(self):
        self.follow("DualPipeV", [17, 18])


if __name__ == "__main__":
    unittest.main()
