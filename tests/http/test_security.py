#!/usr/bin/env python3
"""The promises of docs/security.md on a real server: who may send which requests, and what the server must reject.

usage: test_security.py PERSEUS
"""

import base64
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import tomllib
import unittest
import urllib.parse

import served
from served import PROFILE, ROOT, ServedCase, Server, until

API = json.loads((ROOT / "docs/openapi.json").read_text())
DEGREES = {"dp": 1, "pp": 4, "tp": 1}


def profile_body():
    return {"profile_csv": PROFILE.read_text(), "pipeline": {"schedule": "1f1b", "microbatches": 4, "blocking_power_w": 90}}


class SecurityCase(ServedCase):
    def request(self, method, path, body=None, headers=None):
        """Sends the request as a client does that does not use served.py."""
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, dict(reply.headers), content

    def first_token(self):
        return self.make("infrastructure", self.server.first_secret(), name="boss")

    def make(self, role, by, **more):
        status, answer = self.server.ask("POST", "/v1/tokens", {"role": role, **more}, by)
        self.assertEqual(status, 200, answer)
        return answer["token"]


class Pages(SecurityCase):
    """Web pages of other origins, in browsers on this machine."""

    def test_no_page_makes_the_first_token(self):
        body = json.dumps({"role": "infrastructure"})
        json_type = {"Content-Type": "application/json"}
        for headers in [{"Content-Type": "text/plain"},
                        {**json_type, "Origin": "http://localhost:8888"},
                        {**json_type, "Sec-Fetch-Site": "same-site"},
                        {**json_type, "Sec-Fetch-Site": "cross-site"},
                        {**json_type, "Host": "rebound.example:7787"},
                        json_type]:
            status, _, answer = self.request("POST", "/v1/tokens", body, headers)
            self.assertIn(status, (403, 415), (headers, answer))
        self.assertEqual(self.server.ask("GET", "/v1/tokens")[1]["tokens"], [])
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[0], 200, "no client is locked out")

    def test_a_name_that_is_made_to_lead_here_reads_nothing(self):
        for path in ("/v1/jobs", "/v1/profiles", "/v1/events", "/metrics", "/info"):
            self.assertEqual(self.request("GET", path, headers={"Host": "rebound.example"})[0], 403, path)
            self.assertEqual(self.request("GET", path, headers={"Sec-Fetch-Site": "cross-site"})[0], 403, path)

    def test_hosts_are_named_in_a_setting(self):
        self.server.stop()
        self.server = Server(self.data, "--hosts", "planner,planner.example")
        self.assertEqual(self.request("GET", "/v1/jobs", headers={"Host": "planner:7787"})[0], 200)
        self.assertEqual(self.request("GET", "/v1/jobs", headers={"Host": "other:7787"})[0], 403)
        for hosts, fault in (("a:1", "a:1"), ("a,", ""), (",a", "")):
            wrong = subprocess.run([served.PROGRAM, "serve", "--data", self.data, "--hosts", hosts], capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 64)
            self.assertIn(f"'{fault}' is not a host name without port", wrong.stderr)


