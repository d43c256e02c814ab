"""The package over the real libperseus: calls arrive, nothing is lost, the log comes through, processes end."""

import logging
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path

os.environ["PERSEUS_LIBRARY"] = str(Path(os.environ["PERSEUS_BUILT_PACKAGE"]) / "perseus" / "lib" / "libperseus.so")

from stand_ins import pipelining  # noqa: E402

from perseus import client, library  # noqa: E402
from perseus.adapters import torch_pipelining  # noqa: E402
from perseus.client import controller, profiler  # noqa: E402


class RealLibrary(unittest.TestCase):
    def setUp(self):
        self.addCleanup(client.stop)
        logging.getLogger("perseus").addHandler(logging.NullHandler())

    def start(self, **options):
        started = client.start(device="none", **options)
        self.assertTrue(started.active, started.reason)
        return started

    def test_names(self):
        real = library.load()
        for code, name in enumerate(library.INSTRUCTIONS):
            self.assertEqual(real.instruction_named(name.encode()), code)

    def test_steps_are_counted_and_timed(self):
        started = self.start(schedule="1f1b", microbatches=4)
        now = [0]
        started.time_with(lambda: now[0])
        for _ in range(3):
            client.on_step_begin()
            for name in ("forward", "backward") * 4:
                controller.set_speed(name)
                profiler.begin(name)
                now[0] += 1_000_000
                profiler.end(name)
            client.on_step_end()
        client.on_step_begin("evaluate")
        client.on_step_end()
        statistics = started.statistics()
        self.assertEqual(statistics["iteration"], 3)
        self.assertEqual(statistics["clocks_requested"], 0)
        self.assertEqual(statistics["plan_version"], 0)
        self.assertNotIn("error", started.status())

    def test_a_framework(self):
        stages = [pipelining.PipelineStage(index, 8, 0, 4) for index in (0, 7)]
        schedule = pipelining.ScheduleDualPipeV(stages, 10, lambda *_: 0)
        tables = Path(__file__).parent / "tables"
        schedule._load_csv((tables / "dualpipev_4_ranks_10_microbatches.csv").read_text())
        torch_pipelining.install(schedule, device="none")
        for _ in range(5):
            schedule.step()
        self.assertEqual(client.current().statistics()["iteration"], 5)

    def test_no_call_can_upset_it(self):
        self.start()
        for arguments in ((), (10**9, -7), (-(2**31), 2**31 - 1), (0, 70000)):
            for call in (profiler.end, controller.set_speed, profiler.begin, profiler.begin, profiler.end):
                for name in library.INSTRUCTIONS:
                    call(name, *arguments)
        client.on_step_end()
        client.on_step_begin()
        client.on_step_begin()
        client.on_step_begin(7)
        client.on_step_end()

    def test_a_server_that_is_not_there(self):
        with self.assertLogs("perseus", "WARNING") as logged:
            started = self.start(server="http://127.0.0.1:9", profile="p", start_limit_s=60)
            client.on_step_begin()
            client.on_step_end()
            self.assertEqual(started.job, "")
            self.assertEqual(started.statistics()["iteration"], 1)
            self.assertEqual([wrong["cause"] for wrong in started.status()["wrong"]], ["server"])
        self.assertEqual(sum("127.0.0.1:9" in line for line in logged.output), 1)  # logged once

    def test_other_threads_may_query(self):
        started, done = self.start(), threading.Event()

        def ask():
            while not done.is_set():
                started.statistics()
                started.status()

        thread = threading.Thread(target=ask)
        thread.start()
        for _ in range(200):
            client.on_step_begin()
            profiler.begin("forward")
            profiler.end("forward")
            client.on_step_end()
        done.set()
        thread.join()
        self.assertEqual(started.statistics()["iteration"], 200)

    def test_all_processes_end(self):
        for end in ("", "raise SystemExit(0)", "os._exit(0)", "client.stop(); client.start(device='none')"):
            program = (
                "import os\nfrom perseus import client\n"
                "client.start(device='none', server='http://127.0.0.1:9', start_limit_s=0.1)\n"
                "client.on_step_begin()\nclient.profiler.begin('forward')\n"
                "if os.fork() == 0: client.profiler.end('forward'); client.stop(); os._exit(0)\n"
                "assert os.wait()[1] == 0\n" + end
            )
            with self.subTest(end):
                subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.DEVNULL, timeout=300)


if __name__ == "__main__":
    unittest.main()
