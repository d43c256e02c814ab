"""torchrun --max-restarts: a rank is killed under the plan, and all ranks start again. The job goes on, iterations are
counted from the start of the process, the plan is followed again, no clock stays locked, and processes that a rank forks or
spawns do not touch its client. Runs in the root that make_root.sh makes."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from run_job import free_port
from server import Server

HERE = Path(__file__).parent
RANKS, MICROBATCHES, TIME_SCALE, HIGHEST_MHZ = 2, 4, 0.5, 1500


class Restart(unittest.TestCase):
    def run_job(self, **environment):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_elastic.")))
        server = Server(self, folder / "data")
        server.push_sample("small", folder, RANKS, MICROBATCHES, TIME_SCALE, 90)
        torchrun = [
            sys.executable, "-B", HERE / "torchrun_without_libuv.py", "--master-port", free_port(), "--nproc-per-node", RANKS,
            "--max-restarts", 1, "--monitor-interval", 0.2, HERE / "elastic_rank.py", folder, server.url, "small",
        ]  # fmt: skip
        environment = {**os.environ, "TIME_SCALE": str(TIME_SCALE), **environment}
        ran = subprocess.run(list(map(str, torchrun)), env=environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(ran.returncode, 0, ran.stdout[-2000:] + ran.stderr[-6000:])
        files = [[folder / f"{attempt}.{rank}.json" for rank in range(RANKS)] for attempt in range(2)]
        attempts = [[json.loads(file.read_text()) for file in attempt] for attempt in files]
        for said in attempts[0] + attempts[1]:
            statistics = said["statistics"]
            self.assertEqual(statistics["state"], "planned")
            self.assertEqual(statistics["iteration"], said["trained"])
            self.assertGreater(statistics["clocks_requested"], 0)
            self.assertEqual((statistics["clocks_failed"], statistics["plans_dropped"], said["wrong"]), (0, 0, []))
            self.assertEqual(said["clock_before"], HIGHEST_MHZ)
            self.assertEqual(said["elsewhere"], {"worker": True, "spawned": True})
        for said in attempts[1]:
            self.assertEqual(said["clock_after"], HIGHEST_MHZ)
        jobs = [{said["job"] for said in attempt} for attempt in attempts]
        self.assertEqual([len(of_attempt) for of_attempt in jobs], [1, 1])
        return server, [of_attempt.pop() for of_attempt in jobs], attempts

    def test_the_job_goes_on_in_the_same_store(self):
        server, (before, after), attempts = self.run_job()
        self.assertEqual(after, before)
        self.assertEqual(server.ask(f"/v1/jobs/{after}")["state"], "deployed")
        for first, second in zip(*attempts):
            self.assertEqual(second["statistics"]["planned_iteration_time_s"], first["statistics"]["planned_iteration_time_s"])

    def test_another_job_is_registered_where_each_attempt_has_its_own_store(self):
        _, (before, after), attempts = self.run_job(STORES="own")
        self.assertNotEqual(after, before)


if __name__ == "__main__":
    unittest.main()