class Tokens(SecurityCase):
    def test_every_call_requires_its_documented_role(self):
        boss = self.first_token()
        made = {"infrastructure": boss, "job": self.make("job", boss), "read-only": self.make("read-only", boss)}
        may = {"infrastructure": {"infrastructure"}, "job": {"infrastructure", "job"},
               "read-only": {"infrastructure", "job", "read-only"}}
        for template, calls in API["paths"].items():
            path = template.replace("{", "").replace("}", "")
            for method, call in calls.items():
                role = call.get("x-role")
                if role is None:
                    continue
                method = method.upper()
                self.assertEqual(self.server.ask(method, path, {} if method != "GET" else None)[0], 401, (method, template))
                for who, token in made.items():
                    if who in may[role] or "/events" in path:
                        continue
                    status, answer = self.server.ask(method, path, {} if method != "GET" else None, token)
                    self.assertEqual(status, 403, (method, template, who, answer))

    def test_metrics_name_all_jobs_and_are_not_for_tokens_of_jobs(self):
        boss = self.first_token()
        for role, expected in (("job", 403), ("read-only", 200), ("infrastructure", 200)):
            token = self.make(role, boss)
            self.assertEqual(self.server.ask("GET", "/metrics", token=token, raw=True)[0], expected, role)

    def test_a_caller_of_the_api_learns_the_header(self):
        self.first_token()
        self.assertIn("send the header 'Authorization: Bearer TOKEN'", self.server.ask("GET", "/v1/jobs")[1]["detail"])

    def test_the_password_of_a_url_is_a_token(self):
        boss = self.first_token()
        for scheme in ("Basic", "basic"):
            secret = base64.b64encode(f"any:{boss}".encode()).decode()
            self.assertEqual(self.request("GET", "/v1/jobs", headers={"Authorization": f"{scheme} {secret}"})[0], 200)
        self.assertEqual(self.request("GET", "/v1/jobs", headers={"Authorization": f"bearer {boss}"})[0], 200)
        with_password = self.server.url.replace("//", f"//any:{boss}@")
        listed = subprocess.run([served.PROGRAM, "job", "list", "--server", with_password], capture_output=True, text=True)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        away = subprocess.run([served.PROGRAM, "job", "list", "--server", f"http://any:{boss}@127.0.0.1:1"], capture_output=True,
                              text=True)
        self.assertEqual(away.returncode, 69)
        self.assertNotIn(boss, away.stderr)
        wrong = base64.b64encode(b"any:thing").decode()
        self.assertEqual(self.request("GET", "/v1/jobs", headers={"Authorization": f"Basic {wrong}"})[0], 401)

    def test_errors_show_no_password_of_a_url(self):
        answers = [(503, "{}", 69), (200, "no JSON", 69), (401, json.dumps({"detail": "unknown token"}), 67)]

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as stand_in:
            threading.Thread(target=stand_in.serve_forever, args=(0.02,), daemon=True).start()
            address = f"127.0.0.1:{stand_in.server_port}"
            for status, body, code in answers:
                for command in (["job", "list"], ["site", "show"]):
                    done = subprocess.run([served.PROGRAM, *command, "--server", f"http://any:secret@{address}", "--json"],
                                          capture_output=True, text=True)
                    self.assertNotIn("secret", done.stdout + done.stderr, command)
                    if status != 200:
                        self.assertEqual(done.returncode, code, done.stderr)
                        self.assertIn(f"http://{address}: the server answered 503" if status == 503 else "unknown token", done.stderr)
            stand_in.shutdown()

    def test_revoking_the_last_ones_opens_nothing(self):
        boss = self.first_token()
        other = self.make("infrastructure", boss)
        listed = {token["name"]: token["id"] for token in self.server.ask("GET", "/v1/tokens", token=boss)[1]["tokens"]}
        self.assertEqual(self.server.ask("DELETE", f"/v1/tokens/{listed['boss']}", token=other)[0], 200)
        status, answer = self.server.ask("DELETE", f"/v1/tokens/{listed['']}", token=other)
        self.assertEqual((status, answer["error"]["code"]), (409, "conflict"))
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[0], 401)
        self.server.stop()
        self.server = Server(self.data)
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[0], 401)
        self.assertFalse(any("perseus_first" in line for line in self.server.log))

    def test_off_is_logged_and_holds_on_loopback_only(self):
        boss = self.first_token()
        self.server.stop()
        require = [served.PROGRAM, "token", "require"]
        self.assertEqual(subprocess.run([*require, "off", "--data", self.data]).returncode, 0)
        self.server = Server(self.data)
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[0], 200)
        self.server.stop()
        self.server = Server(self.data, listen="0.0.0.0:0")
        self.server.address = self.server.address.replace("0.0.0.0", "127.0.0.1")
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[0], 401)
        self.assertEqual(self.server.ask("GET", "/v1/jobs", token=boss)[0], 200)
        refused = subprocess.run([*require, "on"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 64)
        self.assertIn("--data DIR or --database URL", refused.stderr)

    def test_a_job_s_token_registers_no_other_job(self):
        boss = self.first_token()
        self.server.ask("PUT", "/v1/profiles/sample", profile_body(), boss)
        job = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "profile": "sample"}, boss)[1]["job"]
        bound = self.make("job", boss, job=job)
        for role in ("read-only", "infrastructure"):
            self.assertEqual(self.server.ask("POST", "/v1/tokens", {"role": role, "job": job}, boss)[0], 400)
        zeus = {"job_metadata": "sample", "dp_degree": 1, "pp_degree": 4, "tp_degree": 1, "world_size": 4}
        for path, body in [("/v1/jobs", {"degrees": DEGREES, "profile": "sample"}), ("/register_job", zeus)]:
            self.assertEqual(self.server.ask("POST", path, body, bound)[0], 403, path)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}", token=bound)[0], 200)
        others = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "profile": "sample"}, boss)[1]["job"]
        for query in ("", "?pipeline=0&pipeline=0"):
            self.assertEqual(self.server.ask("GET", f"/v1/jobs/{others}/frontier{query}", token=bound)[0], 403, query)

    def test_the_parts_of_an_exchange_are_answered_as_if_they_came_alone(self):
        boss = self.first_token()
        mine = self.make("job", boss)
        for token, expected in ((mine, 403), (boss, 404)):
            for job in ("absent", "absent as well"):
                path = urllib.parse.quote(job)
                parts = {"wait_s": 0,
                         "ranks": [{"job": job, "body": json.dumps({"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0})}],
                         "reports": [{"job": job, "body": json.dumps({"rank": 0, "iteration_time_s": [1.0]})}],
                         "waits": [{"job": job, "rank": 0}]}
                status, answer = self.server.ask("POST", "/v1/exchange", parts, token)
                self.assertEqual(status, 200, answer)
                statuses = [part["status"] for kind in ("ranks", "reports", "waits") for part in answer[kind]]
                self.assertEqual(statuses, [expected] * 3, (token == boss, job, answer))
                alone = self.server.ask("POST", f"/v1/jobs/{path}/iterations", {"rank": 0, "iteration_time_s": [1.0]}, token)
                self.assertEqual(alone[0], expected, alone)

    def test_profiles_of_other_teams(self):
        boss = self.first_token()
        vision, vision_too = (self.make("job", boss, team="vision") for _ in range(2))
        language = self.make("job", boss, team="language")
        alone = self.make("job", boss)
        request = {"degrees": DEGREES, "facts": {"model": "gpt", "team": "language"}, "profile_online": True,
                   "pipeline": profile_body()["pipeline"]}

        def register(token):
            job = self.server.ask("POST", "/v1/jobs", request, token)[1]["job"]
            return job, self.server.ask("GET", f"/v1/jobs/{job}", token=token)[1].get("profile_trial")

        teacher, source = register(vision)
        self.assertIsNone(source)
        self.assertEqual(self.server.ask("PUT", f"/v1/jobs/{teacher}/profile", profile_body(), vision)[0], 200)
        self.assertEqual([register(token)[1] for token in (vision, vision_too, language, alone)],
                         [{"state": "under_way", "learned_by": teacher}] * 2 + [None] * 2)
        seen = {token: self.server.ask("GET", "/v1/learned_profiles", token=token)[1]["profiles"]
                for token in (boss, vision_too, language, alone)}
        self.assertEqual([len(seen[token]) for token in (boss, vision_too, language, alone)], [1, 1, 0, 0])
        path = f"/v1/learned_profiles/{seen[boss][0]['id']}"
        self.assertEqual(self.server.ask("DELETE", path, token=language)[0], 404)
        self.assertEqual(self.server.ask("DELETE", path, token=vision_too)[0], 200)
        self.assertIsNone(register(vision)[1])

    def test_a_learned_profile_whose_plan_was_dropped_is_forgotten(self):
        request = {"degrees": DEGREES, "facts": {"model": "gpt"}}
        job = self.server.ask("POST", "/v1/jobs", request)[1]["job"]
        self.server.ask("PUT", f"/v1/jobs/{job}/profile", profile_body())
        for rank in range(4):
            body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
            self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks", body)[0], 200)
        version = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]["version"]
        self.assertEqual(len(self.server.ask("GET", "/v1/learned_profiles")[1]["profiles"]), 1)
        slow = {"version": version, "reason": "slow", "measured_time_s": 1.1, "promised_time_s": 1.0}
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks/0/plan_dropped", slow)[0], 200)
        self.assertEqual(self.server.ask("GET", "/v1/learned_profiles")[1]["profiles"], [])

    def test_waits_and_streams_of_a_revoked_token_end(self):
        boss = self.first_token()
        team = self.make("job", boss)
        self.server.ask("PUT", "/v1/profiles/sample", profile_body(), boss)
        job = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "profile": "sample"}, team)[1]["job"]
        for rank in range(4):
            body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
            self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks", body, team)[0], 200)
        have = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan", token=team)[1]["version"]
        ended = {}

        def wait():
            ended["wait"] = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan?have={have}", token=team)[0]

        def read(path):
            ended[path] = self.request("GET", path, headers={"Authorization": f"Bearer {team}"})[0]

        threads = [threading.Thread(target=wait)]
        threads += [threading.Thread(target=read, args=(path,)) for path in ("/v1/events", f"/v1/jobs/{job}/events")]
        for thread in threads:
            thread.start()
        metrics = lambda: self.server.ask("GET", "/metrics", token=boss, raw=True)[1].decode()
        until(lambda: "perseus_waiting_ranks 1" in (text := metrics()) and "perseus_subscriptions 2" in text)
        identity = next(t["id"] for t in self.server.ask("GET", "/v1/tokens", token=boss)[1]["tokens"] if t["role"] == "job")
        self.assertEqual(self.server.ask("DELETE", f"/v1/tokens/{identity}", token=boss)[0], 200)
        for thread in threads:
            thread.join(60)
        self.assertEqual(ended, {"wait": 401, "/v1/events": 200, f"/v1/jobs/{job}/events": 200})

    def test_tokens_expire(self):
        boss = self.first_token()
        self.assertEqual(self.server.ask("POST", "/v1/tokens", {"role": "job", "expires_in_s": 0}, boss)[0], 400)
        short = self.make("job", boss, expires_in_s=1e-3)
        until(lambda: self.server.ask("GET", "/v1/jobs", token=short)[0] != 200)
        status, answer = self.server.ask("GET", "/v1/jobs", token=short)
        self.assertEqual((status, answer["detail"]), (401, "this token has expired"))

    def test_guessing_is_slowed_and_right_tokens_are_not(self):
        boss = self.first_token()
        found = [self.server.ask("GET", "/v1/jobs", token=f"perseus_{i}")[0] for i in range(30)]
        self.assertEqual(set(found[:20]), {401})
        self.assertEqual(set(found[20:]), {429})
        refused = self.server.cli("job", "list", "--token", "perseus_31", ok=False)
        self.assertEqual(refused.returncode, 69, refused.stderr)  # later, not never
        self.assertEqual(self.server.ask("GET", "/v1/jobs", token=boss)[0], 200)
        self.server.stop()
        lines = [json.loads(line) for line in self.server.log if "without a valid token" in line]
        self.assertEqual([line["message"] for line in lines], ["calls refused without a valid token: 1 from 127.0.0.1"],
                         "at most one a minute")
        self.assertEqual(lines[0]["level"], "warning")

    def test_secrets_are_not_kept_by_caches_and_the_log(self):
        boss = self.first_token()
        status, headers, _ = self.request("POST", "/v1/tokens", '{"role":"job"}',
                                          {"Authorization": f"Bearer {boss}", "Content-Type": "application/json"})
        self.assertEqual((status, headers["Cache-Control"]), (200, "no-store"))
        slip = self.server.cli("token", "revoke", boss, "--token", boss, ok=False)
        self.assertNotIn(boss, slip.stderr)
        self.request("DELETE", "/v1/profiles/a%e2%80%aeb" + 2000 * "x", headers={"Authorization": f"Bearer {boss}"})
        self.server.stop()
        log = "".join(self.server.log)
        self.assertNotIn(boss, log)
        self.assertNotIn("\u202e", log)
        self.assertLess(max(len(line) for line in self.server.log), 1000)

    def test_changes_are_in_the_log_with_their_author(self):
        boss = self.first_token()
        self.server.ask("PUT", "/v1/profiles/sample", profile_body(), boss)
        self.server.ask("DELETE", "/v1/profiles/absent", token=boss)
        for token in (None, "perseus_wrong"):
            self.assertEqual(self.server.ask("DELETE", "/v1/profiles/sample", token=token)[0], 401)
            self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(), token)[0], 401)
        self.server.ask("DELETE", "/v1/profiles/sample", token=self.make("read-only", boss, name="reader"))
        self.server.stop()
        lines = [json.loads(line) for line in self.server.log]
        changes = [line["change"] for line in lines if "change" in line]
        self.assertEqual([(c["name"], c["did"], c["status"]) for c in changes],
                         [("", "POST /v1/tokens", 200), ("boss", "PUT /v1/profiles/sample", 200),
                          ("boss", "DELETE /v1/profiles/absent", 404), ("boss", "POST /v1/tokens", 200),
                          ("reader", "DELETE /v1/profiles/sample", 403)])
        refused = [line for line in lines if "without a valid token" in line["message"]]
        self.assertEqual([line["level"] for line in refused], ["warning"])  # at once, then once a minute
        self.assertEqual({c["from"] for c in changes}, {"127.0.0.1"})


