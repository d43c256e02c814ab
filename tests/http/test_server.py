#!/usr/bin/env python3
"""The real `perseus serve` over HTTP: the calls of existing clients as they make them, and /v1 against its OpenAPI
file.

usage: test_server.py PERSEUS [unittest's arguments]; exit 77 without python3-jsonschema
"""

import contextlib
import csv
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import served
from served import PROFILE, ROOT, ServedCase, Server, until

try:
    import jsonschema
except ImportError:
    sys.exit(77)

PERSEUS = ""
PUSH = ["--schedule", "1f1b", "--microbatches", "12", "--blocking-power", "90"]


BOUND_S = 120


class ServerCase(ServedCase):
    def push(self, name="sample"):
        self.server.cli("profile", "push", name, str(PROFILE), *PUSH)

    def zeus_job(self, ranks=4, dp=1):
        status, job = self.server.ask(
            "POST",
            "/register_job",
            {"job_id": "", "pp_degree": ranks, "dp_degree": dp, "tp_degree": 1, "world_size": ranks * dp,
             "job_metadata": "sample"},
        )
        self.assertEqual(status, 200, job)
        for rank in range(ranks * dp):
            self.assertEqual(
                self.server.ask(
                    "POST",
                    f"/register_rank/{urllib.parse.quote(job)}",
                    {"rank": rank, "dp_rank": rank // ranks, "pp_rank": rank % ranks, "tp_rank": 0,
                     "available_frequencies": list(range(1500, 200, -15))},
                ),
                (200, None),
            )
        return job


class ExistingClients(ServerCase):
    def test_zeus_client(self):
        self.push()
        job = self.zeus_job()
        self.assertRegex(job, r"^\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\+dp1\+pp4\+tp1\+")
        for rank in range(4):
            status, schedule = self.server.ask("GET", f"/schedule/{job}?rank={rank}")
            self.assertEqual(status, 200)
            self.assertEqual(schedule["rank"], rank)
            names = [name for name, _ in schedule["frequencies"]]
            self.assertEqual(names.count("forward"), 12)
            self.assertEqual(names.count("backward"), 12)
            self.assertTrue(all(isinstance(mhz, int) and 200 < mhz <= 1500 for _, mhz in schedule["frequencies"]))
        # The fastest plan is not everything at maximum clock: that is where Perseus saves energy.
        clocks = {mhz for rank in range(4) for _, mhz in self.server.ask("GET", f"/schedule/{job}?rank={rank}")[1]["frequencies"]}
        self.assertGreater(len(clocks), 1)
        self.assertEqual(
            self.server.ask("POST", f"/result/{job}", {"rank": 0, "iter_time": [5.0], "iter_energy": [900.0],
                                                       "time_breakdown": {}, "energy_breakdown": {}}),
            (200, None),
        )

    def test_zeus_metadata_must_name_a_profile(self):
        status, answer = self.server.ask(
            "POST", "/register_job",
            {"job_id": "", "pp_degree": 4, "dp_degree": 1, "tp_degree": 1, "world_size": 4, "job_metadata": "absent"})
        self.assertEqual(status, 404)
        self.assertIn("absent", answer["detail"])

    def test_artifact_client_with_a_known_profile(self):
        self.push("gpt3-xl")
        self.assertEqual(self.server.ask("GET", "/info")[1]["mode"], "frequency")
        status, job = self.server.ask(
            "POST", "/register_job",
            {"job_id": "", "pp_degree": 4, "dp_degree": 1, "tp_degree": 1, "world_size": 4, "framework": "Megatron",
             "model_name": "gpt3-xl", "partition_method": "param", "microbatch_size": 4, "num_microbatches": 12})
        self.assertEqual(status, 200, job)
        pipe_schedule = {}
        for rank in range(4):
            warm_up = min(3 - rank, 12)
            compute = ["forward"] * warm_up + ["forward", "backward"] * (12 - warm_up) + ["backward"] * warm_up
            pipe_schedule[rank] = [part for name in compute for part in (name, "p2p")]
            self.assertEqual(
                self.server.ask("POST", "/register_rank",
                                {"job_id": job, "rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0,
                                 "pipe_schedule": pipe_schedule[rank],
                                 "power_state_range": list(range(1500, 200, -15))}),
                (200, None))
        for window in range(2):  # the client repeats this during the whole training
            for rank in range(4):
                status, schedule = self.server.ask("GET", f"/schedule/{job}?rank={rank}")
                self.assertEqual(status, 200, schedule)
                states = schedule["power_states"]
                self.assertEqual(len(states), len(pipe_schedule[rank]))
                self.assertTrue(all(isinstance(state, int) and state > 0 for state in states))
                for name, before, state in zip(pipe_schedule[rank][1:], states, states[1:]):
                    if name == "p2p":
                        self.assertEqual(state, before)
            for rank in range(4):
                self.assertEqual(
                    self.server.ask("POST", f"/result/{job}",
                                    {"rank": rank, "iter_time": [5.0, 5.1], "iter_energy": [900.0, 910.0],
                                     "time_breakdown": {"forward": [[0.1] * 12] * 2, "backward": [[0.2] * 12] * 2},
                                     "energy_breakdown": {"forward": [], "backward": []}}),
                    (200, None))

    def test_artifact_client_is_profiled_while_it_trains(self):
        truth = {}
        with PROFILE.open() as rows:
            for row in csv.DictReader(rows):
                key = int(row["stage"]), row["instruction"], int(row["frequency"])
                truth[key] = float(row["time"]), float(row["energy"])
        clocks = sorted({frequency for _, _, frequency in truth}, reverse=True)
        status, job = self.server.ask(
            "POST", "/register_job",
            {"job_id": "", "pp_degree": 4, "dp_degree": 1, "tp_degree": 1, "world_size": 4, "framework": "Merak",
             "model_name": "never-seen", "partition_method": "param", "microbatch_size": 4, "num_microbatches": 12})
        self.assertEqual(status, 200, job)
        stop = threading.Event()
        wrong = []

        def train(rank):
            """As the published client: a schedule, some iterations, their result, and again."""
            noise = random.Random(rank)
            warm_up = min(3 - rank, 12)
            compute = ["forward"] * warm_up + ["forward", "backward"] * (12 - warm_up) + ["backward"] * warm_up
            pipe_schedule = ["load"] + [part for name in compute for part in (name, "p2p")] + ["cc", "step"]
            self.server.ask("POST", "/register_rank",
                            {"job_id": job, "rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0,
                             "pipe_schedule": pipe_schedule, "power_state_range": clocks})
            while not stop.is_set():
                status, schedule = self.server.ask("GET", f"/schedule/{job}?rank={rank}")
                if status != 200 or len(schedule["power_states"]) != len(pipe_schedule):
                    wrong.append(schedule)
                    return
                result = {"rank": rank, "iter_time": [], "iter_energy": [],
                          "time_breakdown": {"forward": [], "backward": [], "p2p": []},
                          "energy_breakdown": {"forward": [], "backward": []}}
                for _ in range(3):
                    times = {"forward": [], "backward": [], "p2p": [0.001] * 24}
                    energy = 0
                    for name, clock in zip(pipe_schedule, schedule["power_states"]):
                        if name not in ("forward", "backward"):
                            continue
                        seconds, joules = truth[rank, name, clock]
                        times[name].append(seconds * noise.gauss(1, 0.005))
                        energy += joules * noise.gauss(1, 0.005)
                    busy = sum(times["forward"]) + sum(times["backward"])
                    result["iter_time"].append(1.25 * busy)
                    result["iter_energy"].append(energy + 90 * 0.25 * busy)
                    for name, values in times.items():
                        result["time_breakdown"][name].append(values)
                answer = self.server.ask("POST", f"/result/{job}", result)
                if answer != (200, None):
                    wrong.append(answer)
                    return

        ranks = [threading.Thread(target=train, args=(rank,)) for rank in range(4)]
        for rank in ranks:
            rank.start()
        try:
            deadline = time.monotonic() + 600
            view = {}
            while not wrong and time.monotonic() < deadline and view.get("state") not in ("deployed", "failed"):
                view = self.server.ask("GET", f"/v1/jobs/{urllib.parse.quote(job)}")[1]
                time.sleep(0.1)
        finally:
            stop.set()
            self.server.ask("POST", f"/v1/jobs/{urllib.parse.quote(job)}/finish") if wrong else None
            for rank in ranks:
                rank.join(60)
        self.assertEqual(wrong, [])
        self.assertEqual(view["state"], "deployed", view)
        self.assertEqual(view["facts"]["profile"], "measured online")
        self.assertTrue(view["profiling"]["over"])
        self.assertGreater(view["profiling"]["windows"], 2)
        costs = view["savings"]["per_iteration"]
        self.assertLess(costs["energy_j"], 0.97 * costs["all_max_energy_j"])
        self.assertLess(costs["time_s"], 1.01 * costs["all_max_time_s"])

    def test_wrong_bodies_get_one_clear_message(self):
        for body, words in [("{", "body:1:2"), ("[]", "object"), ("{}", "dp_degree"), ('{"dp_degree":"x"}', "dp_degree"),
                            ("[" * 100, "deep"), (b"\xff\xfe", "body")]:
            status, answer = self.server.ask("POST", "/register_job", body)
            self.assertEqual(status, 422, body)
            self.assertIn(words, answer["detail"])
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[1]["jobs"], [])


