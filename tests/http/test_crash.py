#!/usr/bin/env python3
"""Kills `perseus serve` (SIGKILL) at random moments while jobs register, report and wait: no acknowledged change is
lost.

usage: test_crash.py PERSEUS [KILLS [SEED]]   KILLS: default PERSEUS_KILLS, or else 60
"""

import os
import random
import signal
import sys
import tempfile
import time

import served
from served import Server, until
from workload import DP, PP, Addresses, Client, Workload, profile_body


def kill_and_check(data, kills, seed):
    draw = random.Random(seed)
    addresses = Addresses()
    server = Server(data)
    client = Client(addresses, draw)
    addresses.set([server.address])
    load = Workload(addresses, seed)
    characterizing = pending = 0
    try:
        for _ in range(kills):
            time.sleep(draw.uniform(0, 0.25))  # the moment is the test's subject
            server.stop(signal.SIGKILL)
            addresses.set([])
            load.pause()
            server = Server(data)
            addresses.set([server.address])
            states = load.check(client, draw)
            characterizing += "characterizing" in states
            load.resume()
        load.pause()
        until(lambda: load.settled(client), limit_s=600)
        load.check(client, draw, everything=True)
        check_logs(load, client, server)
        print(f"{kills} kills, seed {seed}: {len(load.jobs)} jobs, {load.done} calls, {load.lost} cut off; "
              f"a job was being characterized after {characterizing} restarts")
        assert len(load.jobs) > 2 and load.lost > 0 and load.plans
    finally:
        load.stop()
        server.stop(signal.SIGKILL)


def check_logs(load, client, server):
    """Every job's log is complete, and notices took effect when they were due."""
    for job in load.jobs[-10:]:
        last = client.ask("GET", f"/v1/jobs/{job.id}")[1]["sequence"]
        due = {f"straggler notice {notice} is in force": at_s for notice, (_, _, at_s) in job.notices.items()}
        sequences = []
        for event in server.events(job.id):
            sequences.append(event["sequence"])
            if event["text"] in due:
                assert event["at_s"] >= due[event["text"]], event
            if event["sequence"] == last:
                break
        assert sequences == list(range(1, last + 1)), sequences


def half_a_characterization(data):
    """Kills the server while it plans; the waiting rank sends its request again and gets the plan."""
    server = Server(data, "--plan-deadlines", "5000")
    body = profile_body(10**6)
    body["pipeline"]["microbatches"] = 96
    job = server.ask("POST", "/v1/jobs", {"degrees": {"dp": DP, "pp": PP, "tp": 1}})[1]["job"]
    server.ask("POST", f"/v1/jobs/{job}/ranks", {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0})
    assert server.ask("PUT", f"/v1/jobs/{job}/profile", body)[0] == 200
    for _ in range(3):
        view = server.ask("GET", f"/v1/jobs/{job}")[1]
        assert view["state"] == "characterizing", f"planning was faster than the kill: {view['state']}"
        server.stop(signal.SIGKILL)
        server = Server(data)
    plan = server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]
    assert plan["kind"] == "plan", plan
    server.stop(signal.SIGKILL)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    served.PROGRAM = sys.argv[1]
    kills = int(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("PERSEUS_KILLS", 60))
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as folder:
        half_a_characterization(folder + "/half")
        kill_and_check(folder + "/data", kills, seed)


if __name__ == "__main__":
    main()