class Content(SecurityCase):
    def test_a_key_that_comes_twice_is_refused(self):
        self.server.ask("PUT", "/v1/profiles/sample", profile_body())
        twice = '{"degrees":{"dp":1,"dp":2,"pp":4,"tp":1},"profile":"sample"}'
        status, answer = self.server.ask("POST", "/v1/jobs", twice)
        self.assertEqual(status, 422)
        self.assertIn("the key 'dp' appears twice", answer["detail"])

    def test_names_that_hide_something_are_refused(self):
        body = {"degrees": DEGREES, "profile_online": True, "pipeline": {"schedule": "1f1b", "microbatches": 4}}
        turned = ("a\u202eb", "a\u2066b", "a\u0085b", "a\u200fb", "a\u061cb", "a\u2028b")
        shown_as_nothing = ("a\u200bb", "a\ufeff", "a\U000e0041", "\u00ad", "a\u200db", "a\ufe0f", "\u3164", "a\u2060")
        for name in turned + shown_as_nothing:
            status, answer = self.server.ask("POST", "/v1/jobs", {"name": name, **body})
            self.assertEqual((status, answer["detail"]), (400, "name: must be UTF-8 without control or invisible characters"), ascii(name))
        for name in ("größer", "模型", "a b", "\u00a0", "\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f4bb", "\u2601\ufe0f"):
            status, answer = self.server.ask("POST", "/v1/jobs", {"name": name, **body})
            self.assertEqual(status, 200, (name, answer))

    def test_profiles_in_wrong_units_are_answered_with_a_doubt(self):
        rows = PROFILE.read_text().splitlines()
        in_mj = "\n".join([rows[0]] + [row.rsplit(",", 1)[0] + "," + str(1000 * float(row.rsplit(",", 1)[1])) for row in rows[1:]])
        body = {**profile_body(), "profile_csv": in_mj}
        status, answer = self.server.ask("PUT", "/v1/profiles/wrong", body)
        self.assertEqual(status, 200, answer)
        self.assertRegex(answer["doubts"][0], "W .*: no GPU takes more than 2000 W")
        self.assertNotIn("doubts", self.server.ask("PUT", "/v1/profiles/sample", profile_body())[1])
        jobs = {name: self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "profile": name})[1]["job"] for name in ("wrong", "sample")}
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{jobs['wrong']}")[1]["profile_doubts"], answer["doubts"])
        self.assertNotIn("profile_doubts", self.server.ask("GET", f"/v1/jobs/{jobs['sample']}")[1])
        status, uploaded = self.server.ask("PUT", f"/v1/jobs/{jobs['sample']}/profile", body)
        self.assertEqual((status, uploaded), (200, {"doubts": answer["doubts"]}))
        known = [e["text"] for e in self.server.ask("GET", f"/v1/events/recent?job={jobs['sample']}&kind=profile_known")[1]["events"]]
        self.assertIn("; DOUBTFUL: stage 0", known[0])
        self.server.stop()
        self.assertTrue(any("DOUBTFUL: stage 0" in line for line in self.server.log))

    def test_a_policy_is_one_json_value(self):
        self.server.ask("PUT", "/v1/profiles/sample", profile_body())
        job = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "profile": "sample"})[1]["job"]
        path = f"/v1/jobs/{job}/policies/power_cap"
        for body in ('{"average_w":1500},"max_slowdown":{"slowdown":2}', '{"average_w":1500}} {', ''):
            status, answer = self.server.ask("PUT", path, body)
            self.assertIn(status, (400, 422), (body, answer))
        self.assertEqual(self.server.ask("PUT", path, {"average_w": 1500})[0], 200)

    def test_two_ranks_do_not_put_off_plans(self):
        self.server.ask("PUT", "/v1/profiles/sample", profile_body())
        job = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "profile": "sample"})[1]["job"]
        ranks = f"/v1/jobs/{job}/ranks"
        for rank in range(4):
            body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
            self.assertEqual(self.server.ask("POST", ranks, body)[0], 200)
        have = self.server.ask("GET", f"{ranks}/0/plan")[1]["version"]
        for rank in (3, 2):
            self.server.ask("GET", f"{ranks}/{rank}/plan?have={have}&iteration={2**52}&wait_s=0.01")
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 0, "degree": 1.2})[0], 200)
        put_off = self.server.ask("GET", f"{ranks}/0/plan?have={have}")[1]
        self.assertGreater(put_off["from_iteration"], 2**51)
        for rank in (0, 1):
            self.server.ask("GET", f"{ranks}/{rank}/plan?have={put_off['version']}&iteration=10&wait_s=0.01")
        plan = self.server.ask("GET", f"{ranks}/0/plan?have={put_off['version']}&wait_s=100")[1]
        self.assertLess(plan["from_iteration"], 1000)


