#!/usr/bin/env python3
"""Measures how fast a site's limit that falls reaches every rank: 64 jobs of 128 ranks on one server.

usage: bench/site_fall.py PERSEUS [FALLS [JOBS [DATA_FOLDER]]]

Every rank has a connection of its own to the server and asks for the next plan as a client does. The ranks are two
processes on the server's machine, so they take processor time from it. Times are from the beginning of the request
that lowers the limit. Prints tables in Markdown:

  last clock   until the last rank has the answer with its lower clocks
  counted      until what the server counts, from what ranks have said that they hold, is within the limit

Then jobs are cut off: a tenth of all ranks, whole jobs as behind one switch, stop asking before the limit falls. Their
leases end after 15 s, and the limit must hold with what they may still draw at their ceilings. At last the process of half
of all jobs is killed: the other half must use their watts, and what counts must never exceed the limit meanwhile.
"""

import asyncio
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/http"))
import served  # noqa: E402
from workload import profile_body  # noqa: E402

DP, PP, TP = 8, 4, 4
WORLD = DP * PP * TP
CUT_OFF = 0.1
LEASE_S = 15
VERSION = re.compile(rb'"version": ?(\d+)')


class Rank:
    """Asks for plans on one connection, and notes when it got which version."""

    def __init__(self, address, job, number):
        self.address, self.job, self.number = address, job, number
        self.have, self.got_s, self.has_budget = 0, 0.0, False
        self.task = None

    async def call(self, reader, writer, method, path, body=b""):
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: {self.address}\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        return int(head.split(None, 2)[1]), await reader.readexactly(length)

    async def follow(self, registered):
        host, port = self.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        place = {"rank": self.number, "dp_rank": self.number // (PP * TP), "pp_rank": self.number // TP % PP,
                 "tp_rank": self.number % TP}
        body = json.dumps({**place, "epoch": 1, "host": f"{self.job}-{self.number // 8}", "keeps_budgets": True})
        status, answer = await self.call(reader, writer, "POST", f"/v1/jobs/{self.job}/ranks", body.encode())
        assert status == 200, answer
        registered()
        while True:
            status, answer = await self.call(
                reader, writer, "GET",
                f"/v1/jobs/{self.job}/ranks/{self.number}/plan?have={self.have}&epoch=1&wait_s=60")
            assert status == 200, answer
            version = VERSION.search(answer)
            if version and b'"unchanged"' not in answer:
                self.have, self.got_s, self.has_budget = int(version[1]), time.monotonic(), b'"budget"' in answer


async def ranks_process(address, jobs, commands, answers):
    """Runs the ranks of some jobs. A command is a line: a time since which all ranks must have a plan; or "cut N"."""
    ranks = [Rank(address, job, number) for job in jobs for number in range(WORLD)]
    known = 0

    def registered():
        nonlocal known
        known += 1

    gate = asyncio.Semaphore(256)

    async def start(rank):
        async with gate:
            before = known
            rank.task = asyncio.create_task(rank.follow(registered))
            while known == before and not rank.task.done():
                await asyncio.sleep(0.001)

    await asyncio.gather(*(start(rank) for rank in ranks))
    while not all(rank.have for rank in ranks):
        await asyncio.sleep(0.01)
    print("ready", file=answers, flush=True)
    loop = asyncio.get_running_loop()
    while True:
        line = await loop.run_in_executor(None, commands.readline)
        if not line:
            return
        word, *rest = line.split()
        if word == "cut":
            gone = {job for job in jobs[:int(rest[0])]}
            for rank in ranks:
                if rank.job in gone:
                    rank.task.cancel()
            ranks = [rank for rank in ranks if rank.job not in gone]
            print("done", file=answers, flush=True)
        elif word == "since":
            while not all(rank.got_s >= float(rest[0]) and rank.has_budget for rank in ranks):
                for rank in ranks:
                    if rank.task.done():
                        rank.task.result()
                await asyncio.sleep(0.002)
            print(max(rank.got_s for rank in ranks), file=answers, flush=True)


class Ranks:
    """The ranks of some jobs, in a process of their own."""

    def __init__(self, address, jobs):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.commands)
            os.close(self.answers)
            asyncio.run(ranks_process(address, jobs, os.fdopen(commands), os.fdopen(answers, "w")))
            os._exit(0)
        os.close(commands)
        os.close(answers)
        self.commands, self.answers = os.fdopen(self.commands, "w"), os.fdopen(self.answers)

    def say(self, line):
        print(line, file=self.commands, flush=True)

    def answer(self):
        line = self.answers.readline()
        assert line, "the ranks have ended"
        return line.strip()


def hall(server):
    return server.ask("GET", "/v1/site/power")[1]["domains"][0]


