#!/usr/bin/env python3
"""A server whose system clock is changed while jobs train.

usage: test_clock.py PERSEUS STEPPED_CLOCK.so
"""

import os
import pathlib
import sys
import tempfile
import threading
import unittest

import served
from served import PROFILE, Server

PRELOAD = ""


class SteppedClock(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.offset = pathlib.Path(self.folder.name) / "offset"
        self.set_clock(0)
        self.start("--idle-expiry-s", "86400")

    def tearDown(self):
        self.server.stop()
        self.folder.cleanup()

    def start(self, *arguments):
        prefix = ["env", "ASAN_OPTIONS=verify_asan_link_order=0", f"LD_PRELOAD={PRELOAD}", f"PERSEUS_CLOCK_OFFSET={self.offset}"]
        self.server = Server(self.folder.name + "/data", *arguments, prefix=prefix)

    def set_clock(self, by_s):
        self.offset.with_suffix(".new").write_text(str(by_s))
        os.replace(self.offset.with_suffix(".new"), self.offset)

    def job(self):
        shape = {"schedule": "1f1b", "microbatches": 4, "blocking_power_w": 90}
        self.server.ask("PUT", "/v1/profiles/sample", {"profile_csv": PROFILE.read_text(), "pipeline": shape})
        job = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample"})[1]["job"]
        for rank in range(4):
            body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
            self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks", body)[0], 200)
        return job, self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]["version"]

    def test_the_clock_is_the_one_that_is_set(self):
        job, _ = self.job()
        self.server.stop()
        self.set_clock(-10 * 86400)
        self.start()
        _, listed = self.server.ask("GET", "/v1/jobs")
        before = listed["jobs"][0]["created_at_s"]
        new = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample"})[1]["job"]
        times = {one["id"]: one["created_at_s"] for one in self.server.ask("GET", "/v1/jobs")[1]["jobs"]}
        self.assertLess(times[new], before - 9 * 86400)

    def test_waits_and_onsets_come_though_the_clock_is_set_back(self):
        quiet, known = self.job()
        job, version = self.job()
        answers = {}

        def ask(path):
            answers[path] = self.server.ask("GET", path)[1]

        by_time = f"/v1/jobs/{quiet}/ranks/0/plan?have={known}&wait_s=2"
        by_onset = f"/v1/jobs/{job}/ranks/0/plan?have={version}"
        waits = [threading.Thread(target=ask, args=(path,)) for path in (by_time, by_onset)]
        for wait in waits:
            wait.start()
        notice = {"pipeline": 0, "degree": 1.2, "delay_s": 3}
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/stragglers", notice)[0], 200)
        self.set_clock(-3600)
        for wait in waits:
            wait.join(240)
        self.assertEqual(len(answers), 2, "a wait hangs")
        self.assertTrue(answers[by_time]["unchanged"])
        self.assertGreater(answers[by_onset]["version"], version)

    def test_no_job_expires_while_the_clock_is_ahead(self):
        job, _ = self.job()
        self.set_clock(8 * 86400)
        self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample"})  # reads the clock
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["state"], "deployed")
        self.server.stop()  # the clock may change during the restart too: ranks have time to return
        self.start("--idle-expiry-s", "86400")
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["state"], "deployed")
        self.set_clock(0)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["state"], "deployed")


if __name__ == "__main__":
    served.PROGRAM = os.path.abspath(sys.argv.pop(1))
    PRELOAD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
