"""Lightning, Hugging Face's Trainer and Accelerate themselves, of the packages at /trainers ($PERSEUS_TRAINERS, made by
`pip install --target`): their callbacks report what the model recorded, and training is the same bit for bit without
Perseus, with it, and when each of its calls raises. Runs in the root that make_root.sh makes; 77 without these packages."""

import os
import sys
import unittest
from pathlib import Path

from run_job import run

PACKAGES = Path("/trainers")
WHOLE = [["step", "train"], *(["begin", kind, i, 0] for i in range(2) for kind in ("forward", "backward")), ["optimizer"]]
CUT = [*WHOLE[:3], ["optimizer"]]
EVALUATION = ["step", "evaluate"]


def of_one_evaluation(order):
    """Without further steps of the same evaluation: a trainer names each batch, and calls of the model may show one more."""
    return [entry for i, entry in enumerate(order) if entry != EVALUATION or order[i - 1] != EVALUATION]


class Trainers(unittest.TestCase):
    def follow(self, trainer, epoch):
        if not (PACKAGES / trainer).is_dir():
            self.skipTest(f"PERSEUS_TRAINERS has no {trainer}")
        for ranks in (1, 2):
            for rank, said in enumerate(run("trainer_rank.py", ranks, trainer)):
                with self.subTest(ranks=ranks, rank=rank):
                    recorded = said["recorded"]
                    self.assertEqual(recorded["wrong"], [])
                    self.assertEqual(of_one_evaluation(recorded["order"]), 2 * epoch)
                    place = {"job_name": "test", "microbatches": 2, "pp_degree": 1, "pp_rank": 0}
                    if ranks > 1:
                        place.update(rank=rank, dp_rank=rank, dp_degree=ranks)
                    self.assertEqual({name: recorded["options"].get(name) for name in place}, place)
                    for mode in ("recorded", "failing"):
                        self.assertEqual(said[mode]["losses"], said["without"]["losses"])
                        self.assertEqual(said[mode]["weights"], said["without"]["weights"])
                    self.assertGreater(len(set(said["without"]["losses"])), 4)
                    self.assertGreater(said["failing"]["failures"], 3 * len(recorded["computations"]))

    def test_lightning(self):
        self.follow("lightning", [*WHOLE, *WHOLE, *CUT, EVALUATION])

    def test_transformers(self):
        self.follow("transformers", [*3 * WHOLE, EVALUATION])

    def test_accelerate(self):
        self.follow("accelerate", WHOLE + WHOLE + CUT)


if __name__ == "__main__":
    if not any(PACKAGES.iterdir()):
        print("PERSEUS_TRAINERS names no folder with lightning, transformers or accelerate")
        sys.exit(77)
    os.environ["PYTHONPATH"] += f":{PACKAGES}"
    unittest.main()
