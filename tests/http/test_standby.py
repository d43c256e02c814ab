#!/usr/bin/env python3
"""Two `perseus serve` on one real PostgreSQL, of which one serves and the other stands by: the test kills or stops the one
that serves, and ranks continue with the other one.

Before one kill in five, the database, a server, or a server's network to the database stands still for up to 13 s.

usage: test_standby.py PERSEUS [KILLS [SEED]]   KILLS: default PERSEUS_KILLS, or else 12; exit 77 without PostgreSQL
"""

import collections
import contextlib
import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time

import postgres
import served
from served import Server, until
from workload import PP, Addresses, Client, Workload, profile_body


def standing_by(server):
    """Whether it answers that another server serves; nothing for a process that has ended."""
    try:
        return "stands by" in str(server.ask("GET", "/readyz")[1])
    except (OSError, http.client.HTTPException):
        return None


def serves(server):
    return standing_by(server) is False


class Harm:
    """Occasionally suspends a process or cuts a connection for a moment, and records when."""

    def __init__(self, database, links, replicas, draw):
        self.database, self.links, self.replicas, self.draw = database, links, replicas, draw
        self.outages, self.counts = [], collections.Counter()

    def one(self, active):
        lost = self.draw.random() < 0.5
        what, kind = self.draw.choice([
            (lambda: postgres.stopped_backends(self.database), "database frozen"),
            (lambda: postgres.stopped(self.replicas[active].process), "server frozen"),
            (lambda: self.links[active].parted(lost), "server parted"),
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


def the_one_that_serves(replicas, links):
    """Once the other one stands by. A server after which another one took over has ended, or is about to: it is started
    again."""
    def found():
        for one in range(2):
            if replicas[one].process.poll() is not None:
                assert replicas[one].stop() == 69, "a server ended for no reason"
                replicas[one] = Server(links[one].url, stands_by=True)
        serving = [one for one in range(2) if serves(replicas[one])]
        return serving if len(serving) == 1 and standing_by(replicas[1 - serving[0]]) else None
    return until(found)[0]


def kill_one_after_the_other(database, kills, seed):
    draw = random.Random(seed)
    addresses = Addresses()
    links = [postgres.Link(database), postgres.Link(database)]
    replicas = [Server(links[0].url), Server(links[1].url, stands_by=True)]
    addresses.set(server.address for server in replicas)
    load = Workload(addresses, seed)
    client = Client(addresses, draw)
    harm = Harm(database, links, replicas, random.Random(seed + 1))
    taken = {signal.SIGKILL: [], signal.SIGTERM: []}
    try:
        for _ in range(kills):
            time.sleep(draw.uniform(0.1, 0.6))  # the moment is the test's subject
            active = the_one_that_serves(replicas, links)
            if harm.draw.random() < 0.2:
                harm.one(active)
                active = the_one_that_serves(replicas, links)
            how = draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
            began = time.monotonic()
            replicas[active].process.send_signal(how)
            until(lambda: serves(replicas[1 - active]))
            taken[how].append(time.monotonic() - began)
            replicas[active].stop(signal.SIGKILL)
            addresses.set([replicas[1 - active].address])
            done = load.done
            until(lambda: load.done >= done + 20)  # all ranks continue with the other one
            load.pause()
            load.check(client, draw)
            replicas[active] = Server(links[active].url, stands_by=True)
            addresses.set(server.address for server in replicas)
            load.resume()
        load.pause()
        until(lambda: load.settled(client), limit_s=600)
        active = the_one_that_serves(replicas, links)
        replicas[active].stop(signal.SIGKILL)
        load.check(client, draw, everything=True)  # its first reads meet the take-over
        print(f"{kills} kills, seed {seed}: {len(load.jobs)} jobs, {load.done} calls, {load.lost} cut off; "
              f"{dict(harm.counts)}")
        for how, times in taken.items():
            print(f"the other one serves after {how.name}: {', '.join(f'{t:.1f}' for t in sorted(times))} s")
        print(load.lateness(replicas[1 - active], harm.outages))
    finally:
        load.stop()
        for server in replicas:
            server.stop(signal.SIGKILL)
        for link in links:
            link.close()


def a_server_that_wakes_up_too_late_writes_nothing(url):
    """It stands still in the middle of its work for longer than its right lasts; what was acknowledged stays."""
    one, other = Server(url), Server(url, stands_by=True)
    assert one.ask("PUT", "/v1/profiles/both", profile_body(7))[0] == 200
    job = one.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": PP, "tp": 1}, "profile": "both"})[1]["job"]
    with postgres.stopped(one.process):
        until(lambda: serves(other))
        rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0}
        assert other.ask("POST", f"/v1/jobs/{job}/ranks", rank)[0] == 200
        assert other.ask("PUT", "/v1/profiles/both", profile_body(8))[0] == 200
    assert one.process.wait(served.STOP_S) == 69
    assert f"{other.url} has taken over" in "".join(one.log), one.log
    one.stop()
    assert other.ask("GET", f"/v1/jobs/{job}")[1]["ranks"]["registered"] == 1
    assert other.ask("GET", "/v1/profiles/both")[1]["profile_csv"] == profile_body(8)["profile_csv"]
    other.stop()


def a_standby_names_the_server_that_serves(url):
    one, other = Server(url), Server(url, stands_by=True)
    status, answer = other.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 1, "tp": 1}})
    assert status == 503 and one.url in answer["detail"], answer
    assert other.ask("GET", "/readyz")[0] == 503
    assert other.ask("GET", "/healthz")[0] == 200
    assert b"perseus_standby 1" in other.ask("GET", "/metrics", raw=True)[1]
    # Clients with a list find the one that serves.
    job = one.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 1, "tp": 1}})[1]["job"]
    other.url = f"{other.url},{one.url}"
    assert job in other.cli("job", "list", "--json").stdout
    # A token is made at the server, or in the database of servers that do not run.
    made = [served.PROGRAM, "token", "create", "--role", "infrastructure", "--database", url]
    refused = subprocess.run(made, capture_output=True, text=True)
    assert refused.returncode == 75 and f"--server {one.url}" in refused.stderr, refused
    assert other.stop() == 0 and one.stop() == 0
    token = subprocess.run(made, capture_output=True, text=True, check=True).stdout.strip()
    one = Server(url)
    assert one.ask("GET", "/v1/jobs")[0] == 401
    assert one.ask("GET", "/v1/jobs", token=token)[0] == 200
    one.stop()


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
        a_server_that_wakes_up_too_late_writes_nothing(database.url)
        a_standby_names_the_server_that_serves(database.url)
    finally:
        database.close()


if __name__ == "__main__":
    main()