class OwnApi(ServerCase):
    def test_every_call_refuses_unknown_parameters(self):
        api = json.loads((ROOT / "docs/openapi.json").read_text())
        for template, call in api["paths"].items():
            for method in set(call) & {"get", "put", "post", "delete"}:
                path = re.sub(r"\{[a-z]+\}", "1", template) + "?nonsense=1"
                body = {} if method in ("put", "post") else None
                with self.subTest(method=method, path=path):
                    status, answer = self.server.ask(method.upper(), path, body)
                    self.assertEqual(status, 400, answer)
                    self.assertIn("unknown parameter 'nonsense'; allowed: ", answer["detail"])

    def test_implementation_and_openapi_agree(self):
        api = json.loads((ROOT / "docs/openapi.json").read_text())
        served = self.server.ask("GET", "/v1/openapi.json")[1]
        self.assertEqual(served, api)
        # The schemas allow only described members.
        seen = set()

        def check(method, template, path, body=None, expect=200):
            call = api["paths"][template][method.lower()]
            if body is not None and expect == 200:
                jsonschema.validate(body, {**call["requestBody"]["content"]["application/json"]["schema"],
                                           "components": api["components"]})
            status, answer = self.server.ask(method, path, body)
            self.assertEqual(status, expect, (method, path, answer))
            self.assertIn(str(status), call["responses"], f"{method} {template} answers {status}")
            reply = call["responses"][str(status)]
            if "$ref" in reply:
                reply = api["components"]["responses"][reply["$ref"].rsplit("/", 1)[1]]
            schema = reply["content"]["application/json"]["schema"]
            jsonschema.validate(answer, {**schema, "components": api["components"]})
            seen.add((method, template, status))
            return answer

        profile = {"profile_csv": PROFILE.read_text(),
                   "pipeline": {"schedule": "1f1b", "microbatches": 12, "blocking_power_w": 90}}
        check("PUT", "/v1/profiles/{name}", "/v1/profiles/sample", profile)
        check("PUT", "/v1/profiles/{name}", "/v1/profiles/x", {"profile_csv": "no", "pipeline": {"schedule": "1f1b"}}, 422)
        check("GET", "/v1/profiles", "/v1/profiles")
        check("GET", "/v1/profiles/{name}", "/v1/profiles/sample")
        check("GET", "/v1/profiles/{name}", "/v1/profiles/absent", expect=404)
        job = check("POST", "/v1/jobs", "/v1/jobs",
                    {"name": "a", "degrees": {"dp": 2, "pp": 4, "tp": 1}, "profile": "sample"})["job"]
        check("POST", "/v1/jobs", "/v1/jobs", {"degrees": {"dp": 0, "pp": 4, "tp": 1}}, 400)
        check("POST", "/v1/jobs", "/v1/jobs", {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "absent"}, 404)
        check("POST", "/v1/jobs", "/v1/jobs", {"nonsense": 1}, 422)
        ranks = f"/v1/jobs/{job}/ranks"
        for rank in range(8):
            body = {"rank": rank, "dp_rank": rank // 4, "pp_rank": rank % 4, "tp_rank": 0, "accelerator": f"GPU-{rank}",
                    "clocks_mhz": list(range(1500, 200, -15)), "host": "h"}
            check("POST", "/v1/jobs/{job}/ranks", ranks, body)
        check("POST", "/v1/jobs/{job}/ranks", ranks, body)  # a repetition: nothing happens
        check("POST", "/v1/jobs/{job}/ranks", ranks, {**body, "host": "elsewhere", "pp_rank": 0}, 409)
        check("POST", "/v1/jobs/{job}/ranks", "/v1/jobs/absent/ranks", body, 404)
        plan = check("GET", "/v1/jobs/{job}/ranks/{rank}/plan", f"{ranks}/0/plan")
        self.assertEqual(plan["kind"], "plan")
        same = check("GET", "/v1/jobs/{job}/ranks/{rank}/plan", f"{ranks}/0/plan?have={plan['version']}&wait_s=0.01")
        self.assertTrue(same["unchanged"])
        check("GET", "/v1/jobs/{job}/ranks/{rank}/plan", f"{ranks}/0/plan?has=1", expect=400)
        for query, words in (("epoch=-1", "'epoch' is '-1'; expected the epoch of the rank's process, 0 to 9007199254740992"),
                             ("epoch=9007199254740993", "epoch: 9007199254740993; allowed: 0 to 9007199254740992"),
                             ("have=0&have=1", "the parameter 'have' appears twice; allowed: once"),
                             ("have=0&h%61ve=0", "the parameter 'have' appears twice; allowed: once")):
            refused = check("GET", "/v1/jobs/{job}/ranks/{rank}/plan", f"{ranks}/0/plan?{query}", expect=400)
            self.assertEqual(refused["detail"], words)
        refused = check("POST", "/v1/jobs/{job}/iterations", f"/v1/jobs/{job}/iterations",
                        {"rank": 0, "epoch": -1, "iteration_time_s": [4.0]}, 400)
        self.assertEqual(refused["detail"], "epoch: -1; allowed: 0 to 9007199254740992")
        check("GET", "/v1/jobs/{job}/ranks/{rank}/plan", f"{ranks}/99/plan", expect=404)
        check("GET", "/v1/jobs", "/v1/jobs")
        check("GET", "/v1/jobs/{job}", f"/v1/jobs/{job}")
        check("GET", "/v1/jobs/{job}", "/v1/jobs/absent", expect=404)
        check("GET", "/v1/jobs/{job}/frontier", f"/v1/jobs/{job}/frontier?pipeline=1")
        check("GET", "/v1/jobs/{job}/frontier", f"/v1/jobs/{job}/frontier?pipeline=7", expect=404)
        shown = check("GET", "/v1/jobs/{job}/ranks", f"/v1/jobs/{job}/ranks")
        self.assertEqual([one["rank"] for one in shown["ranks"]], list(range(8)))
        check("GET", "/v1/jobs/{job}/ranks", "/v1/jobs/absent/ranks", expect=404)
        check("GET", "/v1/jobs/{job}/timeline", f"/v1/jobs/{job}/timeline?pipeline=1&point=0")
        check("GET", "/v1/jobs/{job}/timeline", f"/v1/jobs/{job}/timeline?point=99999", expect=404)
        exchanged = check("POST", "/v1/exchange", "/v1/exchange",
                          {"wait_s": 1, "waits": [{"job": job, "rank": rank} for rank in (0, 99)],
                           "reports": [{"job": job, "body": json.dumps({"rank": 0, "iteration_time_s": [4.0]})},
                                       {"job": job, "body": "{"},
                                       {"job": "absent", "body": json.dumps({"rank": 0, "iteration_time_s": []})}]})
        self.assertEqual([part["status"] for part in exchanged["reports"]], [200, 422, 404])
        statuses = {part["wait"]: part["status"] for part in exchanged["waits"]}
        self.assertIn(statuses.get(0, 200), (200,))
        self.assertEqual(statuses[1], 404)
        check("POST", "/v1/exchange", "/v1/exchange", {"wait_s": 61}, 400)
        check("POST", "/v1/jobs/{job}/iterations", f"/v1/jobs/{job}/iterations",
              {"rank": 0, "iteration_time_s": [plan["iteration_time_s"]], "iteration_energy_j": [900.0], "last_iteration": 1})
        check("POST", "/v1/stragglers", "/v1/stragglers", {"accelerator": "GPU-1", "delay_s": 3600, "degree": 1.1})
        check("POST", "/v1/stragglers", "/v1/stragglers", {"accelerator": "GPU-99", "degree": 1.1}, 404)
        stragglers = f"/v1/jobs/{job}/stragglers"
        notices = check("POST", "/v1/jobs/{job}/stragglers", stragglers, {"pipeline": 1, "delay_s": 3600, "degree": 1.2})
        check("POST", "/v1/jobs/{job}/stragglers", stragglers, {"pipeline": 1, "rank": 2, "degree": 1.2}, 400)
        check("POST", "/v1/jobs/{job}/stragglers", stragglers, {"pipeline": 1, "degree": 0.5}, 400)
        notice = notices["notices"][0]["id"]
        check("DELETE", "/v1/jobs/{job}/stragglers/{notice}", f"{stragglers}/{notice}")
        check("DELETE", "/v1/jobs/{job}/stragglers/{notice}", f"{stragglers}/{notice}", expect=404)
        check("PUT", "/v1/jobs/{job}/policies/{kind}", f"/v1/jobs/{job}/policies/power_cap", {"average_w": 1500.0})
        check("PUT", "/v1/jobs/{job}/policies/{kind}", f"/v1/jobs/{job}/policies/power_cap", {"watts": 1}, 422)
        warned = self.server.cli("policy", "power-cap", job, "--average-power", "1")
        self.assertIn("warning: power cap 1 W cannot be kept: the least is", warned.stdout)
        check("DELETE", "/v1/jobs/{job}/policies/{kind}", f"/v1/jobs/{job}/policies/power_cap")
        check("PUT", "/v1/jobs/{job}/tier", f"/v1/jobs/{job}/tier", {"least_rate": 0.9, "priority": 2})
        check("PUT", "/v1/jobs/{job}/tier", f"/v1/jobs/{job}/tier", {"least_rate": 2}, 400)
        for method in ("PUT", "DELETE"):
            wrong = check(method, "/v1/jobs/{job}/policies/{kind}", f"/v1/jobs/{job}/policies/bogus",
                          {"average_w": 1} if method == "PUT" else None, 400)
            self.assertEqual(wrong["detail"], "'kind' is 'bogus'; expected one of power_cap, pinned, max_slowdown")
        check("PUT", "/v1/jobs/{job}/profile", f"/v1/jobs/{job}/profile", {**profile, "pipelines": [1]})
        shape = "/v1/jobs/{job}/ranks/{rank}/shape"
        check("POST", shape, f"{ranks}/0/shape", {"microbatches": 16})
        check("POST", shape, f"{ranks}/99/shape", {"microbatches": 16}, 404)
        check("POST", shape, f"{ranks}/0/shape", {"microbatches": 0}, 400)
        check("POST", shape, f"{ranks}/0/shape", {"prevails": True}, 422)
        self.assertIn(16, [one["microbatches"] for one in check("GET", "/v1/jobs/{job}", f"/v1/jobs/{job}")["shapes"]])
        dropped = "/v1/jobs/{job}/ranks/{rank}/plan_dropped"
        version = check("GET", "/v1/jobs/{job}/ranks/{rank}/plan", f"{ranks}/0/plan")["version"]
        slow = {"version": version, "reason": "slow", "measured_time_s": 1.1, "promised_time_s": 1.0}
        check("POST", dropped, f"{ranks}/0/plan_dropped", slow)
        check("POST", dropped, f"{ranks}/99/plan_dropped", slow, 404)
        check("POST", dropped, f"{ranks}/0/plan_dropped", {"reason": "slow"}, 422)
        self.assertIn("rank 0 dropped plan", check("GET", "/v1/jobs/{job}", f"/v1/jobs/{job}")["plans_dropped"][0])
        ended = "/v1/jobs/{job}/ranks/{rank}/ended"
        check("POST", ended, f"{ranks}/0/ended?epoch=1")
        check("POST", ended, f"{ranks}/0/ended?epoch=one", expect=400)
        history = "/v1/jobs/{job}/history"
        check("GET", history, f"/v1/jobs/{job}/history?step=hour")
        check("GET", history, f"/v1/jobs/{job}/history?step=week", expect=400)
        check("GET", history, "/v1/jobs/absent/history", expect=404)
        check("GET", "/v1/history", "/v1/history?step=hour")
        check("GET", "/v1/history", "/v1/history?step=week", expect=400)
        for path in ("/v1/site", "/v1/site/power", "/v1/site/forecast"):
            check("GET", path, path, expect=404)
        check("PUT", "/v1/site", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 1e9}]}]})
        check("PUT", "/v1/site", "/v1/site", {"domains": [{"name": "hall", "parent": "roof"}]}, 400)
        check("POST", "/v1/site/meter", "/v1/site/meter", {"readings": [{"domain": "hall", "power_w": 5e5}]})
        check("POST", "/v1/site/meter", "/v1/site/meter", {"readings": [{"domain": "roof", "power_w": 5e5}]}, 400)
        admission = {"job": "train/1", "domain": "hall", "accelerators": 8}
        check("POST", "/v1/site/admission", "/v1/site/admission", {**admission, "accelerators": 1000, "accelerator_w": 9e4})
        self.assertEqual(check("POST", "/v1/site/admission", "/v1/site/admission", admission)["state"], "admitted")
        check("POST", "/v1/site/admission", "/v1/site/admission", {**admission, "domain": "roof"}, 400)
        check("POST", "/v1/site/admission", "/v1/site/admission", {**admission, "gpus": 8}, 422)
        for path in ("/v1/site", "/v1/site/power", "/v1/site/proof", "/v1/site/forecast"):
            check("GET", path, path)
        check("DELETE", "/v1/site/admission/{name}", "/v1/site/admission/train%2F1")
        check("DELETE", "/v1/site/admission/{name}", "/v1/site/admission/train%2F1", expect=404)
        check("GET", "/v1/site/proof", "/v1/site/proof?format=xml", expect=400)
        check("GET", "/v1/site/forecast", "/v1/site/forecast?hours=0", expect=400)
        check("DELETE", "/v1/site", "/v1/site")
        check("DELETE", "/v1/site", "/v1/site", expect=404)
        for path in ("/v1/stragglers", "/v1/policies", "/v1/alerts", "/v1/hosts"):
            check("GET", path, path)
            check("GET", path, f"{path}?limit=0", expect=400)
        check("POST", "/v1/jobs/{job}/finish", f"/v1/jobs/{job}/finish")
        check("DELETE", "/v1/jobs/{job}", f"/v1/jobs/{job}")
        check("DELETE", "/v1/jobs/{job}", f"/v1/jobs/{job}", expect=404)
        check("DELETE", "/v1/profiles/{name}", "/v1/profiles/sample")
        facts = {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "facts": {"model": "m"}}
        learns = check("POST", "/v1/jobs", "/v1/jobs", facts)["job"]
        check("PUT", "/v1/jobs/{job}/profile", f"/v1/jobs/{learns}/profile", profile)
        learned = check("GET", "/v1/learned_profiles", "/v1/learned_profiles")["profiles"]
        self.assertEqual([(one["model"], one["job"]) for one in learned], [("m", learns)])
        check("DELETE", "/v1/jobs/{job}", f"/v1/jobs/{learns}", expect=409)
        check("DELETE", "/v1/learned_profiles/{id}", f"/v1/learned_profiles/{learned[0]['id']}")
        check("DELETE", "/v1/learned_profiles/{id}", f"/v1/learned_profiles/{learned[0]['id']}", expect=404)
        check("GET", "/v1/events/recent", "/v1/events/recent")
        check("GET", "/v1/openapi.json", "/v1/openapi.json")
        token = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, self.server.first_secret())[1]
        self.assertEqual(self.server.ask("DELETE", f"/v1/tokens/{token['id']}", token=token["token"])[0], 409,
                         "the last one that could make others")
        self.server.ask("POST", "/v1/tokens", {"role": "infrastructure", "team": "t"}, token["token"])
        for method, path in [("GET", "/v1/tokens"), ("DELETE", f"/v1/tokens/{token['id']}")]:
            self.assertEqual(self.server.ask(method, path)[0], 401)
            self.assertEqual(self.server.ask(method, path, token=token["token"])[0], 200)
        streams = {("GET", "/v1/jobs/{job}/events"), ("GET", "/v1/events"), ("GET", "/v1/job_changes")}
        tokens = {("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("DELETE", "/v1/tokens/{token}")}
        described = {(m.upper(), path) for path, calls in api["paths"].items() for m in calls}
        reached = {(method, path) for method, path, status in seen if status == 200}
        self.assertEqual(described - reached, streams | tokens)

    def test_tokens_and_roles(self):
        self.push()
        first = {"role": "infrastructure", "name": "boss"}
        self.assertEqual(self.server.ask("POST", "/v1/tokens", first)[0], 403, "anybody on this machine could")
        boss = self.server.ask("POST", "/v1/tokens", first, self.server.first_secret())[1]["token"]
        made = {role: self.server.ask("POST", "/v1/tokens", {"role": role}, boss)[1]["token"]
                for role in ("job", "read-only")}
        other = self.server.ask("POST", "/v1/tokens", {"role": "job"}, boss)[1]["token"]
        new_job = {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample"}
        self.assertEqual(self.server.ask("POST", "/v1/jobs", new_job)[0], 401)
        self.assertEqual(self.server.ask("POST", "/v1/jobs", new_job, "perseus_guess")[0], 401)
        self.assertEqual(self.server.ask("POST", "/v1/jobs", new_job, made["read-only"])[0], 403)
        job = self.server.ask("POST", "/v1/jobs", new_job, made["job"])[1]["job"]
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}", token=made["job"])[0], 200)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}", token=made["read-only"])[0], 200)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}", token=other)[0], 403)
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/finish", {}, other)[0], 403)
        self.assertEqual(self.server.ask("POST", "/register_rank", {"job_id": job, "rank": 0, "dp_rank": 0, "pp_rank": 0,
                         "tp_rank": 0, "pipe_schedule": ["forward"], "power_state_range": [1410]}, other)[0], 403)
        self.assertEqual(self.server.ask("GET", "/v1/jobs", token=other)[1]["jobs"], [])
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/x", {}, made["job"])[0], 403)
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.server.ask("GET", "/", raw=True)[0], 200)
        text = (pathlib.Path(self.data) / "perseus.db").read_bytes()
        wal = pathlib.Path(self.data) / "perseus.db-wal"
        text += wal.read_bytes() if wal.exists() else b""
        self.assertNotIn(boss.encode(), text, "only hashes are kept")
        self.assertEqual(self.server.stop(), 0)
        self.server = Server(self.data)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}", token=made["job"])[0], 200)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}", token=other)[0], 403)