def kill_half(server, ranks, heirs, watts):
    """Kills the process of these ranks. Seconds until `heirs`, ids of jobs, count more, and until they count at most
    half a percent less than in the end; their watts before and in the end; the most that counted, as a part of the limit."""
    began = time.monotonic()
    os.kill(ranks.process, signal.SIGKILL)
    counted = []
    while time.monotonic() < began + LEASE_S + 60:
        view = server.ask("GET", "/v1/site/power")[1]
        counted.append((time.monotonic() - began, sum(job["counted_w"] for job in view["jobs"] if job["job"] in heirs),
                        view["domains"][0]["counted_w"]))
        time.sleep(0.1)
    before, end = counted[0][1], counted[-1][1]
    return (next((at_s for at_s, heirs_w, _ in counted if heirs_w > 1.01 * before), None),
            next(at_s for at_s, heirs_w, _ in counted if heirs_w >= 0.995 * end), before, end,
            max(hall_w for _, _, hall_w in counted) / watts)


def set_limit(server, watts):
    status, answer = server.ask("PUT", "/v1/site", {
        "dwell_s": 1, "lease_s": LEASE_S, "domains": [{"name": "hall", "limits": [{"limit_w": watts}]}]})
    assert status == 200, answer


def wait_until_counted(server, watts, limit_s=120):
    end = time.monotonic() + limit_s
    while not hall(server)["counted_w"] <= watts * 1.0001:
        assert time.monotonic() < end, f"counted {hall(server)} above {watts} W after {limit_s} s"
        time.sleep(0.02)
    return time.monotonic()


def table(rows):
    for number, row in enumerate(rows):
        print("| " + " | ".join(row) + " |")
        if number == 0:
            print("|" + " --- |" * len(row))


def main():
    falls = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    served.PROGRAM = sys.argv[1]
    with tempfile.TemporaryDirectory(dir=sys.argv[4] if len(sys.argv) > 4 else None) as folder:
        server = served.Server(folder)
        assert server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0] == 200
        ids = [server.ask("POST", "/v1/jobs", {
            "name": f"job-{number}", "degrees": {"dp": DP, "pp": PP, "tp": TP}, "profile": "sample", "least_rate": 0.3,
        })[1]["job"] for number in range(jobs)]
        began = time.monotonic()
        halves = [Ranks(server.address, ids[:jobs // 2]), Ranks(server.address, ids[jobs // 2:])]
        for half in halves:
            assert half.answer() == "ready"
        print(f"{jobs * WORLD:,} ranks of {jobs} jobs registered and have their first plan after "
              f"{time.monotonic() - began:.1f} s\n", flush=True)
        set_limit(server, 1e9)
        most = hall(server)["counted_w"]
        last_clock, counted = [], []
        for _ in range(falls):
            set_limit(server, 0.9 * most)
            wait_until_counted(server, 0.9 * most)
            time.sleep(3)
            before = time.monotonic()
            set_limit(server, 0.63 * most)
            for half in halves:
                half.say(f"since {before}")
            counted.append(wait_until_counted(server, 0.63 * most) - before)
            last_clock.append(max(float(half.answer()) for half in halves) - before)
        rows = [["30 % less", "median, s", "worst, s"]]
        for name, values in ("last clock", last_clock), ("counted", counted):
            rows.append([name, f"{statistics.median(values):.2f}", f"{max(values):.2f}"])
        table(rows)
        set_limit(server, 0.9 * most)
        wait_until_counted(server, 0.9 * most)
        time.sleep(5)
        cut = max(1, round(CUT_OFF * jobs))
        halves[0].say(f"cut {cut}")
        halves[0].answer()
        before = time.monotonic()
        set_limit(server, 0.63 * most)
        for half in halves:
            half.say(f"since {before}")
        counted_s = wait_until_counted(server, 0.63 * most) - before
        last_s = max(float(half.answer()) for half in halves) - before
        fixed = [job for job in server.ask("GET", "/v1/site/power")[1]["jobs"] if job["state"] == "fixed"]
        print(f"\n{cut} of {jobs} jobs cut off ({cut * WORLD} ranks): the others' last clock after {last_s:.2f} s, "
              f"counted within the limit after {counted_s:.2f} s, "
              f"{sum(job['counted_w'] for job in fixed) / most:.1%} of all power for jobs that do not answer")
        first_s, all_s, was_w, is_w, part = kill_half(server, halves[1], set(ids[cut:jobs // 2]), 0.63 * most)
        print(f"\n{jobs - jobs // 2} of {jobs} jobs killed: {jobs // 2 - cut} others have the first of their watts after "
              f"{first_s and f'{first_s:.1f}'} s, all after {all_s:.1f} s (allowed: {LEASE_S + 60} s): {was_w / most:.1%} of all "
              f"power before, {is_w / most:.1%} then; what counted was at most {100 * part:.3f} % of the limit meanwhile")
        server.stop()


if __name__ == "__main__":
    main()
