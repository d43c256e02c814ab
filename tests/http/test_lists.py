#!/usr/bin/env python3
"""Lists, event streams, waits and connections of a real `perseus serve`: pages, limits, and who may read what.

usage: test_lists.py PERSEUS [unittest's arguments]
"""

import collections
import gzip
import http.client
import json
import queue
import re
import signal
import socket
import sys
import threading
import unittest
import urllib.parse

import served
from served import ServedCase, Server, until

DEGREES = {"dp": 1, "pp": 4, "tp": 1}


class ListCase(ServedCase):
    def job(self, name, token=None):
        status, answer = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "name": name}, token)
        self.assertEqual(status, 200, answer)
        return answer["job"]

    def rank(self, job, token=None):
        body = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0}
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks", body, token)[0], 200)

    def page(self, query="", token=None):
        status, answer = self.server.ask("GET", "/v1/jobs" + query, token=token)
        self.assertEqual(status, 200, answer)
        return answer

    def request(self, method, path, token=None, **headers):
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, reply.headers, content

    def metric(self, name, token=None):
        text = self.server.ask("GET", "/metrics", token=token, raw=True)[1].decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)[1])

    def tokens(self):
        boss = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, self.server.first_secret())[1]["token"]
        return [boss] + [self.server.ask("POST", "/v1/tokens", {"role": "job"}, boss)[1]["token"] for _ in range(2)]


class ListsOfAllJobs(ListCase):
    def test_pages_of_stragglers_and_policies(self):
        jobs = [self.job(f"job {i}") for i in range(4)]
        for job in jobs[1:]:
            self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 0, "degree": 1.2})[0], 200)
            self.assertEqual(self.server.ask("PUT", f"/v1/jobs/{job}/policies/max_slowdown", {"slowdown": 1.1})[0], 200)
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{jobs[3]}/finish", {})[0], 200)
        for member in ("stragglers", "policies"):
            rows, after, pages = [], "", 0
            while after is not None:
                status, page = self.server.ask("GET", f"/v1/{member}?limit=1{after}")
                self.assertEqual(status, 200, page)
                rows += page[member]
                pages += 1
                after = "&after=" + urllib.parse.quote(page["next"]) if "next" in page else None
            self.assertEqual([(row["job"], row["job_name"]) for row in rows], [(jobs[2], "job 2"), (jobs[1], "job 1")])
            self.assertEqual(pages, 3, "pages of live jobs")
            self.assertEqual(self.server.ask("GET", f"/v1/{member}")[1], {member: rows})
            self.assertEqual(self.server.ask("GET", f"/v1/{member}?limit=0")[0], 400)
            self.assertEqual(self.server.ask("GET", f"/v1/{member}?after=x")[0], 400)

    def test_a_token_sees_the_stragglers_of_its_jobs(self):
        boss, one, other = self.tokens()
        jobs = [self.job("mine", one), self.job("not mine", other)]
        for job in jobs:
            notice = {"pipeline": 0, "degree": 1.2}
            self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/stragglers", notice, boss)[0], 200)
        for token, expected in ((one, jobs[:1]), (other, jobs[1:]), (boss, jobs[::-1])):
            rows = self.server.ask("GET", "/v1/stragglers", token=token)[1]["stragglers"]
            self.assertEqual([row["job"] for row in rows], expected)
        self.assertEqual(self.server.ask("GET", "/v1/stragglers")[0], 401)

    def requests(self):
        text = self.server.ask("GET", "/metrics", raw=True)[1].decode()
        found = re.findall(r'^perseus_requests_seconds_count\{route="([^"]*)".*\} (\d+)$', text, re.M)
        return collections.Counter({route: int(count) for route, count in found})

    def test_the_command_line_asks_once_for_all_jobs(self):
        for i in range(5):
            self.job(f"job {i}")
        for command in ("straggler", "policy"):
            before = self.requests()
            self.server.cli(command, "list")
            routes = self.requests() - before
            self.assertEqual(routes.total(), 2, routes)  # and the metrics


