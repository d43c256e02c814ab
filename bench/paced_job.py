#!/usr/bin/env python3
"""Measures the power of a paced job against its grant: two ranks on simulated GPUs, which run asynchronously.

usage: bench/paced_job.py PERSEUS [STEPS]      with libperseus, perseus-clockd and PERSEUS_CUDA=.../libcuda-simulated.so
                                               where the Python package finds them (PERSEUS_LIBRARY, PERSEUS_CLOCKD)

The server and the client are real; a simulated GPU draws its blocking power while it has no kernel. The host is up to
two steps ahead of its GPU, as far as the client lets it. For each limit of the site it waits until the job counts as its
grant, then compares grant and plan with the energy of both GPUs over STEPS (20) steps. Then the server dies: the last row
shows what ranks draw that keep their last period at the ceiling.
"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/http"), str(ROOT / "python")]
import served  # noqa: E402

RANKS, MICROBATCHES, AHEAD = 2, 4, 2
LEASE_S = 9


def profile():
    """Two stages of the sample."""
    rows = list(csv.DictReader(io.StringIO(served.PROFILE.read_text())))
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(row for row in rows if int(row["stage"]) < RANKS)
    return text.getvalue()


# A rank


def run_rank(server, rank, job, folder):
    """Trains until its standard input ends; prints time and energy of its GPU at the end of each step."""
    from perseus import client, simulated_gpu

    gpu = simulated_gpu.SimulatedGpu(folder, rank, simulated_gpu.kernels_of(profile(), [rank]))
    client.start(
        server=server, rank=rank, job=job, pp_rank=rank, pp_degree=RANKS, profile="sample", start_limit_s=60,
        report_interval_s=0.2, microbatches=MICROBATCHES, schedule="1f1b", plan_tolerance=-1,
    )  # fmt: skip
    gpu._listen()
    print(json.dumps({"job": client.current().job}), flush=True)
    sys.stdin.readline()
    warm_up = RANKS - 1 - rank
    order = ["forward"] * warm_up + ["forward", "backward"] * (MICROBATCHES - warm_up) + ["backward"] * warm_up
    stamps = []
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    while not over.is_set():
        client.on_step_begin()
        for instruction in order:
            compute(gpu, client, instruction, rank)
        gpu.meet(RANKS)
        client.on_step_end()
        stamps.append(gpu.stamp())
        gpu.end_step(AHEAD)
        while len(stamps) > AHEAD + 1:
            stamp, statistics = stamps.pop(0), client.current().statistics()
            known = ("plan_version", "paced_s", "state", "last_iteration_time_s", "planned_iteration_time_s", "energy_total_j")
            print(json.dumps({"time_s": stamp.time_s, "energy_j": stamp.energy_j, **{k: statistics[k] for k in known}}), flush=True)
    client.stop()


def compute(gpu, client, instruction, rank):
    before, after = (rank - 1, rank + 1) if instruction == "forward" else (rank + 1, rank - 1)
    client.profiler.begin(instruction)
    if 0 <= before < RANKS:
        gpu.wait(gpu._next(gpu._awaited, before, rank))
    for kernel in ("forward",) if instruction == "forward" else ("input_gradient", "weight_gradient"):
        gpu.launch(f"{kernel}.{rank}")
    client.profiler.end(instruction)
    if 0 <= after < RANKS:
        gpu.send(after)


# The measurement


class Rank:
    def __init__(self, server, rank, job, folder):
        environment = {**os.environ, "PERSEUS_PACES": "1", "PERSEUS_LOG": "warning"}
        if preload := os.environ.get("RANK_PRELOAD"):
            environment["LD_PRELOAD"] = preload
        command = [sys.executable, "-B", __file__, "rank", server, str(rank), job, folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def step(self):
        return json.loads(self.process.stdout.readline())


def measured(ranks, steps):
    """Mean power of both GPUs, and the mean time of a step."""
    first = [rank.step() for rank in ranks]
    for _ in range(steps):
        last = [rank.step() for rank in ranks]
    power_w = sum((b["energy_j"] - a["energy_j"]) / (b["time_s"] - a["time_s"]) for a, b in zip(first, last))
    return power_w, (last[0]["time_s"] - first[0]["time_s"]) / steps, last


def set_limit(server, watts, pacing):
    limits = [{"from_s": 0, "limit_w": watts}]
    body = {"pacing": pacing, "least_rate": 0.2, "lease_s": LEASE_S, "dwell_s": 0, "domains": [{"name": "hall", "limits": limits}]}
    status, answer = server.ask("PUT", "/v1/site", body)
    assert status // 100 == 2, answer


def job_power(server):
    return server.ask("GET", "/v1/site/power")[1]["jobs"][0]


def settle(server, ranks, watts, pacing):
    set_limit(server, watts, pacing)
    while True:
        for rank in ranks:
            rank.step()
        job = job_power(server)
        acts = job["state"] == "granted" and job["counted_w"] <= job["granted_w"] * (1 + 1e-6) and "planned_w" in job
        if acts and (not pacing or job["granted_w"] <= watts * (1 + 1e-6)):
            break
    for _ in range(2 * AHEAD + 3):  # what was launched before
        for rank in ranks:
            rank.step()
    return job_power(server)


def row(watts, pacing, job, drawn_w, time_s):
    """planned: by the profile, without the correction by what ranks reported."""
    granted_w, correction = job["granted_w"], job["correction"]
    planned_w = job["planned_w"] / correction
    return (f"| {watts:.0f} | {pacing} | {granted_w:.1f} | {correction:.3f} | {planned_w:.1f} | {drawn_w:.1f} | "
            f"{drawn_w / planned_w:.4f} | {drawn_w / granted_w:.4f} | {time_s:.3f} |")  # fmt: skip


def main(program, steps):
    served.PROGRAM = program
    with tempfile.TemporaryDirectory(prefix="perseus_paced.") as folder:
        server = served.Server(f"{folder}/data")
        pipeline = {"schedule": "1f1b", "microbatches": MICROBATCHES, "blocking_power_w": 90}
        status, answer = server.ask("PUT", "/v1/profiles/sample", {"profile_csv": profile(), "pipeline": pipeline})
        assert status // 100 == 2, answer
        ranks = [Rank(server.url, 0, "", folder)]
        job = ranks[0].step()["job"]
        ranks.append(Rank(server.url, 1, job, folder))
        ranks[1].step()
        for rank in ranks:
            print("all are there", file=rank.process.stdin, flush=True)
        print("| limit, W | pacing | granted, W | correction | planned, W | drawn, W | drawn over planned | drawn over granted | step, s |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        slowest = settle(server, ranks, 1, False)["granted_w"]
        blocking = RANKS * 90
        for watts, pacing in [(1, False), *((blocking + part * (slowest - blocking), True) for part in (0.9, 0.75))]:
            power = settle(server, ranks, watts, pacing)
            drawn, time_s, _ = measured(ranks, steps)
            power = job_power(server)  # what the ranks reported may have corrected it
            print(row(watts, "yes" if pacing else "no", power, drawn, time_s), flush=True)
        server.process.kill()
        until = time.monotonic() + LEASE_S + 2
        while time.monotonic() < until:
            for rank in ranks:
                rank.step()
        drawn, time_s, last = measured(ranks, steps)
        print(row(watts, last[0]["state"], power, drawn, time_s))
        for rank in ranks:
            rank.process.kill()


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        run_rank(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20)
