#!/usr/bin/env python3
"""Large pipelines on a real `perseus serve` with one planner thread: other jobs get their plans, deleting a job
cancels its
planning, SIGTERM ends the server. Planning these pipelines takes minutes; every bound here is far below.

usage: test_planning.py PERSEUS [unittest's arguments]
"""

import csv
import re
import sys
import time
import unittest

import served
from served import PROFILE, ServedCase, Server, until

BOUND_S = 240  # generous: seconds are expected, but planner threads have the lowest priority on a busy machine


def profile_of(stages, seed):
    """The sample profile with this many stages, all different; another seed gives another profile."""
    with PROFILE.open() as file:
        rows = list(csv.DictReader(file))
    known = 1 + max(int(row["stage"]) for row in rows)
    lines = ["stage,instruction,frequency,time,energy"]
    for stage in range(stages):
        factor = 1 + seed / 1e4 + 0.1 * ((stage * 37) % 64) / 64
        lines += [f"{stage},{row['instruction']},{row['frequency']},{float(row['time']) * factor:.9f},{row['energy']}"
                  for row in rows if int(row["stage"]) == stage % known]
    return "\n".join(lines) + "\n"


class LargePipelines(ServedCase):
    arguments = ("--workers", "1", "--plan-deadlines", "1000")

    def ask(self, method, path, body=None, expect=200):
        status, answer = self.server.ask(method, path, body)
        self.assertEqual(status, expect, answer)
        return answer

    def job(self, name, stages, microbatches, seed=0):
        self.ask("PUT", f"/v1/profiles/{name}",
                 {"profile_csv": profile_of(stages, seed),
                  "pipeline": {"schedule": "1f1b", "microbatches": microbatches, "blocking_power_w": 90}})
        return self.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": stages, "tp": 1}, "profile": name})["job"]

    def metric(self, name):
        text = self.server.ask("GET", "/metrics", raw=True)[1].decode()
        return float(re.search(rf"^perseus_{name} (.*)$", text, re.MULTILINE).group(1))

    def with_plan(self, job):
        view = self.ask("GET", f"/v1/jobs/{job}")
        return view if view.get("plan") else None

    def large_jobs(self):
        return [self.job("wide", 64, 512)] + [self.job(f"long{i}", 1, 43000, i) for i in range(4)]

    def test_a_neighbor_gets_its_plan(self):
        self.large_jobs()
        neighbor = self.job("neighbor", 4, 12)
        until(lambda: self.with_plan(neighbor))
        self.ask("POST", f"/v1/jobs/{neighbor}/finish")

    def test_every_large_job_gets_a_quick_plan(self):
        for job in self.large_jobs():
            view = until(lambda: self.with_plan(job))
            self.assertIn("quick frontier", view["reason"])
            self.assertEqual(view["state"], "deployed")

    def test_deleting_the_jobs_stops_their_planning(self):
        jobs = self.large_jobs()
        for job in jobs:
            until(lambda: self.with_plan(job))
        for job in jobs:
            self.ask("POST", f"/v1/jobs/{job}/finish")
            self.ask("DELETE", f"/v1/jobs/{job}")
        until(lambda: self.metric("characterizations_running") == 0)
        self.assertGreaterEqual(self.metric("planning_stopped_total"), 1)

    def test_sigterm_ends_the_server(self):
        for job in self.large_jobs():
            until(lambda: self.with_plan(job))
        begin = time.monotonic()
        self.assertEqual(self.server.stop(), 0)  # waits 30 s at most
        print(f"SIGTERM took {time.monotonic() - begin:.2f} s", file=sys.stderr)
        self.server = Server(self.folder.name + "/data", "--workers", "1")
        until(lambda: self.metric("planning_seconds_total") >= 0
                   and self.metric("characterizations_running") > 0)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