class Stream:
    """Reads server-sent events on its own thread."""

    def __init__(self, server, path, token=None):
        self.connection = http.client.HTTPConnection(server.address, timeout=60)
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        self.reply = self.connection.getresponse()
        self.status = self.reply.status
        self.events = queue.Queue()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        kind = ""
        try:
            while line := self.reply.readline().decode():
                if line.startswith("event: "):
                    kind = line[7:].strip()
                if line.startswith("data: "):
                    self.events.put((kind, json.loads(line[6:])))
        finally:
            self.events.put(None)

    def next(self):
        return self.events.get(timeout=60)

    def close(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.connection.close()


class Lists(ListCase):

    def test_the_default_page_has_an_end(self):
        for i in range(101):
            self.job(f"run {i}")
        page = self.page()
        self.assertEqual(len(page["jobs"]), 100)
        self.assertIn("next", page)
        self.assertEqual(len(json.loads(self.server.cli("job", "list", "--json").stdout)["jobs"]), 101)

    def test_filters(self):
        vision, speech = self.job("Vision 1"), self.job("speech 1")
        self.server.ask("POST", f"/v1/jobs/{speech}/finish", {})
        self.assertEqual([row["id"] for row in self.page("?search=vision")["jobs"]], [vision])
        self.assertEqual([row["id"] for row in self.page(f"?search={speech[-8:].upper()}")["jobs"]], [speech])
        self.assertEqual([row["id"] for row in self.page("?state=finished")["jobs"]], [speech])
        self.assertEqual(self.page("?state=finished&search=vision")["jobs"], [])
        self.assertIn(speech, self.server.cli("job", "list", "-o", "wide", "--state", "finished").stdout)
        for query, wrong in [("limit=0", "limit"), ("limit=1001", "limit"), ("after=j_1", "after"), ("page=2", "page")]:
            status, answer = self.server.ask("GET", "/v1/jobs?" + query)
            self.assertEqual(status, 400)
            self.assertIn(f"'{wrong}'", answer["detail"])
        states = self.server.ask("GET", "/v1/openapi.json")[1]["paths"]["/v1/jobs"]["get"]["parameters"][2]["schema"]["enum"]
        for state in states:
            self.page(f"?state={state}")
        for wrong in ("bogus", "", "Finished", "none"):
            status, answer = self.server.ask("GET", f"/v1/jobs?state={wrong}")
            self.assertEqual((status, answer["detail"]), (400, f"'state' is '{wrong}'; expected one of {', '.join(states)}"))
        done = self.server.cli("job", "list", "--state", "bogus", ok=False)
        self.assertEqual(done.returncode, 64)
        self.assertIn("'state' is 'bogus'; expected one of registered, ", done.stderr)

    def test_labels_select_jobs(self):
        def register(labels):
            return self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "labels": labels})

        def selected(selector):
            query = "?limit=50&selector=" + urllib.parse.quote(selector)
            return [names[row["id"]] for row in self.page(query)["jobs"]]

        names = {register(labels)[1]["job"]: name for name, labels in {
            "a": {"team": "vision", "model": "gpt3"}, "b": {"team": "vision"}, "c": {"team": "speech"}, "d": {}}.items()}
        for _ in range(2):  # also after a restart: the index keeps them
            self.assertEqual(sorted(selected("")), ["a", "b", "c", "d"])
            self.assertEqual(sorted(selected("team=vision")), ["a", "b"])
            self.assertEqual(selected("team=vision,model=gpt3"), ["a"])
            self.assertEqual(sorted(selected("team!=vision")), ["c", "d"])
            self.assertEqual(sorted(selected("team")), ["a", "b", "c"])
            self.assertEqual(selected("team=vision,team=speech"), [])
            job = next(job for job in names if names[job] == "a")
            self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["labels"], {"team": "vision", "model": "gpt3"})
            self.assertEqual(self.page("?selector=model")["jobs"][0]["labels"], {"team": "vision", "model": "gpt3"})
            self.server.stop()
            self.server = Server(self.data, *self.arguments)
        for selector in ("=x", "team=vision,", "te am=x", "team=a=b"):
            status, answer = self.server.ask("GET", "/v1/jobs?selector=" + urllib.parse.quote(selector))
            self.assertEqual(status, 400, answer)
            self.assertIn("selector: '", str(answer))
        for labels in ({"": "x"}, {"a b": "x"}, {"a": "x,y"}, {"a": "x" * 64}, {"a" * 64: ""}, {f"n{i}": "" for i in range(33)}):
            status, answer = register(labels)
            self.assertEqual(status, 400, answer)
            self.assertIn("labels: ", str(answer))
        self.assertEqual(register({f"n{i}": "x" * 63 for i in range(32)})[0], 200)

    def test_a_name_is_not_only_spaces(self):
        status, answer = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "name": "  "})
        self.assertEqual(status, 400, answer)
        self.assertIn("name: '  '", str(answer))
        self.job("two words")

    def test_a_client_that_has_the_list_gets_304(self):
        job = self.job("run")
        status, headers, body = self.request("GET", "/v1/jobs")
        self.assertEqual(status, 200)
        tag = headers["ETag"]
        self.assertEqual(self.request("HEAD", "/v1/jobs")[1]["ETag"], tag)
        again = self.request("GET", "/v1/jobs", **{"If-None-Match": tag})
        self.assertEqual((again[0], again[2]), (304, b""))
        self.server.ask("POST", f"/v1/jobs/{job}/finish", {})
        changed = self.request("GET", "/v1/jobs", **{"If-None-Match": tag})
        self.assertEqual(changed[0], 200)
        self.assertNotEqual(changed[2], body)

    def test_a_list_is_compressed(self):
        for i in range(20):
            self.job(f"run {i}")
        status, headers, body = self.request("GET", "/v1/jobs", **{"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["Content-Encoding"]), (200, "gzip"))
        self.assertEqual(len(json.loads(gzip.decompress(body))["jobs"]), 20)

    def test_a_token_s_list_reads_no_log(self):
        boss, mine, other = self.tokens()
        jobs = [self.job(f"run {i}", mine) for i in range(3)]
        for job in jobs:
            self.server.ask("POST", f"/v1/jobs/{job}/finish", {}, mine)
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data)
        before = self.metric("perseus_jobs_in_memory", boss)
        self.assertEqual({row["id"] for row in self.page(token=mine)["jobs"]}, set(jobs))
        self.assertEqual(self.page(token=other)["jobs"], [])
        self.assertEqual(self.metric("perseus_jobs_in_memory", boss), before, "the index says whose they are")
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{jobs[0]}", token=other)[0], 403)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{jobs[0]}", token=mine)[0], 200)
        self.assertEqual(self.server.ask("GET", "/v1/history", token=mine)[0], 403, "it is of all jobs")
        self.assertEqual(self.server.ask("GET", "/v1/history", token=boss)[0], 200)
        self.assertEqual(self.server.ask("GET", "/v1/site/power", token=mine)[0], 403, "it names all jobs")
        self.assertEqual(self.server.ask("GET", "/v1/site/power", token=boss)[0], 404)


