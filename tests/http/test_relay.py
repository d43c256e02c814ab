#!/usr/bin/env python3
"""`perseus relay` between ranks and a real `perseus serve`: the ranks' view, and the server's view of the ranks.

usage: test_relay.py PERSEUS
"""

import concurrent.futures
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import served
from served import Server, until

PP, DP = 4, 2
RANKS = PP * DP


class Relay:
    def __init__(self, server_url, *arguments):
        self.process = subprocess.Popen(
            [served.PROGRAM, "relay", "--server", server_url, "--listen", "127.0.0.1:0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("perseus: relaying on "):
            raise RuntimeError(line + self.process.stderr.read())
        self.address = line.split()[3].split("//")[1]

    def ask(self, method, path, body=None, token=None, headers=None):
        connection = http.client.HTTPConnection(self.address, timeout=120)
        text = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        if token:
            all_headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, text, all_headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, json.loads(content)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.said = self.process.communicate(timeout=60)[1]
        return self.process.returncode


class RelayTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.server = Server(self.folder.name)
        self.relay = Relay(self.server.url)
        self.pool = concurrent.futures.ThreadPoolExecutor(4 * RANKS)

    def tearDown(self):
        self.pool.shutdown()
        if self.relay.process.poll() is None:
            self.assertEqual(self.relay.stop(), 0)
        self.server.stop()
        self.folder.cleanup()

    def metric(self, name):
        text = self.server.ask("GET", "/metrics", raw=True)[1].decode()
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " "))

    def job(self, dp=DP, token=None):
        pipeline = {"schedule": "1f1b", "microbatches": 6, "blocking_power_w": 90}
        status, made = self.relay.ask("POST", "/v1/jobs", {"degrees": {"dp": dp, "pp": PP, "tp": 1}}, token)
        self.assertEqual(status, 200, made)
        job = made["job"]
        profile = {"profile_csv": served.PROFILE.read_text(), "pipeline": pipeline}
        self.assertEqual(self.relay.ask("PUT", f"/v1/jobs/{job}/profile", profile, token)[0], 200)
        for rank in range(dp * PP):
            place = {"rank": rank, "dp_rank": rank // PP, "pp_rank": rank % PP, "tp_rank": 0, "host": "node1"}
            self.assertEqual(self.relay.ask("POST", f"/v1/jobs/{job}/ranks", place, token)[0], 200)
        return job

    def plan(self, job, rank, have=0, wait_s=60, token=None):
        return self.relay.ask("GET", f"/v1/jobs/{job}/ranks/{rank}/plan?have={have}&wait_s={wait_s}", token=token)

    def all_plans(self, job, have=0, ranks=RANKS, token=None):
        return [self.pool.submit(self.plan, job, rank, have, 60, token) for rank in range(ranks)]

    def wait_until_waiting(self, count):
        until(lambda: self.metric("perseus_waiting_ranks") == count)

    def test_it_listens_for_its_own_host_only(self):
        for listen in ("0.0.0.0:0", "[::]:0", "192.0.2.1:7788"):
            refused = subprocess.run([served.PROGRAM, "relay", "--server", "http://127.0.0.1:1", "--listen", listen],
                                     capture_output=True, text=True, timeout=60)
            self.assertEqual(refused.returncode, 64, refused.stderr)
            self.assertIn("serves only the ranks of its own host", refused.stderr)

    def test_ranks_get_their_plans_and_the_next_ones_over_one_connection(self):
        job = self.job()
        version = set()
        for rank, first in enumerate(self.all_plans(job)):
            status, plan = first.result()
            self.assertEqual((status, plan["rank"], plan["kind"]), (200, rank, "plan"))
            direct = self.server.ask("GET", f"/v1/jobs/{job}/ranks/{rank}/plan?wait_s=0")[1]
            self.assertEqual(plan, direct)
            version.add(plan["version"])
        (version,) = version
        waiting = self.all_plans(job, version)
        self.wait_until_waiting(RANKS)
        # One for waiting, up to two that forwarded other calls and are not closed yet, and the one of this request.
        # Waits that came one after another have some of their own, until their exchanges end; the waits last longer.
        until(lambda: self.metric("perseus_connections") <= 4, 30)
        self.server.ask("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 0, "degree": 1.2})
        for rank, answer in enumerate(waiting):
            status, plan = answer.result()
            self.assertEqual((status, plan["rank"]), (200, rank))
            self.assertGreater(plan["version"], version)

    def test_ranks_register_together_and_get_their_plans_at_once(self):
        job = self.job()
        self.plan(job, 0)  # a planned job
        pipeline = {"schedule": "1f1b", "microbatches": 6, "blocking_power_w": 90}
        profile = {"profile_csv": served.PROFILE.read_text(), "pipeline": pipeline}
        self.server.ask("PUT", "/v1/profiles/known", profile)
        job = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": DP, "pp": PP, "tp": 1}, "profile": "known"})[1]["job"]
        until(lambda: "plan" in self.server.ask("GET", f"/v1/jobs/{job}")[1])

        def register(asked, rank):
            place = {"rank": rank, "dp_rank": rank // PP, "pp_rank": rank % PP, "tp_rank": 0, "host": "node1"}
            return asked.ask("POST", f"/v1/jobs/{job}/ranks?plan=true", place)

        answers = [self.pool.submit(register, self.relay, rank) for rank in range(RANKS)]
        for rank, answer in enumerate(answers):
            status, registered = answer.result()
            self.assertEqual((status, registered["expected"]), (200, RANKS))
            self.assertEqual((registered["plan"]["rank"], registered["plan"]["kind"]), (rank, "plan"))
            direct = self.server.ask("GET", f"/v1/jobs/{job}/ranks/{rank}/plan?wait_s=0")[1]
            self.assertEqual(registered["plan"], direct)
            self.assertEqual(register(self.server, rank)[1]["plan"], direct)
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks?plan=yes", {})[0], 400)
        wrong = self.relay.ask("POST", f"/v1/jobs/{job}/ranks?plan=true", {"rank": "x"})
        self.assertEqual(wrong, self.server.ask("POST", f"/v1/jobs/{job}/ranks?plan=true", {"rank": "x"}))
        self.assertEqual(wrong[0], 422)

    def test_reports_are_those_of_each_rank(self):
        job = self.job()
        version = self.plan(job, 0)[1]["version"]
        waiting = self.all_plans(job, version)
        self.wait_until_waiting(RANKS)

        def report(rank, body):
            return self.relay.ask("POST", f"/v1/jobs/{job}/iterations", {"rank": rank, **body})

        good = {"last_iteration": 3, "plan_version": version, "iteration_time_s": [4.0, 4.0, 4.0]}
        answers = [self.pool.submit(report, rank, good) for rank in range(RANKS)]
        bad = self.pool.submit(report, 0, {"iteration_time_s": "fast"})
        unknown = self.pool.submit(report, 99, good)
        for answer in answers:
            self.assertEqual(answer.result(), (200, {"rejected": []}))
        wrong = {"rank": 0, "iteration_time_s": "fast"}
        self.assertEqual(bad.result(), self.server.ask("POST", f"/v1/jobs/{job}/iterations", wrong))
        self.assertEqual(bad.result()[0], 422)
        self.assertEqual(unknown.result()[0], 404)
        self.assertEqual(self.relay.ask("POST", f"/v1/jobs/{job}/iterations", "{no json")[0], 422)
        self.assertEqual(self.relay.ask("POST", f"/v1/jobs/{job}/finish", "{}")[0], 200)
        for answer in waiting:
            self.assertEqual(answer.result()[0], 409)

    def test_tokens_are_the_ranks_own(self):
        first = self.server.first_secret()
        infrastructure = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, token=first)[1]["token"]
        tokens = [self.server.ask("POST", "/v1/tokens", {"role": "job"}, token=infrastructure)[1] for _ in range(2)]
        one, other = (made["token"] for made in tokens)
        self.assertEqual(self.relay.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 1, "tp": 1}})[0], 401)
        job = self.job(1, one)
        self.job(1, other)
        version = self.plan(job, 0, token=one)[1]["version"]
        waiting = self.all_plans(job, version, PP, one)
        stranger = self.pool.submit(self.plan, job, 1, version, 60, other)
        self.assertEqual(stranger.result()[0], 403)
        until(lambda: self.server.ask("GET", f"/v1/jobs/{job}", token=infrastructure)[1]["state"] == "deployed")
        self.server.ask("DELETE", f"/v1/tokens/{tokens[0]['id']}", token=infrastructure)
        for answer in waiting:
            self.assertEqual(answer.result()[0], 401)

    def test_a_server_outage_is_reported_and_ends(self):
        job = self.job()
        version = self.plan(job, 0)[1]["version"]
        waiting = self.all_plans(job, version)
        self.wait_until_waiting(RANKS)
        self.server.process.kill()
        self.server.process.wait()
        for answer in waiting:
            status, why = answer.result()
            self.assertEqual(status, 503, why)
            self.assertIn(self.server.url.split("//")[1], why["detail"])
        self.assertEqual(self.plan(job, 0)[0], 503)
        self.server.stop()  # closes its pipes
        self.server = Server(self.folder.name, listen=self.server.address)
        status, plan = self.plan(job, 0)
        self.assertEqual((status, plan["version"]), (200, version))
        self.assertEqual(self.relay.stop(), 0)
        self.assertEqual(self.relay.said.count("answers again"), 1, self.relay.said)
        self.assertEqual(len(self.relay.said.splitlines()), 2, self.relay.said)

    def test_only_the_server_renews_a_lease(self):
        job = self.job(1)
        for rank in range(PP):
            place = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "host": "node1", "epoch": 1,
                     "keeps_budgets": True}
            self.assertEqual(self.relay.ask("POST", f"/v1/jobs/{job}/ranks", place)[0], 200)
        until(lambda: self.plan(job, 0)[1].get("kind") == "plan")
        site = {"dwell_s": 1, "domains": [{"name": "hall", "limits": [{"limit_w": 1e6}]}]}
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        site["domains"][0]["limits"] = [
            {"limit_w": 0.9 * self.server.ask("GET", "/v1/site/power")[1]["domains"][0]["counted_w"]}]
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        until(lambda: "budget" in self.plan(job, 0)[1])
        version = self.plan(job, 0)[1]["version"]
        began = time.monotonic()
        for waiting in self.all_plans(job, version, PP):
            answer = waiting.result()[1]
            self.assertEqual(answer.get("unchanged"), True)
            self.assertLess(abs(time.time() - answer["sent_at_s"]), 60)
            self.assertGreater(answer["held_s"], 0)
        self.assertLess(time.monotonic() - began, 15)  # the lease; an exchange takes 3 s, a wait without a lease 60 s
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            silent = [self.pool.submit(self.plan, job, rank, version, 2) for rank in range(PP)]
            self.assertEqual({answer.result()[0] for answer in silent}, {503})
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        until(lambda: self.plan(job, 0, version, 1)[1].get("unchanged"))

    def test_a_rank_that_leaves_is_not_expected_any_more(self):
        job = self.job(1)
        version = self.plan(job, 0)[1]["version"]
        connection = http.client.HTTPConnection(self.relay.address)
        connection.request("GET", f"/v1/jobs/{job}/ranks/0/plan?have={version}&wait_s=600")
        self.wait_until_waiting(1)
        connection.close()
        self.wait_until_waiting(0)

    def test_only_ranks_requests_are_carried(self):
        for method, path in [("GET", "/v1/events"), ("GET", "/v1/jobs/j/events"), ("GET", "/"), ("GET", "/metrics"),
                             ("GET", "/schedule/j"), ("DELETE", "/v1/tokens/x"), ("GET", "/v1/jobs")]:
            self.assertEqual(self.relay.ask(method, path)[0], 404, path)
        self.assertEqual(self.relay.ask("GET", "/healthz"), (200, {"status": "ok"}))
        page = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        self.assertEqual(self.relay.ask("POST", "/v1/jobs", {}, headers=page)[0], 403)
        self.assertEqual(self.relay.ask("POST", "/v1/jobs", {}, headers={"Host": "evil.example"})[0], 403)

    def test_nothing_that_a_rank_sends_reaches_another_call(self):
        job = self.job(1)
        for path in [f"/v1/jobs/{job}%2Franks%2F0/finish", f"/v1/jobs/{job}%22%7D/iterations",
                     f"/v1/jobs/{job}%0d%0aX: y/ranks/0/plan?have=1&wait_s=1"]:
            method = "GET" if "plan" in path else "POST"
            status, _ = self.relay.ask(method, path.replace(" ", "%20"), None if method == "GET" else "{}")
            self.assertIn(status, (400, 404, 422), path)
        self.assertNotEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["state"], "finished")

    def test_settings_that_cannot_be(self):
        for arguments in [["--server", "ftp://x"], ["--server", "http://any:secret@127.0.0.1:1"],
                          ["--server", self.server.url, "--exchange", "9"], []]:
            done = subprocess.run([served.PROGRAM, "relay", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertNotIn("secret", done.stderr)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
