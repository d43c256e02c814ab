#!/usr/bin/env python3
"""Two `perseus serve` on one real PostgreSQL: the test kills one after the other, ranks continue with the other one.

Before one kill in five, the database, a server, or a server's network to the database stands still for up to 13 s.

usage: test_replicas.py PERSEUS [KILLS [SEED]]   KILLS: default PERSEUS_KILLS, or else 12; exit 77 without PostgreSQL
"""

import collections
import contextlib
import os
import random
import signal
import sys
import threading
import time

import postgres
import served
from served import Server, until
from workload import DP, PP, Addresses, Client, Workload, profile_body


def until_it_has_heard(check):
    """A server receives another server's change a moment later; lost changes stay lost."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return check()
        except AssertionError:
            time.sleep(0.05)
    return check()


class Harm:
    """Occasionally suspends a process or cuts a connection for a moment, and records when."""

    def __init__(self, database, links, replicas, draw):
        self.database, self.links, self.replicas, self.draw = database, links, replicas, draw
        self.outages, self.counts = [], collections.Counter()

    def one(self):
        one, lost = self.draw.randrange(2), self.draw.random() < 0.5
        what, kind = self.draw.choice([
            (lambda: postgres.stopped_backends(self.database), "database frozen"),
            (lambda: postgres.stopped(self.replicas[one].process), "server frozen"),
            (lambda: self.links[one].parted(lost), "server parted"),
            (self.both_parted, "both parted"),
        ])
        begin = time.time()
        with what():
            time.sleep(self.draw.choice([0.1, 0.5, 2, 11]) * self.draw.uniform(0.8, 1.2))  # from 10 s on, the server rejects changes
        self.outages.append((begin, time.time()))
        self.counts[kind] += 1

    @contextlib.contextmanager
    def both_parted(self):
        with self.links[0].parted(self.draw.random() < 0.5), self.links[1].parted(self.draw.random() < 0.5):
            yield


def kill_one_after_the_other(database, kills, seed):
    draw = random.Random(seed)
    addresses = Addresses()
    links = [postgres.Link(database), postgres.Link(database)]
    replicas = [Server(link.url) for link in links]
    addresses.set(server.address for server in replicas)
    load = Workload(addresses, seed)
    client = Client(addresses, draw)
    harm = Harm(database, links, replicas, random.Random(seed + 1))
    try:
        for _ in range(kills):
            time.sleep(draw.uniform(0.1, 0.6))  # the moment is the test's subject
            if harm.draw.random() < 0.2:
                harm.one()
            victim = draw.randrange(2)
            replicas[victim].stop(signal.SIGKILL)
            addresses.set([replicas[1 - victim].address])
            done = load.done
            until(lambda: load.done >= done + 20)  # all ranks continue with the other one
            load.pause()
            until_it_has_heard(lambda: load.check(client, draw))
            replicas[victim] = Server(links[victim].url)
            addresses.set([replicas[victim].address])  # the new server has the same state
            load.check(client, draw)
            addresses.set(server.address for server in replicas)
            load.resume()
        load.pause()
        for server in replicas:
            addresses.set([server.address])
            until(lambda: load.settled(client), limit_s=600)
            until_it_has_heard(lambda: load.check(client, draw, everything=True))
        print(f"{kills} kills, seed {seed}: {len(load.jobs)} jobs, {load.done} calls, {load.lost} cut off; "
              f"{dict(harm.counts)}")
        print(load.lateness(replicas[0], harm.outages))
    finally:
        load.stop()
        for server in replicas:
            server.stop(signal.SIGKILL)
        for link in links:
            link.close()


def what_one_is_told_the_other_says(url):
    """A rank waits at one server, the other receives the straggler notice; then the first dies and the rank tries the
    other."""
    one, other = Server(url), Server(url)
    assert one.ask("PUT", "/v1/profiles/both", profile_body(7))[0] == 200
    job = other.ask("POST", "/v1/jobs", {"degrees": {"dp": DP, "pp": PP, "tp": 1}, "profile": "both"})[1]["job"]
    for rank in range(DP * PP):
        status, answer = (one, other)[rank % 2].ask(
            "POST", f"/v1/jobs/{job}/ranks",
            {"rank": rank, "dp_rank": rank // PP, "pp_rank": rank % PP, "tp_rank": 0, "accelerator": f"both-{rank}"})
        assert (status, answer) == (200, {"registered": rank + 1, "expected": DP * PP, "epoch": 0}), answer
    path = f"/v1/jobs/{job}/ranks/0/plan"
    plan = one.ask("GET", path)[1]
    assert plan["kind"] == "plan" and plan == other.ask("GET", path)[1]
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(one.ask("GET", f"{path}?have={plan['version']}")[1]))
    waiting.start()
    until(lambda: b"perseus_waiting_ranks 1" in one.ask("GET", "/metrics", raw=True)[1])
    assert other.ask("POST", "/v1/stragglers", {"accelerator": "both-5", "degree": 1.2})[0] == 200
    waiting.join()
    assert answers[0]["version"] > plan["version"] and answers[0]["iteration_time_s"] > plan["iteration_time_s"], answers
    one.stop(signal.SIGKILL)
    assert other.ask("GET", path)[1] == answers[0]
    # The other server looks up a token made at one server, too.
    one = Server(url)
    token = one.ask("POST", "/v1/tokens", {"role": "infrastructure"}, one.first_secret())[1]["token"]
    until(lambda: other.ask("GET", "/v1/jobs")[0] == 401)
    assert other.ask("GET", "/v1/jobs", token=token)[0] == 200
    one.stop()
    other.stop()


def the_database_goes_and_comes_back(database):
    server = Server(database.url)
    assert server.ask("PUT", "/v1/profiles/gone", profile_body(8))[0] == 200
    job = server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": PP, "tp": 1}, "profile": "gone"})[1]["job"]
    rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0}
    assert server.ask("POST", f"/v1/jobs/{job}/ranks", rank)[0] == 200
    plan = server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]
    database.stop()
    status, answer = server.ask("POST", f"/v1/jobs/{job}/ranks", {**rank, "rank": 1, "pp_rank": 1})
    assert status == 503 and answer["error"]["code"] == "unavailable", (status, answer)
    assert server.ask("GET", "/healthz")[0] == 200
    database.start()
    until(lambda: server.ask("POST", f"/v1/jobs/{job}/ranks", {**rank, "rank": 1, "pp_rank": 1})[0] != 503)
    assert server.ask("GET", f"/v1/jobs/{job}")[1]["ranks"]["registered"] == 2
    assert server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1] == plan
    server.stop()


def a_frozen_database_blocks_no_request(database, freeze):
    """The database accepts data and does not answer: known plans, probes and waits continue, SIGTERM ends the
    server."""
    server = Server(database.url)
    assert server.ask("PUT", "/v1/profiles/frozen", profile_body(9))[0] == 200
    job = server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": PP, "tp": 1}, "profile": "frozen"})[1]["job"]
    for rank in range(PP):
        answer = server.ask("POST", f"/v1/jobs/{job}/ranks", {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0})
        assert answer[0] == 200, answer
    path = f"/v1/jobs/{job}/ranks/0/plan"
    plan = server.ask("GET", path)[1]
    onset = {"pipeline": 0, "degree": 1.2, "delay_s": 15}  # after the checks below, on a busy machine too
    assert server.ask("POST", f"/v1/jobs/{job}/stragglers", onset)[0] == 200
    with freeze(database):
        began = time.monotonic()
        slower = {"pipeline": 0, "degree": 1.1}
        changing = threading.Thread(target=lambda: answers.append(server.ask("POST", f"/v1/jobs/{job}/stragglers", slower)))
        reading = threading.Thread(target=lambda: answers.append(server.ask("GET", "/v1/profiles")))
        answers = []
        changing.start(), reading.start()
        assert server.ask("GET", "/healthz")[0] == 200
        assert server.ask("GET", path)[1] == plan
        assert server.ask("GET", f"{path}?have={plan['version']}&wait_s=0.2")[1] == {"rank": 0, "unchanged": True}
        answer = until(lambda: (ready := server.ask("GET", "/readyz"))[0] != 200 and ready)
        assert answer[1]["checks"]["store"]["status"] == "failing", answer
        provisional = server.ask("GET", f"{path}?have={plan['version']}&wait_s=60")[1]
        assert provisional["version"] > 1 << 30 and provisional["iteration_time_s"] >= plan["iteration_time_s"], provisional
        changing.join(), reading.join()
        assert [status for status, _ in answers] == [503, 503], answers
        assert "does not answer" in answers[0][1]["detail"], answers
        assert server.ask("GET", "/healthz")[0] == 200
        report = {"rank": 0, "iteration_time_s": [1.0] * 3, "last_iteration": 3, "plan_version": plan["version"]}
        assert server.ask("POST", f"/v1/jobs/{job}/iterations", report)[0] == 200
        stopping = time.monotonic()
        code = server.stop(signal.SIGTERM)
        assert code == 69, code
        print(f"frozen by {freeze.__name__}: {stopping - began:.1f} s, stopped in {time.monotonic() - stopping:.1f} s")
    server = Server(database.url)
    durable = server.ask("GET", f"{path}?have={provisional['version']}")
    assert durable[0] == 200 and plan["version"] < durable[1]["version"] < 1 << 30, durable
    server.stop()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if postgres.programs() is None:
        sys.exit(77)
    served.PROGRAM = sys.argv[1]
    kills = int(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("PERSEUS_KILLS", 12))
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    database = postgres.Postgres()
    try:
        the_database_goes_and_comes_back(database)
        a_frozen_database_blocks_no_request(database, postgres.stopped_backends)
        a_frozen_database_blocks_no_request(database, postgres.locked_tables)
        kill_one_after_the_other(database, kills, seed)
        what_one_is_told_the_other_says(database.url)
    finally:
        database.close()


if __name__ == "__main__":
    main()