class Streams(ListCase):
    def test_changes_name_the_rows_that_changed(self):
        job = self.job("run")
        stream = Stream(self.server, "/v1/job_changes")
        self.rank(job)
        kind, change = stream.next()
        self.assertEqual(kind, "jobs")
        self.assertEqual([(row["id"], row["ranks_registered"]) for row in change["jobs"]], [(job, 1)])
        self.assertEqual(change["jobs"], self.page()["jobs"], "as in the list")
        self.server.ask("POST", f"/v1/jobs/{job}/finish", {})
        self.assertEqual(stream.next()[1]["jobs"][0]["state"], "finished")
        self.server.ask("DELETE", f"/v1/jobs/{job}")
        self.assertEqual(stream.next()[1], {"jobs": [], "removed": [job]})
        stream.close()

    def test_a_token_receives_events_of_its_own_jobs_only(self):
        boss, mine, other = self.tokens()
        changes, events = Stream(self.server, "/v1/job_changes", mine), Stream(self.server, "/v1/events", mine)
        all_changes, all_events = Stream(self.server, "/v1/job_changes", boss), Stream(self.server, "/v1/events", boss)
        theirs, own = self.job("theirs", other), self.job("own", mine)
        self.assertEqual([row["id"] for row in changes.next()[1]["jobs"]], [own])
        self.assertEqual(events.next()[1]["job"], own)
        heard = set()
        while not heard >= {theirs, own}:  # each message has a time limit
            heard |= {row["id"] for row in all_changes.next()[1]["jobs"]}
        self.assertEqual(heard, {theirs, own})
        self.assertEqual([all_events.next()[1]["job"] for _ in range(2)], [theirs, own])
        for stream in (changes, events, all_changes, all_events):
            stream.close()

    def test_all_streams_of_all_events_get_each_event_once_in_order(self):
        streams = [Stream(self.server, "/v1/events") for _ in range(5)]
        jobs = [self.job(f"run {i}") for i in range(40)]
        for stream in streams:
            self.assertEqual([stream.next()[1]["job"] for _ in jobs], jobs)
            stream.close()

    def test_the_stream_of_a_removed_job_ends_with_an_event(self):
        job, kept = self.job("run"), self.job("kept")
        self.server.ask("POST", f"/v1/jobs/{job}/finish", {})
        stream, other = Stream(self.server, f"/v1/jobs/{job}/events"), Stream(self.server, f"/v1/jobs/{kept}/events")
        self.assertEqual(self.server.ask("DELETE", f"/v1/jobs/{job}")[0], 200)
        kind, event = stream.next()
        self.assertEqual((kind, event["kind"], event["job"]), ("job_removed", "job_removed", job))
        self.assertIsNone(stream.next(), "the stream has ended")
        self.server.ask("POST", f"/v1/jobs/{kept}/finish", {})
        self.assertEqual(other.next()[0], "job_finished", "the others go on")
        other.close()


