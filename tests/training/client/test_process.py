#!/usr/bin/env python3
"""Runs the example's ranks as processes against `perseus serve`: the ranks receive and follow plans; one test kills
and restarts the server, another runs without a server.

usage: test_process.py PERSEUS PIPELINE_RANK [unittest's arguments]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/http"))
import served  # noqa: E402
from served import Server  # noqa: E402

RANK = ""


def rank(url, number, job="", stages=4, iterations=1000000):
    return subprocess.Popen([RANK, url, str(number), str(stages), "12", job, str(iterations)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines_until(process, wanted):
    """Reads until a line matches; the test's own time limit bounds the wait."""
    for line in process.stdout:
        if wanted in line:
            return line
    raise AssertionError(f"never said '{wanted}': {process.stderr.read()}")


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.ranks = []

    def tearDown(self):
        for process in self.ranks:
            process.kill()
            process.communicate()
        self.folder.cleanup()

    def start(self, *arguments, **named):
        self.ranks.append(rank(*arguments, **named))
        return self.ranks[-1]

    def job_of(self, url):
        first = self.start(url, 0)
        job = lines_until(first, "job ").split()[-1]
        for number in range(1, 4):
            self.start(url, number, job)
        return job

    def test_every_rank_gets_a_plan_also_after_the_server_was_killed(self):
        data = self.folder.name + "/data"
        server = Server(data)
        server.cli("profile", "push", "sample", str(served.PROFILE), "--schedule", "1f1b", "--microbatches", "12",
                   "--blocking-power", "90")
        job = self.job_of(server.url)
        for process in self.ranks:
            self.assertIn("plan 1", lines_until(process, "state 3"))
        address = server.url.split("//")[1]
        server.stop(signal.SIGKILL)
        server = Server(data, listen=address)
        try:
            request = urllib.request.Request(f"{server.url}/v1/jobs/{job}/policies/pinned", b'{"point": 3}',
                                             {"Content-Type": "application/json"}, method="PUT")
            urllib.request.urlopen(request, timeout=120).close()
            for process in self.ranks:
                lines_until(process, "state 3, plan 2")
        finally:
            server.stop()

    def test_a_server_that_was_never_there(self):
        process = self.start("http://127.0.0.1:9", 0, iterations=5)
        said, complained = process.communicate(timeout=300)
        self.ranks.remove(process)
        self.assertEqual(process.returncode, 0)
        status = json.loads(said.splitlines()[-1])
        self.assertEqual(status["iteration"], 5)
        self.assertFalse(status["server_reached"])
        self.assertEqual([wrong["cause"] for wrong in status["wrong"]], ["server"])
        self.assertEqual(complained.count("127.0.0.1:9"), 1, complained)  # logged once


if __name__ == "__main__":
    served.PROGRAM, RANK = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