class Process(SecurityCase):
    def test_a_large_body_of_wrong_values_costs_little_memory(self):
        self.server.stop()
        self.server = Server(self.data, prefix=["env", "ASAN_OPTIONS=quarantine_size_mb=1"])

        def most_mb():
            return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text())[1]) / 1024

        before = most_mb()
        eight_million = b'[0' + b',0' * (8_000_000 - 100) + b']'
        for method, path, member in [("POST", "/v1/jobs/j/iterations", b"missed"), ("POST", "/v1/exchange", b"waits"),
                                     ("PUT", "/v1/jobs/j/profile", b"profile_csv"), ("POST", "/result/j", b"rank"),
                                     ("POST", "/v1/jobs/j/stragglers", b"degree"), ("POST", "/register_job", b"job_metadata")]:
            try:
                status, answer = self.server.ask(method, path, b'{"' + member + b'":' + eight_million + b"}")
                self.assertEqual(status, 413, (path, answer))
            except ConnectionError:  # rejected before the body was sent
                self.assertNotIn(path, ("/v1/jobs/j/iterations", "/v1/exchange"))
        self.assertLess(most_mb() - before, 200)

    def test_a_pipeline_that_no_profile_fits_is_refused_at_once(self):
        shape = {"schedule": "1f1b", "microbatches": 6}
        table = "rank,stage\n" + "0,0F1\n" * 10
        for wrong, said in [({"microbatches": -1}, "microbatches: -1; allowed: 1 to 131072"),
                            ({"microbatches": 10**8}, "microbatches: 100000000"), ({"chunks": 10**8}, "chunks: 100000000"),
                            ({"schedule": "zigzag"}, "zigzag"), ({"action_table": table}, "action table"),
                            ({"action_table": "0F0," * (2 << 20)}, "action table: 8388608 bytes; allowed: 4194304")]:
            status, answer = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1},
                                                                  "profile_online": True, "pipeline": {**shape, **wrong}})
            self.assertIn(status, (413, 422), answer)
            self.assertIn(said, answer["detail"])
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[1]["jobs"], [])

    def test_files_are_the_user_s_alone(self):
        self.server.ask("PUT", "/v1/profiles/sample", profile_body())
        self.server.stop()
        for path in [pathlib.Path(self.data), *pathlib.Path(self.data).iterdir()]:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path)
        database = pathlib.Path(self.data) / "perseus.db"
        database.chmod(0o644)  # as an earlier version of Perseus left it
        self.server = Server(self.data)
        self.assertEqual(stat.S_IMODE(database.stat().st_mode), 0o600)

    def test_a_file_system_that_hosts_share_is_refused(self):
        source, library = (self.folder.name + "/statfs" + end for end in (".c", ".so"))
        pathlib.Path(source).write_text("""#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
int statfs(const char *path, struct statfs *to) {
  (void)path;
  memset(to, 0, sizeof *to);
  to->f_type = strtol(getenv("FILE_SYSTEM"), 0, 16);
  return 0;
}
""")
        if not shutil.which("cc"):
            self.skipTest("no C compiler")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)

        def on(kind):
            return {**os.environ, "LD_PRELOAD": library, "FILE_SYSTEM": kind, "ASAN_OPTIONS": "verify_asan_link_order=0"}

        for kind, name in (("6969", "NFS"), ("FF534D42", "SMB"), ("FE534D42", "SMB"), ("BD00BD0", "Lustre")):
            for command in (["serve", "--listen", "127.0.0.1:0"], ["token", "create", "--role", "infrastructure"]):
                done = subprocess.run([served.PROGRAM, *command, "--data", self.folder.name + "/shared"], env=on(kind), text=True,
                                      capture_output=True, timeout=served.STOP_S)
                self.assertEqual(done.returncode, 75, done.stderr)
                self.assertRegex(done.stderr, f"/shared: is on {name}.*, where a SQLite database can be damaged; allowed: a local disk, ")
        server = Server(self.folder.name + "/shared", prefix=["env", f"LD_PRELOAD={library}", "FILE_SYSTEM=65735546",
                                                              "ASAN_OPTIONS=verify_asan_link_order=0"])
        server.stop()
        self.assertTrue(any("/shared is on FUSE: if other hosts have it too" in line for line in server.log))

    def test_it_goes_on_after_a_hangup(self):
        self.server.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.server.stop(), 0)
        self.assertTrue(any("settings reloaded" in line for line in self.server.log))

    def test_signals_drain_or_do_nothing(self):
        waiting = threading.Thread(target=lambda: self.server.ask("GET", "/v1/job_changes", raw=True))
        waiting.start()
        until(lambda: b"perseus_event_streams 1" in self.server.ask("GET", "/metrics", raw=True)[1])
        for stray in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGIO, signal.SIGVTALRM):
            self.server.process.send_signal(stray)
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.server.stop(signal.SIGQUIT), 0)
        waiting.join()
        self.assertTrue(any("stopping on signal 3" in line for line in self.server.log))

    def test_settings_are_shown_as_toml(self):
        for value in ('a "quoted" name', "back\\slash", "tab\there", "007", "1.", "line\nbreak"):
            shown = subprocess.run([served.PROGRAM, "serve", "--print-config", "--currency", value], capture_output=True, text=True)
            self.assertEqual(tomllib.loads(shown.stdout)["currency"], value)
            config = pathlib.Path(self.folder.name) / "shown.toml"
            config.write_text(shown.stdout)
            again = subprocess.run([served.PROGRAM, "serve", "--config", str(config), "--print-config"], capture_output=True, text=True)
            self.assertEqual(again.stdout, shown.stdout)

    def test_settings_are_shown_without_the_password(self):
        for url in ("postgresql://perseus:hunter2@db:5432/perseus", "postgresql://db/perseus?user=a&password=hunter2&x=1"):
            shown = subprocess.run([served.PROGRAM, "serve", "--database", url, "--print-config"], capture_output=True, text=True)
            self.assertEqual(shown.returncode, 0)
            self.assertNotIn("hunter2", shown.stdout)
            self.assertIn('database = "********"', shown.stdout)


if __name__ == "__main__":
    served.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
