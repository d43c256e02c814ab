"""The example with Megatron Core, of the checkout at /megatron ($PERSEUS_MEGATRON), on simulated GPUs: the job is profiled
while it trains, gets a plan, and its GPUs follow it; what it saves is what was predicted. Runs in the root that make_root.sh
makes; 77 where there is no checkout."""

import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

from run_job import printed
from server import Server

EXAMPLE = Path(__file__).parents[2] / "examples" / "megatron_gpt.py"

MOST_LOST = 0.15


class Planned(unittest.TestCase):
    def test_1f1b(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_megatron.")))
        server = Server(self, folder / "data")
        outputs = printed("on_simulated_gpu.py", 2, folder, EXAMPLE, server.url, limit_s=1200)
        output = outputs[0]
        print(output, file=sys.stderr)
        lost = [re.search(r"lost (\S+) s of (\S+) s", each).groups() for each in outputs]
        share = max(float(lost_s) / float(all_s) for lost_s, all_s in lost)
        if share > MOST_LOST:  # times and energies are then this machine's, not the profile's
            self.skipTest(f"this machine is too busy: the simulated GPU had to wait {share:.0%} of its time")
        steps, job = re.search(r"planned after (\d+) steps, job (\S+)", output).groups()
        saved, slower = map(float, re.search(r"saved (\S+) % of energy, (\S+) % slower", output).groups())
        predicted_saved, predicted_slower = server.predicted(job)
        print(f"predicted: {predicted_saved:.2f} % saved, {predicted_slower:.2f} % slower", file=sys.stderr)
        self.assertGreater(predicted_saved, 1)
        self.assertAlmostEqual(saved, predicted_saved, delta=2)
        self.assertLess(slower, 3)


if __name__ == "__main__":
    if not Path("/megatron/megatron/core").is_dir():
        print("PERSEUS_MEGATRON names no checkout of Megatron-LM")
        sys.exit(77)
    os.environ["PYTHONPATH"] += ":/megatron"
    unittest.main()