class Operations(ServerCase):
    def test_probes_and_metrics(self):
        status, ready = self.server.ask("GET", "/readyz")
        self.assertEqual((status, ready["status"]), (200, "ready"))
        self.assertEqual({name: check["status"] for name, check in ready["checks"].items()},
                         {"store": "ok", "disk": "ok", "draining": "ok"})
        self.assertGreater(ready["checks"]["disk"]["free_bytes"], 0)
        self.assertEqual(self.server.ask("GET", "/nowhere")[0], 404)
        self.assertEqual(self.server.ask("PUT", "/v1/jobs", {})[0], 405)
        status, text = self.server.ask("GET", "/metrics", raw=True)
        self.assertEqual(status, 200)
        self.assertIn(b'perseus_requests_seconds_count{route="GET /readyz",status="200"} 1', text)
        self.assertIn(b'perseus_io_thread_seconds_count{task="GET /readyz"} 1', text)
        for line in text.decode().splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) (perseus|process)_\w+ .+|(perseus|process)_\w+(\{(\w+="[^"]*",?)+\})? [0-9.e+-]+)$')
        figures = dict(re.findall(r"^(process_\w+) (\S+)$", text.decode(), re.M))
        self.assertAlmostEqual(float(figures["process_start_time_seconds"]), time.time(), delta=600)
        self.assertGreater(float(figures["process_resident_memory_bytes"]), 1e6)
        self.assertGreaterEqual(float(figures["process_open_fds"]), 4)
        self.assertIn(b'perseus_build_info{version="', text)
        for series in (b'jobs{state="deployed"} 0', b'jobs{state="damaged"} 0', b"ranks 0",
                       b'planning_queue{kind="first",state="waiting"} 0',
                       b'planning_queue{kind="refinement",state="running"} 0', b"store_commits_failed_total 0"):
            self.assertIn(b"\nperseus_" + series + b"\n", text)
        if promtool := shutil.which("promtool"):
            checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, b""))

    def test_metrics_of_jobs_and_of_the_database(self):
        def figure(name):
            text = self.server.ask("GET", "/metrics", raw=True)[1].decode()
            found = re.search(rf"^perseus_{re.escape(name)} (.*)$", text, re.M)
            return float(found[1]) if found else None

        before = figure("store_commit_seconds_count")
        self.push()
        self.zeus_job(ranks=4, dp=2)
        self.assertGreater(figure("store_commit_seconds_count"), before)
        self.assertEqual(figure("ranks"), 8)
        until(lambda: figure('jobs{state="deployed"}') == 1)
        self.assertGreater(until(lambda: figure("database_bytes")), 4096)
        count = figure("store_commit_seconds_count")
        self.assertGreaterEqual(figure('store_commit_seconds_bucket{le="+Inf"}'), count)

    def test_there_is_room_for_all_connections_from_the_start(self):
        """The table of open files does not grow while ranks connect, because growing would delay all of them."""
        def places(server):
            status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            return int(re.search(r"FDSize:\s+(\d+)", status)[1])

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertGreaterEqual(places(self.server), min(most, 20000))

    def test_the_client_of_postgresql_is_not_loaded_for_sqlite(self):
        """It brings 20 libraries, and 3.5 MB."""
        self.assertNotIn("libpq", pathlib.Path(f"/proc/{self.server.process.pid}/maps").read_text())

    def test_more_connections_than_files(self):
        self.server.stop()
        self.server = Server(self.data, prefix=("prlimit", "--nofile=100"))
        address = self.server.address.split(":")
        many = [socket.create_connection(address) for _ in range(150)]
        many[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        self.assertIn(b"200 OK", many[0].recv(1000))
        last = many.pop()
        last.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        for one in many:
            one.close()
        self.assertIn(b"200 OK", last.recv(1000), "it is heard as soon as others have closed")
        last.close()
        self.assertEqual(self.server.stop(), 0)
        self.assertIn("only 100 files may be open", "".join(self.server.log))

    def test_too_few_files_are_one_error(self):
        for limit, inherited in [(8, 0), (16, 0), (40, 0), (64, 40), (64, 61)]:
            files = [os.open(os.devnull, os.O_RDONLY) for _ in range(inherited)]
            arguments = ["prlimit", f"--nofile={limit}", PERSEUS, "serve", "--listen", "127.0.0.1:0", "--data", self.data + "2"]
            done = subprocess.run(arguments, capture_output=True, text=True, pass_fds=files, timeout=600)
            for file in files:
                os.close(file)
            self.assertEqual((done.returncode, done.stdout), (69, ""), (limit, done.stderr))
            self.assertRegex(done.stderr, rf"^perseus: open files: {limit} \(ulimit -n\), of which \d+ are in use; allowed: at least \d+\n$")

    def test_a_port_that_is_taken_leaves_nothing_behind(self):
        for listening in (self.server.address, "127.0.0.1.nowhere.invalid:1"):
            data, log = self.data + "-other", self.data + "-other.log"
            done = subprocess.run([PERSEUS, "serve", "--listen", listening, "--data", data, "--log-file", log],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual((done.returncode, done.stdout), (69, ""), done.stderr)
            self.assertRegex(done.stderr, rf"^perseus: cannot listen on {listening}: [^\n]+\n$")
            self.assertFalse(os.path.exists(data) or os.path.exists(log), "it was not its port")

    def test_the_list_shows_the_state_of_jobs(self):
        self.push()
        job = self.zeus_job(dp=2)
        for rank in range(8):
            self.server.ask("GET", f"/schedule/{job}?rank={rank}")
        self.server.ask("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 1, "degree": 1.2})

        def listed():
            return self.server.ask("GET", "/v1/jobs")[1]["jobs"][0]

        row = listed()
        self.assertEqual([row[k] for k in ("ranks", "ranks_registered", "pipelines", "stragglers")], [8, 8, 2, 1])
        view = self.server.ask("GET", f"/v1/jobs/{job}")[1]["savings"]["per_iteration"]
        self.assertEqual(row["iteration_time_s"], view["time_s"])
        self.assertAlmostEqual(row["saved_pct"], 100 * (1 - view["energy_j"] / view["all_max_energy_j"]))
        # The plan's saving is an estimate; no rank has reported iterations, so nothing is saved.
        self.assertRegex(self.server.cli("job", "list").stdout, r" 8/8 .* [\d.]+ % est\.  +-  +1  ")
        shown = self.server.cli("job", "show", job).stdout
        self.assertIn("  per_iteration (est.):\n", shown)
        self.assertNotRegex(shown, r"(?m)^ *saved: ")
        self.server.ask("POST", f"/v1/jobs/{job}/finish", {})
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data)  # it reads no log of a finished job
        over = listed()
        self.assertEqual((over["state"], over["ranks"]), ("finished", 8))
        for member in ("stragglers", "saved_pct", "iteration_time_s"):  # it saves nothing any more
            self.assertNotIn(member, over)

    def test_jobs_that_ended_can_be_removed(self):
        self.push()
        kept, gone, old = (self.zeus_job() for _ in range(3))
        for job in (gone, old):
            self.server.cli("job", "finish", job)
        self.assertEqual(self.server.cli("job", "delete", kept, ok=False).returncode, 75)
        self.server.cli("job", "delete", gone)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{gone}")[0], 404)
        self.server.stop()
        self.server = Server(self.data, "--keep-finished-days", "0.000001")
        until(lambda: {job["id"] for job in self.server.ask("GET", "/v1/jobs")[1]["jobs"]} == {kept})
        self.server.stop()
        self.server = Server(self.data, "--keep-finished-days", "0")
        self.assertEqual([job["id"] for job in self.server.ask("GET", "/v1/jobs")[1]["jobs"]], [kept])
        with sqlite3.connect(pathlib.Path(self.data) / "perseus.db") as database:
            self.assertEqual(database.execute("SELECT DISTINCT job FROM events").fetchall(), [(kept,)])

    def test_backup_while_it_runs(self):
        self.push()
        job = self.zeus_job()
        copy = self.folder.name + "/restored/perseus.db"
        pathlib.Path(copy).parent.mkdir()
        done = subprocess.run([PERSEUS, "backup", "--data", self.data, copy, "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"backup": copy, "bytes": os.path.getsize(copy)})
        again = subprocess.run([PERSEUS, "backup", "--data", self.data, copy], capture_output=True, text=True)
        self.assertEqual(again.returncode, 73)
        self.assertIn("exists already", again.stderr)
        nowhere = subprocess.run([PERSEUS, "backup", "--data", self.folder.name, copy + "2"], capture_output=True, text=True)
        self.assertEqual(nowhere.returncode, 66, nowhere.stderr)
        self.server.ask("POST", f"/v1/jobs/{job}/finish", {})  # after the copy
        restored = Server(self.folder.name + "/restored")
        self.assertEqual(restored.ask("GET", f"/v1/jobs/{job}")[1]["ranks"], {"expected": 4, "registered": 4, "waiting": 0})
        self.assertNotEqual(restored.ask("GET", f"/v1/jobs/{job}")[1]["state"], "finished")
        restored.stop()

    def test_a_damaged_database_is_refused_and_left_alone(self):
        self.push()
        self.zeus_job()
        self.assertEqual(self.server.stop(), 0)
        database = pathlib.Path(self.data) / "perseus.db"
        with contextlib.closing(sqlite3.connect(database)) as closed_last:
            # A server that reads when it stops leaves its log, and with the pages in it no damage would be found.
            closed_last.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        whole = database.read_bytes()
        pages = bytearray(whole)
        for page in range(4096, len(pages), 4096):
            pages[page] = 0x5a  # no valid kind of page
        for damage in (bytes(pages), b"not a database at all " * 500, whole[: len(whole) // 8192 * 4096]):
            database.write_bytes(damage)
            try:
                done = subprocess.run([PERSEUS, "serve", "--listen", "127.0.0.1:0", "--data", self.data],
                                      capture_output=True, text=True, timeout=600)
            except subprocess.TimeoutExpired as hung:
                self.fail(f"damage of {len(damage)} bytes that begins with {damage[:16]}: {hung.stderr} {hung.stdout}")
            self.assertEqual(done.returncode, 65, done.stderr + done.stdout)
            self.assertIn("perseus.db", done.stderr)
            self.assertIn("damaged", done.stderr)
            self.assertEqual(database.read_bytes(), damage)
        log = pathlib.Path(self.data) / "perseus.db-wal"
        for main in (b"", None):  # SQLite would begin a new database and remove what its log has
            database.write_bytes(main) if main is not None else database.unlink()
            log.write_bytes(whole)
            done = subprocess.run([PERSEUS, "serve", "--listen", "127.0.0.1:0", "--data", self.data],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual((done.returncode, log.read_bytes()), (65, whole), done.stderr)
            self.assertIn("perseus.db-wal has data", done.stderr)
        log.unlink()
        database.write_bytes(whole)
        self.server = Server(self.data)
        self.assertEqual(len(self.server.ask("GET", "/v1/jobs")[1]["jobs"]), 1)

    def test_a_full_disk_is_reported_and_survived(self):
        self.push()
        job = self.zeus_job()
        self.server.ask("GET", f"/schedule/{job}?rank=0")

        def limit(size):  # no file may grow beyond it: for SQLite, a full disk
            resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        limit(max(os.path.getsize(path) for path in pathlib.Path(self.data).iterdir()) + 8192)
        for n in range(100):
            status, answer = self.server.ask("POST", "/v1/jobs", {"name": "x" * 200, "degrees": {"dp": 1, "pp": 4, "tp": 1}})
            if status != 200:
                break
        self.assertEqual((status, answer["error"]["code"]), (503, "unavailable"), answer)
        self.assertIn("database: ", answer["detail"])
        self.assertNotIn(self.data, answer["detail"])
        self.assertEqual(len(self.server.ask("GET", "/v1/jobs")[1]["jobs"]), 1 + n, "nothing is half there")
        self.assertEqual(self.server.ask("GET", f"/schedule/{job}?rank=0")[0], 200, "reading goes on")
        limit(0)  # a small write may have fit meanwhile
        until(lambda: self.server.ask("GET", "/readyz")[0] == 503)
        ready = self.server.ask("GET", "/readyz")[1]
        self.assertEqual(ready["checks"]["store"]["status"], "failing", ready)
        limit(resource.RLIM_INFINITY)
        until(lambda: self.server.ask("GET", "/readyz")[0] == 200)
        self.assertEqual(self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 4, "tp": 1}})[0], 200)
        self.assertEqual(self.server.stop(), 0)
        self.server = Server(self.data)
        self.assertEqual(len(self.server.ask("GET", "/v1/jobs")[1]["jobs"]), 2 + n)

    def test_an_onset_comes_in_time_though_the_disk_is_full(self):
        self.push()
        job = self.zeus_job()
        path = f"/v1/jobs/{job}/ranks/0/plan"
        version = self.server.ask("GET", path)[1]["version"]
        onset = {"pipeline": 0, "degree": 1.2, "delay_s": 10}  # after the disk is full, on a busy machine too
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/stragglers", onset)[0], 200)
        pid = self.server.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        plan = self.server.ask("GET", f"{path}?have={version}&wait_s=60")[1]
        self.assertGreater(plan["version"], 1 << 30)
        self.assertIn("1.2 times slower", plan["reason"])
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        durable = self.server.ask("GET", f"{path}?have={plan['version']}&wait_s=60")[1]
        self.assertEqual((durable["version"], durable["reason"]), (version + 1, plan["reason"]))

    def start_read_only(self, prefix, stop):
        """A server that cannot write logs this once, and serves known plans."""
        self.push()
        job = self.zeus_job()
        plan = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]
        self.server.stop(stop)
        self.server = Server(self.data, prefix=prefix)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1], plan)
        status, ready = self.server.ask("GET", "/readyz")
        self.assertEqual((status, ready["checks"]["store"]["status"]), (503, "failing"))
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/finish")[0], 503)
        self.server.stop()
        self.assertEqual(len([line for line in self.server.log if "refuses changes" in line]), 1)
        self.server = Server(self.data)
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/finish")[0], 200)

    def test_it_starts_on_a_full_disk(self):
        self.start_read_only(["prlimit", "--fsize=0", "env"], signal.SIGTERM)

    def test_it_starts_on_a_full_disk_after_a_crash(self):
        self.start_read_only(["prlimit", "--fsize=0", "env"], signal.SIGKILL)

    def becomes_writable(self, stop):
        """A server that started on a full disk accepts changes once there is space, and its readers see them."""
        self.push()
        job, other = self.zeus_job(), self.zeus_job()
        plan = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]
        self.server.stop(stop)
        self.server = Server(self.data, prefix=["prlimit", "--fsize=0:unlimited", "env"])
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1], plan)
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/finish")[0], 503)
        self.assertEqual(self.server.ask("GET", "/readyz")[0], 503)
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: self.server.ask("GET", "/readyz")[0] == 200)  # without a change by a client
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/finish")[0], 200)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{other}/ranks/0/plan")[0], 200)
        self.push("another")
        self.assertEqual(self.server.ask("GET", "/v1/profiles/another")[0], 200)
        self.server.stop()
        self.server = Server(self.data)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["state"], "finished")

    def test_it_starts_on_a_full_disk_and_recovers(self):
        self.becomes_writable(signal.SIGTERM)

    def test_it_starts_on_a_full_disk_after_a_crash_and_recovers(self):
        self.becomes_writable(signal.SIGKILL)

    @unittest.skipIf(subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0,
                     "file systems may not be mounted here")
    def test_it_starts_on_a_read_only_file_system(self):
        for stop in (signal.SIGTERM, signal.SIGKILL):
            mount = f'mount --bind "{self.data}" "{self.data}" && mount -o remount,ro,bind "{self.data}" && exec "$@"'
            self.start_read_only(["unshare", "-m", "sh", "-c", mount, "sh"], stop)

    def test_pages_are_compressed_for_clients_that_accept_it(self):
        def get(path, **headers):
            connection = http.client.HTTPConnection(self.server.address, timeout=60)
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            content = reply.read()
            connection.close()
            return reply, content

        for path in ("/", "/v1/openapi.json"):
            plain, text = get(path)
            packed, content = get(path, Accept_Encoding="br, gzip;q=0.8")
            self.assertIsNone(plain.headers["Content-Encoding"])
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(content), text)
            self.assertLess(len(content), len(text) / 2)
            self.assertNotEqual(plain.headers["ETag"], packed.headers["ETag"])
            self.assertEqual(packed.headers["Vary"], "Accept-Encoding")
            same, nothing = get(path, Accept_Encoding="gzip", If_None_Match=packed.headers["ETag"])
            self.assertEqual((same.status, nothing), (304, b""))

    def test_every_error_has_its_code(self):
        for method, path, body, status, code in [("PUT", "/v1/jobs", {}, 405, "usage"), ("GET", "/nowhere", None, 404, "not_found"),
                                                 ("GET", "/%zz", None, 400, "usage"), ("POST", "/v1/jobs", "{", 422, "invalid_input"),
                                                 ("POST", "/v1/jobs", "x" * (17 << 20), 413, "too_large"),
                                                 ("GET", "/" + "x" * 20000, None, 431, "too_large")]:
            try:
                found, answer = self.server.ask(method, path, body)
            except ConnectionError:
                self.assertEqual(status, 413)  # it stops reading while the client still writes
                continue
            self.assertEqual((found, answer["error"]["code"]), (status, code), answer)
            self.assertEqual(answer["detail"], answer["error"]["message"])

    def test_a_body_that_cannot_be_read_is_422_on_every_route(self):
        api = json.loads((ROOT / "docs/openapi.json").read_text())
        self.push()
        job = self.zeus_job()
        values = {"job": job, "rank": "0", "kind": "power_cap", "name": "sample", "notice": "1"}
        for template, calls in api["paths"].items():
            for method, call in calls.items():
                if method not in ("post", "put") or not template.startswith("/v1/"):
                    continue
                for body in ("{", "{}x", "[]", "7", '"text"', b"\xff", '{"no such member":1}'):
                    status, answer = self.server.ask(method.upper(), template.format(**values), body)
                    self.assertEqual((status, answer["error"]["code"]), (422, "invalid_input"), (method, template, body, answer))
        self.assertNotEqual(self.server.ask("GET", f"/v1/jobs/{job}")[1]["state"], "finished")

    def test_the_systemd_units_are_in_order_and_give_little_away(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze here")
        for name in ("perseus-server.service", "perseus-relay.service"):
            with tempfile.TemporaryDirectory() as folder:
                installed = pathlib.Path(folder) / name
                unit = (ROOT / "packaging/systemd" / name).read_text()
                installed.write_text(unit.replace("/usr/bin/perseus", os.path.abspath(PERSEUS)))
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(installed)], capture_output=True, text=True)
                self.assertNotIn(name, done.stdout + done.stderr)
                # Exposure in tenths: 25 is 2.5.
                done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=25", str(installed)],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_service_manager_is_notified_ready_alive_and_stopping(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(folder + "/notify")
            manager.settimeout(60)
            server = Server(folder + "/data", prefix=["env", f"NOTIFY_SOCKET={folder}/notify", "WATCHDOG_USEC=200000"])
            heard = {manager.recv(4096).decode().split("\n")[0] for _ in range(4)}
            self.assertEqual(heard, {"READY=1", "WATCHDOG=1"})
            server.process.send_signal(signal.SIGTERM)
            until(lambda: manager.recv(4096) == b"STOPPING=1")
            self.assertEqual(server.process.wait(60), 0)
            server.stop()  # closes its pipes

    def test_stopping_drains(self):
        self.push()
        job = self.zeus_job()
        version = self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan")[1]["version"]
        answers = []
        waiting = threading.Thread(
            target=lambda: answers.append(self.server.ask("GET", f"/v1/jobs/{job}/ranks/0/plan?have={version}")))
        waiting.start()
        until(lambda: b"perseus_waiting_ranks 1" in self.server.ask("GET", "/metrics", raw=True)[1])
        self.assertEqual(self.server.stop(), 0)
        waiting.join()
        self.assertEqual(answers[0][0], 503)
        self.server = Server(self.data)
        for line in self.server.log:
            json.loads(line)

    def test_probes_are_answered_while_it_stops(self):
        # The server waits for an incomplete request until its grace period ends, which is longer than this test takes.
        self.server.stop()
        self.server = Server(self.data, "--grace-s", "600")
        held = socket.create_connection(self.server.address.split(":"))
        held.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{")
        until(lambda: b"perseus_connections 2" in self.server.ask("GET", "/metrics", raw=True)[1])
        self.server.process.send_signal(signal.SIGTERM)

        def not_ready():
            with contextlib.suppress(ConnectionResetError, http.client.RemoteDisconnected):  # connected before the signal, request sent after it
                status, answer = self.server.ask("GET", "/readyz")
                return status != 200 and (status, answer)

        answer = until(not_ready)
        self.assertEqual(answer[0], 503)
        self.assertEqual(answer[1]["checks"]["draining"]["status"], "failing")
        self.assertEqual(answer[1]["checks"]["store"]["status"], "ok")
        self.assertEqual(answer[1]["error"]["code"], "unavailable")
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.server.ask("GET", "/v1/jobs")[0], 503)
        held.sendall(b"}")
        self.assertIn(b" 422 ", held.recv(4096))
        held.close()
        self.assertEqual(self.server.process.wait(served.STOP_S), 0)

    def test_back_to_normal_reports_an_unknown_straggler(self):
        self.push()
        job = self.zeus_job(dp=2)
        stragglers = f"/v1/jobs/{job}/stragglers"

        def normal(**target):
            status, answer = self.server.ask("POST", stragglers, {**target, "degree": 1})
            self.assertEqual(status, 200, answer)
            return answer["notices"][0]

        unknown = normal(pipeline=1)
        self.assertEqual(unknown["id"], "")
        self.assertEqual(unknown["nothing_done"], "no notice of pipeline 1 exists, so nothing ended")
        printed = self.server.cli("straggler", "set", "--job", job, "--pipeline", "1", "--degree", "1").stdout
        self.assertIn("nothing_done: no notice of pipeline 1 exists, so nothing ended\n", printed)
        self.server.ask("POST", stragglers, {"rank": 5, "degree": 1.2})
        self.assertIn("; s1 of rank 5 slows pipeline 1", normal(pipeline=1)["nothing_done"], "what may have been meant")
        ended = normal(rank=5)
        self.assertNotIn("nothing_done", ended)
        self.assertNotEqual(ended["id"], "")

    def test_a_size_that_is_too_large_is_named_with_the_limit(self):
        def detail(body, path="/v1/jobs", expect=400):
            status, answer = self.server.ask("POST", path, body)
            self.assertEqual(status, expect, answer)
            return answer["detail"]

        def degrees(dp):
            return f'{{"degrees": {{"dp": {dp}, "pp": 1000, "tp": 1}}}}'

        for dp in ("1e9", "1000000000", "1000000000.0"):
            self.assertEqual(detail(degrees(dp)), "dp degree: 1000000000; allowed: 1 to 131072")
        self.assertEqual(detail(degrees("1e10"), expect=422),
                         "body: $.degrees.dp: found 10000000000; expected an integer from -2147483648 to 2147483647")
        self.assertIn("$.degrees.dp: found 1.5; expected an integer from", detail(degrees("1.5"), expect=422))
        self.assertEqual(detail(degrees("1e3"), expect=413),
                         "degrees: dp 1000 times pp 1000 times tp 1 is 1000000 ranks; allowed: 1 to 131072")
        job = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2.0, "tp": 1}})[1]["job"]
        rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0}
        for wrong, said in [({"rank": 1e9}, "rank: 1000000000; allowed: 0 to 1"),
                            ({"clocks_mhz": [1e9]}, "clocks_mhz: 1000000000 MHz; allowed: 1 to 1000000"),
                            ({"switch_latency_s": 1e9}, "switch_latency_s: 1000000000 s; allowed: 0 to 1e6"),
                            ({"blocking_power_w": 1e9}, "blocking_power_w: 1000000000 W; allowed: 0 to 1e6")]:
            self.assertEqual(detail({**rank, **wrong}, f"/v1/jobs/{job}/ranks"), said)
        self.assertEqual(detail({"pipeline": 0, "degree": 1e9}, f"/v1/jobs/{job}/stragglers"),
                         "degree: 1000000000; allowed: 1 (back to normal) to 1000")
        self.assertEqual(detail({"pipeline": 0, "degree": 1, "delay_s": 1e9}, f"/v1/jobs/{job}/stragglers"),
                         "delay_s: 1000000000 s; allowed: 0 to 2592000")
        status, answer = self.server.ask("GET", "/v1/jobs?limit=1e9")
        self.assertEqual((status, answer["detail"]), (400, "'limit' is '1e9'; expected a number of jobs from 1 to 1000"))

    def test_refuses_to_listen_beyond_loopback_without_tokens(self):
        with tempfile.TemporaryDirectory() as data:
            done = subprocess.run([PERSEUS, "serve", "--listen", "0.0.0.0:0", "--data", data], capture_output=True, text=True)
            self.assertEqual(done.returncode, 64)
            self.assertIn("token", done.stderr)
            token = subprocess.run([PERSEUS, "token", "create", "--role", "infrastructure", "--data", data],
                                   capture_output=True, text=True, check=True).stdout.strip()
            server = Server(data, listen="0.0.0.0:0")
            server.address = server.address.replace("0.0.0.0", "127.0.0.1")
            self.assertEqual(server.ask("GET", "/v1/jobs")[0], 401)
            self.assertEqual(server.ask("GET", "/v1/jobs", token=token)[0], 200)
            server.stop()

    def test_settings(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            def run(text, *arguments, **environment):
                file.seek(0)
                file.truncate()
                file.write(text)
                file.flush()
                return subprocess.run([PERSEUS, "serve", "--config", file.name, *arguments], capture_output=True, text=True,
                                      env={**os.environ, **environment})

            self.assertIn("workers = 3\n", run("workers = 3", "--print-config").stdout)
            self.assertIn("workers = 4\n", run("workers = 3", "--print-config", PERSEUS_WORKERS="4").stdout)
            self.assertIn("workers = 5\n", run("", "--print-config", "--workers", "5", PERSEUS_WORKERS="4").stdout)
            for text, words in [("\nworker = 1", ":2: unknown key 'worker'; allowed: listen, hosts, data"),
                                ("log_file = true", ":1: log_file: true; allowed: a text or a number"), ("workers = [", file.name),
                                ("workers = 0", ":1: workers: '0' is not a number from 1"), ("", "--data")]:
                done = run(text)
                self.assertEqual(done.returncode, 64)
                self.assertIn(words, done.stderr)
            wrong = "'0.3' is not a percentage"
            self.assertRegex(run("", "--slowdown", "0.3").stderr, f"^perseus: --slowdown: {wrong}")
            self.assertRegex(run("", PERSEUS_SLOWDOWN="0.3").stderr, f"^perseus: PERSEUS_SLOWDOWN: {wrong}")
            for value in ("many", "0", "-3", "2.5"):
                for arguments in ((), ("--print-config",)):
                    done = run("workers = 3", *arguments, PERSEUS_WORKERS=value)
                    self.assertEqual((done.returncode, done.stdout), (64, ""))
                    self.assertRegex(done.stderr, f"^perseus: PERSEUS_WORKERS: '{value}' is not a number from 1")
        printed = subprocess.run([PERSEUS, "serve", "--print-config"], capture_output=True, text=True, check=True).stdout
        self.assertIn(printed, (ROOT / "docs/settings.md").read_text(), "docs/settings.md shows the settings as they are")

    def test_tls(self):
        key, certificate = self.folder.name + "/key.pem", self.folder.name + "/certificate.pem"

        def make(days):
            made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                                   "-days", str(days), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                                  capture_output=True)
            if made.returncode != 0:
                self.skipTest("no openssl to make a certificate")

        make(days=1)
        server = Server(self.folder.name + "/tls", "--tls-certificate", certificate, "--tls-key", key)
        trusting = ssl.create_default_context(cafile=certificate)
        asked = http.client.HTTPSConnection(server.address.replace("127.0.0.1", "localhost"), context=trusting)
        asked.request("GET", "/metrics")
        ends = re.search("^perseus_certificate_end_seconds (.*)$", asked.getresponse().read().decode(), re.M)
        self.assertAlmostEqual(float(ends[1]), time.time() + 24 * 3600, delta=600)
        asked.close()
        server.url = server.url.replace("127.0.0.1", "localhost")
        self.assertTrue(server.url.startswith("https://"))
        self.assertIn("STRAGGLERS", server.cli("job", "list", "--ca", certificate).stdout)
        refused = server.cli("job", "list", ok=False)
        self.assertEqual(refused.returncode, 69)
        self.assertIn("certificate", refused.stderr)

        def reload(said):
            server.process.send_signal(signal.SIGHUP)
            until(lambda: any(said in line for line in list(server.log)))

        pathlib.Path(certificate).write_text("no certificate")
        reload("certificate not reloaded, the server keeps the old one: ")
        asked.connect()
        self.assertTrue(asked.sock.getpeercert(), "the old one")
        asked.close()
        make(days=3)
        reload("certificate reloaded")
        trusting_the_new = ssl.create_default_context(cafile=certificate)
        asked = http.client.HTTPSConnection(server.address.replace("127.0.0.1", "localhost"), context=trusting_the_new)
        asked.connect()
        left_s = ssl.cert_time_to_seconds(asked.sock.getpeercert()["notAfter"]) - time.time()
        self.assertAlmostEqual(left_s, 3 * 24 * 3600, delta=600)
        asked.close()
        server.stop()


if __name__ == "__main__":
    PERSEUS = served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
