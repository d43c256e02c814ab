"""Exports of the Torch profiler: `perseus trace` reads them, knows the schedule and names the longest stage. Runs in the root
that make_root.sh makes.
"""

import json
import os
import subprocess
import tempfile
import unittest

from run_job import run

RANKS, MICROBATCHES = 4, 6


class Exports(unittest.TestCase):
    def explain(self, schedule):
        with tempfile.TemporaryDirectory() as folder:
            files = [said["file"] for said in run("profiled_rank.py", RANKS, schedule, MICROBATCHES, folder)]
            command = [os.environ["PERSEUS_PROGRAM"], "trace", *files, "--effort", "low", "--json", "--no-progress"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            answer = json.loads(done.stdout)
            error = 100 * answer["replay_error"]["with_links"]
            print(f"{schedule}: {answer['schedule']}, replay error {error:.1f} %, doubt {answer['doubt']}, {answer['causes']}")
            return answer

    def understand(self, schedule, name):
        answer = self.explain(schedule)
        self.assertEqual(answer["names"], "torch")
        self.assertEqual(answer["schedule"], name)
        self.assertEqual((answer["pipelines"], answer["ranks"], answer["microbatches"]), (1, RANKS, MICROBATCHES))
        self.assertEqual(len(answer["steps"]), 4)
        medians = {(time["stage"], time["instruction"]): time["median_s"] for time in answer["times"]}
        for kind in ("forward", "backward"):  # whatever else runs here: it has twice the layers
            self.assertGreater(medians[RANKS - 1, kind], 1.2 * medians[1, kind])

    def test_gpipe(self):
        self.understand("GPipe", "gpipe")

    def test_1f1b_with_names_of_the_user(self):
        self.understand("1F1B", "1f1b")


if __name__ == "__main__":
    unittest.main()