class Limits(ListCase):
    arguments = ("--max-wait-s", "1", "--max-waits-per-token", "2", "--max-streams-per-token", "2",
                 "--max-streams-per-address", "3")

    def test_a_wait_ends_by_itself(self):
        job = self.job("run")
        self.rank(job)
        have = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan?wait_s=0")[1]
        for wait in ("", "&wait_s=3600"):
            status, answer = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan?have={have.get('version', 0)}{wait}")
            self.assertEqual((status, answer), (200, {"rank": 0, "unchanged": True}))

    def test_a_token_holds_so_many_streams(self):
        boss, mine, _ = self.tokens()
        job = self.job("run", mine)
        held = [Stream(self.server, path, mine) for path in ("/v1/events", f"/v1/jobs/{job}/events")]
        for path in ("/v1/events", "/v1/job_changes", f"/v1/jobs/{job}/events"):
            status, headers, body = self.request("GET", path, mine)
            self.assertEqual((status, headers["Retry-After"]), (429, "5"))
            self.assertRegex(json.loads(body)["detail"], r"^event streams of the token \w+: 2; allowed: 2$")
        self.assertEqual(self.metric("perseus_event_streams", boss), 2)
        held.pop().close()
        until(lambda: self.metric("perseus_event_streams", boss) <= 1)
        again = Stream(self.server, "/v1/job_changes", mine)
        self.assertEqual(again.status, 200)
        for stream in (*held, again):
            stream.close()

    def test_a_token_has_so_many_live_jobs_and_ranks(self):
        self.server.stop()
        server = self.server = Server(self.data, "--max-live-jobs-per-token", "2", "--max-ranks-per-token", "20")
        _, mine, other = self.tokens()

        def register(token, dp):
            return server.ask("POST", "/v1/jobs", {"degrees": {"dp": dp, "pp": 2, "tp": 1}}, token)

        status, first = register(mine, 4)
        self.assertEqual(status, 200)
        status, answer = register(mine, 7)
        self.assertEqual(status, 413, answer)
        self.assertRegex(answer["detail"], r"^ranks of the token \w+: 22; allowed: 20$")
        self.assertEqual(register(mine, 6)[0], 200)
        status, answer = register(mine, 1)
        self.assertEqual(status, 413, answer)
        self.assertRegex(answer["detail"], r"^live jobs of the token \w+: 3; allowed: 2$")
        self.assertEqual(register(other, 1)[0], 200, "others have their own")
        self.assertEqual(server.ask("POST", f"/v1/jobs/{first['job']}/finish", {}, mine)[0], 200)
        self.assertEqual(register(mine, 4)[0], 200, "one that has ended does not count")

    def test_a_tokens_jobs_store_so_much(self):
        self.server.stop()
        server = self.server = Server(self.data, "--max-stored-mb-per-token", "1")
        boss, mine, other = self.tokens()
        job = self.job("run", mine)
        rows = [f"{stage},{instruction},{clock},0.{clock:04}1234567,{clock / 7:.9f}" for stage in range(4)
                for instruction in ("forward", "backward") for clock in range(1000, 3000)]
        body = {"profile_csv": "\n".join(["stage,instruction,frequency,time,energy", *rows]),
                "pipeline": {"schedule": "1f1b", "microbatches": 4, "blocking_power_w": 90}}
        self.assertEqual(server.ask("PUT", f"/v1/jobs/{job}/profile", body, mine)[0], 200)
        body["pipeline"]["microbatches"] = 5
        server.ask("PUT", f"/v1/jobs/{job}/profile", body, mine)
        for method, path, content in (("POST", "/v1/jobs", {"degrees": DEGREES}), ("PUT", f"/v1/jobs/{job}/profile", body)):
            status, answer = server.ask(method, path, content, mine)
            self.assertEqual(status, 413, answer)
            self.assertRegex(answer["detail"], r"^bytes that jobs of the token \w+ take in the database: \d+; allowed: 1000000;")
        self.rank(job, mine)  # a running job continues
        self.job("run", other)
        self.assertEqual(server.ask("POST", f"/v1/jobs/{job}/finish", {}, mine)[0], 200)

    def test_a_token_holds_so_many_waits(self):
        self.server.stop()
        self.server = Server(self.data, "--max-waits-per-token", "2")
        boss, mine, _ = self.tokens()
        job = self.job("run", mine)
        self.rank(job, mine)
        connections = []
        for _ in range(2):
            one = http.client.HTTPConnection(self.server.address, timeout=60)
            one.request("GET", f"/v1/jobs/{job}/ranks/0/plan", headers={"Authorization": f"Bearer {mine}"})
            connections.append(one)
        until(lambda: self.metric("perseus_waiting_ranks", boss) >= 2)
        status, answer = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan", token=mine)
        self.assertEqual(status, 429)
        self.assertRegex(answer["detail"], r"^waits for plans of the token \w+: 3; allowed: 2$")
        for one in connections:
            one.close()

    def test_an_address_has_so_many_connections(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing: finds an address of this machine
                own = probe.getsockname()[0]
            except OSError:
                own = "127.0.0.1"
        if own.startswith("127."):
            self.skipTest("this machine has no address but loopback")
        self.tokens()
        self.server.stop()
        self.server = Server(self.data, "--max-connections-per-address", "2", listen=f"{own}:0")
        address = self.server.address.split(":")
        held = [socket.create_connection(address) for _ in range(2)]
        for one in held:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assertIn(b"200 OK", one.recv(1000))
        with socket.create_connection(address) as over:
            self.assertIn(f"connections from {own}: 2; allowed: 2".encode(), over.recv(1000))
        held.pop().close()

        def answered():
            with socket.create_connection(address) as now:
                now.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
                return b"200 OK" in now.recv(1000)

        until(answered)  # the server notices
        held.pop().close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    served.PROGRAM = sys.argv.pop(1)
    unittest.main()
