#!/usr/bin/env python3
"""Hours of mixed load on one `perseus serve`, with retention: memory, descriptors and database stay flat.

usage: soak.py PERSEUS [SECONDS [PAUSE_S]]   SECONDS: default 7200; PAUSE_S between a client's calls: default 0.02

Four clients run one short job after another (profile, ranks, plans, reports, stragglers, end). Two readers
repeatedly follow event streams and the changes of all jobs, and disconnect. The server removes ended jobs and
profiles without jobs after 60 s. The test prints one line a minute. Exit code 1: a value grew (its median over the
last quarter is more than a tenth above that of the second quarter; the first is warm-up), or an answer was not 200.
"""

import http.client
import os
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

import served
from served import Server
from workload import DP, PP, profile_body

KEEP_DAYS = str(60 / 86400)
MINUTE_S = 60


class Figures:
    """Values that must stay flat, as (name, unit) -> samples."""

    def __init__(self, server, folder):
        self.process, self.folder = pathlib.Path(f"/proc/{server.process.pid}"), pathlib.Path(folder)
        self.samples = {"resident MB": [], "descriptors": [], "threads": [], "database MB": []}

    def take(self):
        status = dict(line.split(":", 1) for line in (self.process / "status").read_text().splitlines())
        now = {
            "resident MB": int(status["VmRSS"].split()[0]) / 1024,
            "descriptors": len(os.listdir(self.process / "fd")),
            "threads": int(status["Threads"]),
            "database MB": sum(file.stat().st_size for file in self.folder.glob("perseus.db*")) / 2**20,
        }
        for name, value in now.items():
            self.samples[name].append(value)
        return now

    def grown(self):
        for name, values in self.samples.items():
            quarter = len(values) // 4
            early, late = statistics.median(values[quarter : 2 * quarter]), statistics.median(values[-quarter:])
            print(f"soak: {name}: {early:.4g} in the second quarter, {late:.4g} in the last")
            if late > 1.1 * early + 1:
                yield name


class Soak:
    def __init__(self, server, pause_s):
        self.server, self.pause_s = server, pause_s
        self.over = threading.Event()
        self.calls, self.jobs, self.problems = 0, 0, []
        clients = [threading.Thread(target=self.live, args=(self.one_job, seed)) for seed in range(4)]
        readers = [threading.Thread(target=self.live, args=(self.read, seed)) for seed in range(2)]
        self.threads = clients + readers
        for thread in self.threads:
            thread.start()

    def live(self, what, seed):
        draw = random.Random(seed)
        while not self.over.is_set():
            try:
                what(draw)
            except Exception as problem:  # pylint: disable=broad-except
                if not self.over.is_set():
                    self.problems.append(repr(problem))
                    self.over.wait(1)

    def ask(self, method, path, body=None):
        status, answer = self.server.ask(method, path, body)
        self.calls += 1
        self.over.wait(self.pause_s)
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def one_job(self, draw):
        request = {"name": f"soak {draw.randrange(1000)}", "degrees": {"dp": DP, "pp": PP, "tp": 1}}
        if draw.random() < 0.5:
            name = f"p{draw.randrange(20)}"
            self.ask("PUT", f"/v1/profiles/{name}", profile_body(draw.randrange(10**6)))
            request["profile"] = name
        job = self.ask("POST", "/v1/jobs", request)["job"]
        if "profile" not in request:
            self.ask("PUT", f"/v1/jobs/{job}/profile", profile_body(draw.randrange(10**6)))
        for rank in range(DP * PP):
            place = {"rank": rank, "dp_rank": rank // PP, "pp_rank": rank % PP, "tp_rank": 0, "host": f"node{rank}"}
            self.ask("POST", f"/v1/jobs/{job}/ranks?plan=true", {**place, "accelerator": f"{job}-{rank}"})
        version, iteration = 0, 0
        for _ in range(draw.randrange(1, 12)):
            for rank in range(DP * PP):
                plan = self.ask("GET", f"/v1/jobs/{job}/ranks/{rank}/plan?wait_s=5")
                version = max(version, plan.get("version", version))
            iteration += 5
            for rank in range(DP * PP):
                self.ask("POST", f"/v1/jobs/{job}/iterations",
                         {"rank": rank, "last_iteration": iteration, "plan_version": version,
                          "iteration_time_s": [draw.uniform(4, 4.1)] * 5, "iteration_energy_j": [1000] * 5})
            self.ask("POST", f"/v1/jobs/{job}/stragglers",
                     {"pipeline": draw.randrange(DP), "degree": 1 + draw.randrange(300) / 1000})
            for path in ("/v1/jobs?limit=20", f"/v1/jobs/{job}", f"/v1/jobs/{job}/frontier", "/v1/profiles"):
                self.ask("GET", path)
        self.ask("POST", f"/v1/jobs/{job}/finish", {})
        self.jobs += 1

    def read(self, draw):
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        try:
            connection.request("GET", draw.choice(["/v1/events", "/v1/job_changes"]))
            reply = connection.getresponse()
            until = time.monotonic() + draw.uniform(0, 20)
            while time.monotonic() < until and not self.over.is_set():
                reply.readline()
        finally:
            connection.close()

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def main(seconds, pause_s):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, "--keep-finished-days", KEEP_DAYS, "--keep-unused-days", KEEP_DAYS)
        figures, soak = Figures(server, folder), Soak(server, pause_s)
        begin = time.monotonic()
        every_s = min(MINUTE_S, seconds / 20)
        try:
            while (lasted_s := time.monotonic() - begin) < seconds and len(soak.problems) < 5:
                time.sleep(every_s)
                now = ", ".join(f"{value:.4g} {name}" for name, value in figures.take().items())
                print(f"soak: {lasted_s + every_s:6.0f} s: {soak.jobs} jobs, {soak.calls} calls; {now}", flush=True)
        finally:
            soak.end()
            code = server.stop()
        assert code == 0, code
        problems = soak.problems + [f"{name} has grown" for name in figures.grown()]
        print(f"soak: {soak.jobs} jobs, {soak.calls} calls in {seconds} s: {problems or 'flat'}")
        return 1 if problems else 0


if __name__ == "__main__":
    served.PROGRAM = sys.argv[1]
    sys.exit(main(float(sys.argv[2]) if len(sys.argv) > 2 else 7200, float(sys.argv[3]) if len(sys.argv) > 3 else 0.02))
