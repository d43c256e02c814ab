"""torchtitan 0.1 itself, of the checkout at /torchtitan ($PERSEUS_TORCHTITAN), 2 ranks: its Trainer with pipeline parallelism, as
test_megatron.py has it. Runs in the root that make_root.sh makes; 77 where there is none, or a later
one."""

import os
import sys
import unittest
from pathlib import Path

from job_results import row_of_1f1b
from run_job import run

RANKS, MICROBATCHES, ITERATIONS = 2, 4, 4  # steps of the schedule: the optimizer's step accumulates two
COMPUTATIONS = {"GPipe": [8, 8], "1F1B": [8, 8], "Interleaved1F1B": [16, 16], "LoopedBFS": [16, 16]}


class Trainer(unittest.TestCase):
    def test_2_ranks(self):
        said_by = run("torchtitan_rank.py", RANKS, *COMPUTATIONS)
        for schedule, counts in COMPUTATIONS.items():
            with self.subTest(schedule):
                self.check([said[schedule] for said in said_by], schedule, counts)

    def check(self, said_by, schedule, counts):
        for rank, said in enumerate(said_by):
            recorded = said["recorded"]
            self.assertEqual(recorded["wrong"], [])
            iteration = recorded["computations"][: counts[rank]]
            self.assertEqual(len(set(map(tuple, iteration))), counts[rank])
            self.assertEqual(recorded["computations"], ITERATIONS * iteration)
            self.assertEqual(recorded["steps"], ITERATIONS * ["train"])
            if schedule == "1F1B":
                self.assertEqual(iteration, row_of_1f1b(rank, RANKS, MICROBATCHES))
            options = recorded["options"]
            place = {"rank": rank, "pp_rank": rank, "pp_degree": RANKS, "dp_degree": 1, "microbatches": MICROBATCHES}
            self.assertEqual({name: options.get(name) for name in place}, place)
            for mode in ("recorded", "failing"):
                self.assertEqual(said[mode]["losses"], said["without"]["losses"])
                self.assertEqual(said[mode]["weights"], said["without"]["weights"])
            self.assertGreaterEqual(said["failing"]["failures"], ITERATIONS * 3 * counts[rank])
        self.assertEqual(len(set(said_by[-1]["without"]["losses"])), ITERATIONS)  # it learns


if __name__ == "__main__":
    if not Path("/torchtitan/torchtitan").is_dir():
        print("PERSEUS_TORCHTITAN names no checkout of torchtitan")
        sys.exit(77)
    if not Path("/torchtitan/torchtitan/config_manager.py").is_file():
        print("PERSEUS_TORCHTITAN names a torchtitan later than 0.1, which needs a later PyTorch than this root's 2.6")
        sys.exit(77)
    os.environ["PYTHONPATH"] += ":/torchtitan"
    unittest.main()
