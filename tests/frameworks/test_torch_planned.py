"""torch.distributed.pipelining on simulated GPUs, end to end: the job is profiled while it trains, gets a plan, and its
GPUs follow it; the savings match the prediction. Runs in the root that make_root.sh makes."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

from measured_steps import change_pct, medians, skip_if_late
from run_job import run
from server import Server

MICROBATCHES = 4


class OfAJob(unittest.TestCase):
    def follow(self, name, least_pct, ranks=2, time_scale=0.5):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_frameworks.")))
        server = Server(self, folder / "data")
        server.watch()
        arguments, environment = (name, MICROBATCHES, folder, server.url, ""), {"TIME_SCALE": str(time_scale)}
        said = run("planned_rank.py", ranks, *arguments, limit_s=900, environment=environment)
        for rank in said:
            self.assertEqual(rank["statistics"]["state"], "planned", rank["status"])
        predicted_pct, predicted_slowdown_pct = server.predicted(said[0]["job"])
        without, planned = (medians([rank[phase] for rank in said]) for phase in ("without", "planned"))
        saved_pct, slowdown_pct = change_pct(without, planned)
        figures = {
            "schedule": name, "ranks": ranks, "steps until the plan": said[0]["until_plan"],
            "predicted saving %": predicted_pct, "measured saving %": saved_pct, "predicted slowdown %": predicted_slowdown_pct,
            "measured slowdown %": slowdown_pct, "without": without, "planned": planned,
        }  # fmt: skip
        print(json.dumps(figures), file=sys.stderr)
        for rank in said:
            self.assertEqual(rank["statistics"]["plans_dropped"], 0)
            self.assertEqual(rank["statistics"]["clocks_failed"], 0)
            self.assertEqual(rank["status"]["wrong"], [])
        self.assertGreaterEqual(predicted_pct, least_pct)
        skip_if_late(self, without, planned)
        self.assertAlmostEqual(saved_pct, predicted_pct, delta=2)
        self.assertLess(slowdown_pct, 3)


class Planned(OfAJob):
    def test_1f1b(self):
        self.follow("1F1B", 3)

    def test_interleaved_zero_bubble(self):
        self.follow("InterleavedZeroBubble", 1)

    def test_interleaved_zero_bubble_by_the_runtime(self):
        self.follow("InterleavedZeroBubble@runtime", 0)  # two balanced ranks have next to no slack

    def test_zbv_zero_bubble(self):
        self.follow("ZBVZeroBubble", 0)

    def test_4_ranks_1f1b(self):
        self.follow("1F1B", 3, ranks=4, time_scale=1)


class FourRanks(OfAJob):
    """Takes five minutes: runs if it is named."""

    def test_interleaved_1f1b(self):
        self.follow("Interleaved1F1B", 3, ranks=4, time_scale=1)

    def test_zbv_zero_bubble(self):
        self.follow("ZBVZeroBubble", 3, ranks=4, time_scale=1)


if __name__ == "__main__":
    unittest.main(defaultTest="Planned")
