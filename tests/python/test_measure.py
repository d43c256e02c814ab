"""perseus.measure: the report's text, and a process that measures without a server and prints it at its end."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

os.environ["PERSEUS_LIBRARY"] = str(Path(os.environ["PERSEUS_BUILT_PACKAGE"]) / "perseus" / "lib" / "libperseus.so")

from perseus import client, measure  # noqa: E402


def status(**changed):
    work = {"chunk": 0, "clock_mhz": 1410, "power_w": 300.0, "power_stddev_w": 3.0, "samples": 8}
    return {
        "rank": 2,
        "iteration": 7,
        "counter_period_s": 0.02,
        "last_iteration_energy_j": 12.5,
        "profile": [
            {**work, "work": "forward", "time_s": 0.01},
            {**work, "work": "backward", "chunk": 1, "time_s": 0.02, "power_stddev_w": 200.0},
            {**work, "work": "blocking", "power_w": 80.0, "time_s": 0, "samples": 0},
        ],
        "last_step": {
            "iteration": 6,
            "time_s": 0.1,
            "computations": [
                {"instruction": "forward", "begin_s": 0.0, "end_s": 0.01},
                {"instruction": "backward", "begin_s": 0.05, "end_s": 0.1},
            ],
        },
        "wrong": [],
        **changed,
    }


class Report(unittest.TestCase):
    def test_a_row_for_each_work_and_clock(self):
        lines = measure.text_of(status()).splitlines()
        self.assertEqual(lines[0], "perseus: rank 2: 7 iterations, the last 0.1 s, 12.5 J")
        self.assertEqual(lines[2].split(), "forward 1410 MHz 8 10 ms 300.0 +- 3.0 W 3 +- 0.03 J".split())
        self.assertEqual(lines[3].split(), "backward of chunk 1 1410 MHz 8 20 ms unknown".split())
        self.assertEqual(lines[4].split(), "blocking 1410 MHz 80.0 +- 3.0 W".split())

    def test_the_timeline_is_in_proportion(self):
        lines = measure.text_of(status()).splitlines()
        self.assertEqual(lines[-2], "iteration 6: F forward, B backward, . waiting")
        self.assertEqual(lines[-1], 10 * "F" + 40 * "." + 50 * "B")

    def test_without_a_counter_no_power_is_shown(self):
        text = measure.text_of(status(counter_period_s=0, last_iteration_energy_j=-1))
        self.assertNotIn(" W", text)
        self.assertNotIn(" J", text)
        self.assertIn("unknown", text)

    def test_problems_are_named(self):
        text = measure.text_of(status(wrong=[{"cause": "device", "message": "no GPU"}]))
        self.assertIn("device: no GPU", text)
        self.assertIn("nothing was measured: stopped", measure.text_of({"error": "stopped"}))


    def test_figures_that_would_be_wrong_are_withheld(self):
        client.start(device="none", advice_only=True)
        self.addCleanup(client.stop)
        with self.assertLogs("perseus", "WARNING"):
            client.withhold("two forward passes before one backward")
        self.assertEqual(measure.report(), "perseus: nothing was measured: two forward passes before one backward\n")


PROGRAM = """
import time
from perseus import client, measure
from perseus.client import profiler
started = measure.start(device="none", server="http://127.0.0.1:9")
assert started.active, started.reason
now = [0]
started.time_with(lambda: now[0])
until = time.monotonic() + 60
while "last_step" not in started.status() and time.monotonic() < until:
    client.on_step_begin()
    for name in ("forward", "backward") * 2:
        profiler.begin(name)
        now[0] += {"forward": 1_000_000, "backward": 3_000_000}[name]
        profiler.end(name)
    client.on_step_end()
"""


class Process(unittest.TestCase):
    def run_program(self, **environment):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def test_prints_the_report_at_its_end_and_calls_no_server(self):
        printed = self.run_program(PERSEUS_SERVER="http://127.0.0.1:9")
        self.assertIn("measure.start(): the server is ignored", printed)
        self.assertRegex(printed, r"perseus: rank 0: \d+ iterations, the last 0.008 s")
        self.assertIn("\n" + (12 * "F" + 38 * "B") + (12 * "F" + 38 * "B") + "\n", printed)
        self.assertNotIn("server:", printed)

    def test_prints_the_report_when_the_program_stops_the_client(self):
        program = PROGRAM + "client.stop()\nprint('stopped', file=sys.stderr)\nprint(measure.report(), file=sys.stderr)\n"
        run = subprocess.run([sys.executable, "-c", "import sys\n" + program], capture_output=True, text=True, check=True)
        before, _, after = run.stderr.partition("stopped\n")
        self.assertRegex(before, r"perseus: rank 0: \d+ iterations, the last 0.008 s")
        self.assertTrue(after.startswith("perseus: rank 0"), after)
        self.assertIn(after.strip(), before)  # which has what the client logs on a busy machine, too

    def test_a_forked_process_prints_no_report(self):
        """The loop's own process does, though no training step came."""
        program = (
            "import os\nfrom perseus import measure\nclass Model: pass\n"
            "measure.loop(Model())\nif os.fork() == 0: raise SystemExit\nos.wait()"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(run.stderr.count("nothing was measured: no training step came"), 1)

    def test_ranks_do_not_wait_for_a_job(self):
        printed = self.run_program(RANK="1", WORLD_SIZE="2")
        self.assertRegex(printed, r"perseus: rank 1: \d+ iterations")


if __name__ == "__main__":
    unittest.main()
