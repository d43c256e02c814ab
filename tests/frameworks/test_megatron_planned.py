"""The example with Megatron Core, of the checkout at /megatron ($PERSEUS_MEGATRON), on simulated GPUs: the job gets a plan,
its GPUs follow it, and their own counters confirm the predicted savings. Runs in the root that make_root.sh makes; 77
where there is no checkout.

usage: test_megatron_planned.py [RANKS] [online]    online: the job is profiled while it trains, some 200 steps more
"""

import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

from measured_steps import BLOCKING_POWER_W, change_pct, medians, skip_if_late
from run_job import printed
from server import Server

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "megatron_gpt.py"
ONLINE = "online" in sys.argv[1:]
RANKS = next((int(argument) for argument in sys.argv[1:] if argument.isdigit()), 2)
MICROBATCHES = 4
WARM_UP, MEASURED = 5, 20  # steps of the example, at its begin and under the plan
TIME_SCALE = float(os.environ.get("TIME_SCALE", "1"))  # more where the machine is busy


def measured(folder):
    """Of a step before Perseus and of one under its plan: medians."""
    ranks = [json.loads((folder / f"steps{rank}.json").read_text(encoding="utf-8")) for rank in range(RANKS)]
    before = [steps[WARM_UP : WARM_UP + MEASURED] for steps in ranks]
    return medians(before), medians([steps[-MEASURED:] for steps in ranks])


class Planned(unittest.TestCase):
    def test_1f1b(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_megatron.")))
        server = Server(self, folder / "data")
        server.watch()
        if not ONLINE:
            server.push_sample("gpt", folder, RANKS, MICROBATCHES, TIME_SCALE, BLOCKING_POWER_W)
        os.environ["TIME_SCALE"] = str(TIME_SCALE)
        profile = [] if ONLINE else ["gpt"]
        outputs = printed("on_simulated_gpu.py", RANKS, folder, EXAMPLE, server.url, *profile, limit_s=1200)
        output = outputs[0]
        print(output, file=sys.stderr)
        job, saved_by_example = re.search(r"planned after \d+ steps, job (\S+)[\s\S]*saved (\S+) % of energy", output).groups()
        before, planned = measured(folder)
        saved_pct, slower_pct = change_pct(before, planned)
        predicted_pct, predicted_slower_pct = server.predicted(job)
        figures = {
            "ranks": RANKS, "predicted saving %": predicted_pct, "measured saving %": saved_pct,
            "predicted slowdown %": predicted_slower_pct, "measured slowdown %": slower_pct,
            "saving % printed": float(saved_by_example), "before": before, "planned": planned,
        }  # fmt: skip
        print(json.dumps(figures), file=sys.stderr)
        self.assertGreater(predicted_pct, 1)
        skip_if_late(self, before, planned)
        self.assertAlmostEqual(saved_pct, predicted_pct, delta=2)
        self.assertLess(slower_pct, predicted_slower_pct + 3)


if __name__ == "__main__":
    if not Path("/megatron/megatron/core").is_dir():
        print("PERSEUS_MEGATRON names no checkout of Megatron-LM")
        sys.exit(77)
    os.environ["PYTHONPATH"] += ":/megatron"
    unittest.main(argv=sys.argv[:1])
