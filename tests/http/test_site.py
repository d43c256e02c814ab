#!/usr/bin/env python3
"""A running server keeps a site's limit: it falls by 30 % and comes back, and the server is killed in between. What the
jobs' ranks hold never counts above the limit once they have confirmed the fall. Of two servers on one PostgreSQL, the
other one takes over.

usage: test_site.py PERSEUS
"""

import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
import urllib.request

import postgres
import served
from served import Server, ServedCase, until
from workload import PP, profile_body

JOBS = 3


class Ranks:
    """The ranks of a job: each waits for the next plan and then names its version."""

    def __init__(self, servers, job):
        self.servers, self.job = servers, job
        self.plans = [{} for _ in range(PP)]  # by rank: its last plan
        self.over = False
        self.threads = [threading.Thread(target=self.follow, args=(rank,), daemon=True) for rank in range(PP)]
        for thread in self.threads:
            thread.start()

    def follow(self, rank):
        while not self.over:
            have = self.plans[rank].get("version", 0)
            try:
                status, plan = self.servers[-1].ask(
                    "GET", f"/v1/jobs/{self.job}/ranks/{rank}/plan?have={have}&epoch=1&wait_s=2")
            except OSError:
                status = 503
            if status != 200:
                time.sleep(0.05)
            elif not plan.get("unchanged"):
                self.plans[rank] = plan


class SiteCase(ServedCase):
    def power(self):
        return self.servers[-1].ask("GET", "/v1/site/power")[1]

    def hall(self):
        return self.power()["domains"][0]

    def register(self, number, keeps_budgets=True, domain=None, **more):
        server = self.servers[-1]
        job = server.ask("POST", "/v1/jobs", {
            "name": f"job-{number}", "degrees": {"dp": 1, "pp": PP, "tp": 1}, "profile": "sample", "least_rate": 0.3,
            **({} if domain is None else {"domain": domain})})
        job = job[1]["job"]
        for rank in range(PP):
            status, answer = server.ask("POST", f"/v1/jobs/{job}/ranks", {
                "rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "epoch": 1, "host": "node-1",
                **({"keeps_budgets": True} if keeps_budgets else {}), **more})
            self.assertEqual(status, 200, answer)
        return Ranks(self.servers, job)

    def limit(self, watts):
        status, answer = self.servers[-1].ask("PUT", "/v1/site", {
            "dwell_s": 1, "domains": [{"name": "hall", "limits": [{"limit_w": watts}]}]})
        self.assertEqual(status, 200, answer)


class Site(SiteCase):
    def test_a_limit_that_falls_and_comes_back(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("GET", "/v1/site/power")[0], 404)
        status, stored = self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))
        self.assertEqual(status, 200, stored)
        jobs = [self.register(number) for number in range(JOBS)]
        until(lambda: all(plan.get("version") == 1 for job in jobs for plan in job.plans))
        self.assertTrue(all("budget" not in plan for job in jobs for plan in job.plans))
        self.limit(1e6)
        self.assertEqual({job["state"] for job in self.power()["jobs"]}, {"unlimited"})
        metrics = self.server.ask("GET", "/metrics", raw=True)[1].decode()
        self.assertIn('perseus_site_limit_watts{domain="hall"} 1000000\n', metrics)
        counted = float(re.search(r'^perseus_site_counted_watts\{domain="hall"\} (\S+)$', metrics, re.M)[1])
        self.assertAlmostEqual(counted, self.hall()["counted_w"])
        high = 0.9 * self.hall()["counted_w"]
        self.limit(high)
        until(lambda: self.hall()["counted_w"] <= high * 1.0001)
        self.limit(0.7 * high)
        began = time.monotonic()
        until(lambda: self.hall()["counted_w"] <= 0.7 * high * 1.0001 or self.hall().get("missing_w"))
        print(f"30 % less counted after {time.monotonic() - began:.2f} s")
        plans = [plan for job in jobs for plan in job.plans]
        self.assertTrue(all(plan["budget"]["at_once"] and plan["from_iteration"] == 0 for plan in plans))
        self.assertTrue(all(abs(time.time() - plan["sent_at_s"]) < 60 and 0 <= plan["held_s"] < 60 for plan in plans))
        low = self.hall()
        self.assertNotIn("missing_w", low)
        self.servers[-1].stop(signal.SIGKILL)
        self.servers.append(Server(self.data))
        self.server = self.servers[-1]
        for _ in range(20):  # the restarted server knows from the logs what counts
            self.assertLessEqual(self.hall()["counted_w"], 0.7 * high * 1.0001)
            time.sleep(0.05)
        self.limit(high)
        until(lambda: self.hall()["granted_w"] > 1.05 * low["granted_w"])
        self.assertLessEqual(self.hall()["counted_w"], high * 1.0001)
        self.assertEqual(self.server.ask("DELETE", "/v1/site")[0], 200)
        until(lambda: all("budget" not in plan for job in jobs for plan in job.plans))
        for job in jobs:
            job.over = True

    def test_savings_of_a_paced_job_have_its_waits_beside_them(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        ranks = self.register(0, paces=True)
        until(lambda: all(plan.get("version") == 1 for plan in ranks.plans))
        self.assertNotIn("waits_not_counted", self.server.ask("GET", f"/v1/jobs/{ranks.job}")[1]["savings"])
        status, answer = self.server.ask("PUT", "/v1/site", {
            "dwell_s": 1, "pacing": True, "domains": [{"name": "hall", "limits": [{"limit_w": 100}]}]})
        self.assertEqual(status, 200, answer)
        until(lambda: all(plan.get("budget", {}).get("paced_iteration_s") for plan in ranks.plans))
        savings = self.server.ask("GET", f"/v1/jobs/{ranks.job}")[1]["savings"]
        waits, iteration = savings["waits_not_counted"], savings["per_iteration"]
        self.assertEqual(waits["period_s"], ranks.plans[0]["budget"]["paced_iteration_s"])
        self.assertAlmostEqual(waits["wait_s"], waits["period_s"] - iteration["time_s"])
        self.assertGreater(waits["wait_s"], 0)
        self.assertAlmostEqual(waits["energy_j"], PP * 90 * waits["wait_s"])
        self.assertIn("waits_not_counted (est.):\n", self.server.cli("job", "show", ranks.job).stdout)
        self.assertRegex(self.server.cli("site", "status", "-o", "wide").stdout, r"PRICE\n")
        ranks.over = True

    def test_guards_of_windows_are_forecast(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        jobs = [self.register(number) for number in range(JOBS)]
        until(lambda: all(plan.get("version") == 1 for job in jobs for plan in job.plans))
        self.limit(1e6)
        watts, falls_s = 0.9 * self.hall()["counted_w"], time.time() + 1800
        status, answer = self.server.ask("PUT", "/v1/site", {"dwell_s": 1, "domains": [{"name": "hall", "window_s": 2.5, "limits": [
            {"limit_w": watts}, {"from_s": falls_s, "limit_w": 0.8 * watts}]}]})
        self.assertEqual(status, 200, answer)
        until(lambda: self.hall()["guard_w"] > 0)
        now, later = self.server.ask("GET", "/v1/site/forecast?hours=1")[1]["entries"]
        for entry in now, later:
            self.assertGreater(entry["guard_w"], 0)
            self.assertLessEqual(entry["expected_w"] + entry["guard_w"], entry["limit_w"] * 1.0001)
            self.assertGreater(entry["price_pct_per_kw"], 0)
        self.assertRegex(self.server.cli("site", "forecast", "--hours", "1").stdout, r" [\d.e-]+ %/kW\n")
        for job in jobs:
            job.over = True

    def test_only_what_has_changed(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("GET", "/v1/site/power?since=")[0], 404)
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        jobs = [self.register(number) for number in range(JOBS)]
        until(lambda: all(plan.get("version") == 1 for job in jobs for plan in job.plans))
        self.limit(1e6)

        def ask(since):
            return self.server.ask("GET", f"/v1/site/power?since={since}")[1]

        def settled():
            """The rows that differ between two answers are none."""
            version = ask("")["version"]
            time.sleep(1.1)
            answer = ask(version)
            return answer if answer.get("since") == version and not answer["jobs"] and not answer["domains"] else None

        quiet = until(settled)
        whole = ask("")
        self.assertNotIn("since", whole)
        self.assertEqual({job["name"] for job in whole["jobs"]}, {f"job-{number}" for number in range(JOBS)})
        plain = self.power()
        self.assertNotIn("version", plain)
        self.assertEqual(sorted(plain["jobs"], key=str), sorted(whole["jobs"], key=str))
        self.assertEqual(plain["domains"], whole["domains"])
        gone = next(job["job"] for job in whole["jobs"] if job["name"] == "job-0")
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{gone}/finish")[0], 200)
        after = until(lambda: (answer := ask(quiet["version"])).get("gone") and answer)
        self.assertEqual(after["gone"], [gone])
        self.assertEqual(after["jobs"], [])
        self.assertEqual([domain["name"] for domain in after["domains"]], ["hall"])
        self.assertEqual(len(ask("another.1")["jobs"]), JOBS - 1, "of a version that this server does not know")
        self.server.ask("PUT", "/v1/site", {"domains": [{"name": "site"}, {"name": "hall", "parent": "site"}]})
        renamed = until(lambda: (answer := ask(after["version"])) and len(answer["domains"]) == 2 and answer)
        self.assertNotIn("since", renamed, "readers must order the domains anew")
        self.assertEqual(len(renamed["jobs"]), JOBS - 1)
        for job in jobs:
            job.over = True

    def test_one_screen_and_the_changes_of_limits(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        jobs = [self.register(0, domain="row"), self.register(1, domain="row")]
        until(lambda: all(plan.get("version") for job in jobs for plan in job.plans))
        site = {"dwell_s": 1, "domains": [{"name": "hall", "limits": [{"limit_w": 1e6}]}, {"name": "row", "limits": [
            {"limit_w": 9e5}, {"from_s": time.time() + 3600, "limit_w": 8e5}]}]}
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        screen = self.server.cli("site", "status").stdout
        self.assertIn("safe: what counts is within the limit of all 2 domains that have one\n", screen)
        self.assertRegex(screen, r"(?m)^hall +safe +1,000,000 W .*\n  row +safe +900,000 W .*\n    job-[01] +unlimited ")
        self.assertRegex(screen, r"(?m)^next: the metered limit of row falls to 800,000 W in ")
        self.assertNotIn("do: ", screen)
        self.server.cli("site", "meter", "hall", "1e9", ok=False)
        screen = until(lambda: "not safe" in (text := self.server.cli("site", "status").stdout) and text)
        self.assertIn("not safe: hall: the meter reads 1,000,000,000 W, which cannot be true: the reading is refused\n", screen)
        self.assertIn("do: perseus site meter hall WATTS ", screen)
        self.assertNotIn("do: perseus site limit", screen)
        self.assertRegex(screen, r"(?m)^hall +not safe .*\n  row +safe ")
        site["domains"][0]["limits"] = [{"limit_w": 1}]
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        screen = self.server.cli("site", "status").stdout
        self.assertRegex(screen, r"(?m)^not safe: hall: its jobs may draw .* above its limit$")
        self.assertIn("do: perseus site limit hall WATTS", screen)
        self.assertNotIn("its jobs report", screen)
        # At its least rate a job cannot have a slower plan, and what its ranks report exceeds the limit.
        until(lambda: all("budget" in plan for job in jobs for plan in job.plans))
        for rank in range(PP):
            plan = jobs[0].plans[rank]
            self.assertEqual(self.server.ask("POST", f"/v1/jobs/{jobs[0].job}/iterations", {
                "rank": rank, "epoch": 1, "plan_version": plan["version"], "last_iteration": 19,
                "iteration_time_s": [plan["iteration_time_s"]] * 20, "iteration_energy_j": [900.0] * 20})[0], 200)
        until(lambda: "not safe: hall: its jobs report " in self.server.cli("site", "status").stdout)
        self.server.cli("site", "clear")
        # A change applies, and is answered, before its events are stored.
        until(lambda: len(self.server.ask("GET", "/v1/events/recent?kind=limit_changed")[1]["events"]) == 5)
        events = self.server.ask("GET", "/v1/events/recent?kind=limit_changed")[1]["events"]
        texts = [(event["job"], event["text"]) for event in sorted(events, key=lambda one: (one["at_s"], one["job"]))]
        self.assertEqual(texts, [("site/hall", "limit from now on: 1000 kW; before: none"),
                                 ("site/row", "limit from now on: 900 kW; before: none"),
                                 ("site/hall", "limit from now on: 0.001 kW; before: 1000 kW"),
                                 ("site/hall", "limit from now on: none; before: 0.001 kW"),
                                 ("site/row", "limit from now on: none; before: 900 kW")])
        self.assertTrue(all(event["by"] for event in events))
        self.assertEqual(self.server.cli("event", "list", "--kind", "limit_changed", "-o", "csv").stdout.count("site/"), 5)
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data)
        self.servers.append(self.server)
        again = self.servers[-1].ask("GET", "/v1/events/recent?kind=limit_changed")[1]["events"]
        self.assertEqual([event["text"] for event in again], [event["text"] for event in events])
        for job in jobs:
            job.over = True
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        self.server.stop(signal.SIGKILL)
        with contextlib.closing(sqlite3.connect(pathlib.Path(self.data) / "perseus.db")) as database, database:
            database.execute("UPDATE events SET body = 'damaged' WHERE job = ?", (jobs[0].job,))
        self.server = Server(self.data)
        screen = until(lambda: "1 running job is" in (text := self.server.cli("site", "status").stdout) and text)
        self.assertTrue(screen.startswith("not safe: 1 running job is not read yet after a start of the server"), screen)
        self.assertNotRegex(screen, r"(?m)^ *row +safe")
        self.assertIn("do: perseus job list --state damaged", screen)
        self.assertIn("\nperseus_site_unread_jobs 1\n", self.server.ask("GET", "/metrics", raw=True)[1].decode())
        self.assertIn("damaged", self.server.cli("job", "list", "--state", "damaged", "-o", "csv").stdout)
        self.server.cli("job", "delete", jobs[0].job)
        until(lambda: "unread_jobs" not in self.server.ask("GET", "/v1/site/power")[1])

    def test_the_command_line(self):
        path = self.folder.name + "/hall.toml"
        with open(path, "w") as file:
            file.write('name = "hall"\npacing = true\n[[domain]]\nname = "hall"\nlimit_w = 5000\n[[domain]]\nname = "row"\n'
                       '[[limit]]\ndomain = "row"\nfrom_s = 1800000000\nlimit_w = 4000\n[[host]]\nprefix = "a-"\n'
                       'domain = "row"\n')
        self.server.cli("site", "set", path)
        self.server.cli("site", "limit", "row", "3000", "--from", "1700000000", "--until", "1800000100")
        site = self.server.ask("GET", "/v1/site")[1]
        self.assertTrue(site["pacing"])
        self.assertEqual([step for step in site["domains"][1]["limits"] if step.get("from_s")],
                         [{"from_s": 1.7e9, "limit_w": 3000}, {"from_s": 1800000100, "limit_w": 4000}])
        self.assertIn("hall", self.server.cli("site", "status").stdout)
        self.assertEqual(self.server.cli("site", "limit", "hall", "4000", "--until", "1900000000").stdout, "done\n")
        self.assertEqual(self.server.cli("site", "limit", "hall", "4000", "--from", "1900000010").stdout, "done\n")
        self.assertEqual(self.server.cli("site", "limit", "hall", "3500").stdout, "done: 2 later steps removed\n")
        self.assertEqual(self.server.cli("site", "limit", "row", "3000", "--from", "1750000000").stdout,
                         "done: 1 later step removed\n")
        self.assertIn("domain 'cellar' is not in the server's site; allowed: hall, row\n", self.server.cli("site", "limit", "cellar", "3000", ok=False).stderr)
        self.server.cli("site", "clear")
        self.assertIn("set one with perseus site set FILE.toml or PUT /v1/site",
                      self.server.cli("site", "show", ok=False).stderr)

    def test_an_answer_that_is_no_site(self):
        class Other(http.server.BaseHTTPRequestHandler):
            body = b""

            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(self.body)

            do_PUT = do_GET

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{other.server_port}"
            for body, code, message in [
                (b"<html>", 69, "GET /v1/site: the answer is not a JSON object"),
                (b"[]", 69, "GET /v1/site: the answer is not a JSON object"),
                (b'{"domains": [1, {"name": 2}]}', 64, "domain 'row' is not in the server's site; allowed: none"),
                (b'{"domains": [{"name": "row", "limits": [1, {"from_s": "now"}]}]}', 0, ""),
            ]:
                Other.body = body
                ran = subprocess.run([served.PROGRAM, "site", "limit", "row", "3000", "--server", url], capture_output=True,
                                     text=True)
                self.assertEqual(ran.returncode, code, ran.stderr)
                self.assertIn(message, ran.stderr)
            other.shutdown()

    def test_changes_at_the_same_moment(self):
        rows = [f"row-{number}" for number in range(6)]
        self.server.ask("PUT", "/v1/site", {"domains": [{"name": "hall"}] + [{"name": row} for row in rows]})
        threads = [threading.Thread(target=self.server.cli, args=("site", "limit", row, "3000")) for row in rows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        domains = self.server.ask("GET", "/v1/site")[1]["domains"]
        self.assertEqual([domain["limits"][-1].get("limit_w") for domain in domains[1:]], [3000] * len(rows))

    def test_if_match(self):
        site = {"domains": [{"name": "hall"}]}
        put = lambda tag: self.server.ask("PUT", "/v1/site", site, headers={"If-Match": tag})
        self.assertEqual(put("*")[0], 409)
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        with urllib.request.urlopen(self.server.url + "/v1/site") as answer:
            tag = answer.headers["ETag"]
        self.assertEqual(put(tag)[0], 200)
        self.assertEqual(put("*")[0], 200)
        site["least_rate"] = 0.5
        self.assertEqual(put(tag)[0], 200)
        status, refused = put(tag)
        self.assertEqual(status, 409)
        self.assertIn("If-Match", refused["detail"])

    def test_a_job_that_names_an_unknown_domain_is_in_that_of_its_hosts(self):
        self.servers = [self.server]
        self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))
        site = {"domains": [{"name": "hall"}, {"name": "row", "limits": [{"limit_w": 1e5}]}],
                "hosts": [{"prefix": "node-", "domain": "row"}]}
        self.assertEqual(self.server.ask("PUT", "/v1/site", site)[0], 200)
        self.register(1, domain="rwo").over = True
        self.register(2, domain="").over = True
        wrong, none = sorted(self.power()["jobs"], key=lambda job: job["name"])
        self.assertEqual([wrong["domain"], none["domain"]], ["row", "row"])
        self.assertIn("no domain 'rwo'", wrong["reason"])
        self.assertNotIn("no domain", none.get("reason", ""))
        self.assertGreater(self.power()["domains"][1]["counted_w"], 0)

    def test_hosts_alone_above_the_limit(self):
        self.servers = [self.server]
        self.server.ask("PUT", "/v1/site", {"domains": [
            {"name": "hall", "constant_w": 500, "limits": [{"limit_w": 200}]}]})
        until(lambda: self.hall().get("missing_w") == 300)
        self.assertEqual(self.hall()["limit_w"], 0)

    def test_names(self):
        for name in ("a\nb", "a\u202eb", "\u0007", " "):
            for site in ({"domains": [{"name": name}]},
                         {"domains": [{"name": "hall"}], "hosts": [{"host": name, "domain": "hall"}]}):
                status, refused = self.server.ask("PUT", "/v1/site", site)
                self.assertEqual(status, 400, site)
                self.assertIn("domains[0].name: " if "hosts" not in site else "hosts[0].host: ", refused["detail"])
        for kind in ("host", "prefix"):
            status, refused = self.server.ask("PUT", "/v1/site", {
                "domains": [{"name": "hall"}, {"name": "row"}],
                "hosts": [{kind: "node-1", "domain": "hall"}, {kind: "node-1", "domain": "row"}]})
            self.assertEqual(status, 400)
            self.assertIn(f"hosts[1].{kind}: 'node-1' appears twice", refused["detail"])

    def test_show_prints_units_and_dates(self):
        status, answer = self.server.ask("PUT", "/v1/site", {"domains": [
            {"name": "hall", "limits": [{"limit_w": 5000}], "ramp_down_w_per_s": 10},
            {"name": "row", "limits": [{}, {"from_s": 7200, "limit_w": 1}, {"from_s": 1800000000, "limit_w": 4000}]}]})
        self.assertEqual(status, 200, answer)
        text = self.server.cli("site", "show").stdout
        self.assertIn("ramp_down: 10 W/s\n", text)
        self.assertIn("from: 1970-01-01T02:00:00Z\n", text)
        self.assertIn("from: 2027-01-15T08:00:00Z\n", text)
        self.assertEqual(text.count("limit: none\n"), 1)
        self.assertNotIn("{}", text)

    def test_status_fits_a_terminal_and_marks_what_is_over(self):
        self.servers = [self.server]
        status, answer = self.server.ask("PUT", "/v1/site", {"domains": [
            {"name": "the hall", "limits": [{"limit_w": 1e6}]}, {"name": "the first row", "limits": [{"limit_w": 1}]},
            {"name": "the second row", "limits": [{"limit_w": 1e6}]}, {"name": "機房" * 30, "parent": "the second row"}],
            "hosts": [{"host": "node-1", "domain": "the first row"}]})
        self.assertEqual(status, 200, answer)
        job = self.server.ask("POST", "/v1/jobs", {"name": "job", "degrees": {"dp": 1, "pp": 1, "tp": 1}})[1]["job"]
        status, answer = self.server.ask("POST", f"/v1/jobs/{job}/ranks", {
            "rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0, "epoch": 1, "host": "node-1"})
        self.assertEqual(status, 200, answer)
        until(lambda: self.power()["domains"][1]["counted_w"] > 1)
        lines = self.server.shown_on(80, "site", "status")
        columns = [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) for line in lines]
        self.assertLessEqual(max(columns), 80, lines)
        self.assertEqual(len([line for line in lines if line.strip().startswith("機房") and "..." in line]), 1, lines)
        self.assertEqual(len([line for line in lines if "COUNTED" in line]), 1, lines)
        self.assertEqual(lines[0], "not safe: the first row: its jobs may draw 1,000 W, 999 W above its limit")
        until(lambda: "not safe: the first row: 999 W are missing for what no grant controls"
              in self.server.cli("site", "status").stdout)
        self.assertEqual([line.split()[:4] for line in lines if "not safe " in line], [["the", "first", "row", "not"]], lines)
        self.assertIn("do: perseus site limit 'the first row' WATTS", lines)
        self.assertIn("PRICE", self.server.cli("site", "status", "-o", "wide").stdout)

    def test_a_limit_has_finite_watts_and_unix_times(self):
        for words, message in (
                *((("row", watts), f"WATTS: '{watts}' is not a number from 0 to 1e+12 W (see ")
                  for watts in ("nan", "inf", "5kW", "none")),
                *((("row", "5", option, time),
                   f"{option}: '{time}' is not a number from 1e+09 to 1e+11 seconds since 1970 (see ") for option in ("--from", "--until") for time in ("nan", "2030-01-01", "7200"))):
            done = self.server.cli("site", "limit", *words, ok=False)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(message, done.stderr)

    def refused(self, text):
        path = self.folder.name + "/refused.toml"
        with open(path, "w") as file:
            file.write(text)
        done = self.server.cli("site", "set", path, ok=False)
        self.assertEqual(done.returncode, 65, done.stderr)
        return done.stderr.replace(path, "FILE")

    def test_a_meter_that_averages_over_a_window(self):
        path = self.folder.name + "/window.toml"
        with open(path, "w") as file:
            file.write('[[domain]]\nname = "hall"\nlimit_w = 5000\nwindow_s = 2.5\n[[domain]]\nname = "row"\n')
        self.server.cli("site", "set", path)
        self.assertEqual(self.server.ask("GET", "/v1/site")[1]["domains"][0]["window_s"], 2.5)
        hall, row = self.server.ask("GET", "/v1/site/power")[1]["domains"]
        self.assertEqual(hall["guard_w"], 0)
        self.assertNotIn("guard_w", row)
        self.assertIn("GUARD", self.server.cli("site", "status", "-o", "wide").stdout)
        ahead = self.server.ask("GET", "/v1/site/forecast?hours=1")[1]["entries"]
        self.assertEqual([entry.get("guard_w") for entry in ahead], [0, None])
        self.assertEqual([entry["domain"] for entry in self.server.ask("GET", "/v1/site/forecast?hours=1&domain=row")[1]["entries"]], ["row"])
        forecast = self.server.cli("site", "forecast", "--hours", "1").stdout
        self.assertIn("GUARD", forecast)
        self.assertNotIn("hall", self.server.cli("site", "forecast", "--domain", "row").stdout)
        self.server.ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 5000}]}]})
        for command in "status", "forecast":
            self.assertNotIn("GUARD", self.server.cli("site", command).stdout)
        self.server.cli("site", "clear")

    def test_a_json_document_has_unix_times_too(self):
        path = self.folder.name + "/site.json"
        for from_s, code in ((7200, 65), (0, 0), (1800000000, 0)):
            with open(path, "w") as file:
                json.dump({"domains": [{"name": "hall", "limits": [{"from_s": from_s, "limit_w": 5000}]}]}, file)
            done = self.server.cli("site", "set", path, ok=code == 0)
            self.assertEqual(done.returncode, code, done.stderr)
            if code:
                self.assertIn(path + ": domains[0].limits[0].from_s: 7200; allowed: 0, or seconds since 1970, from 1000000000 ",
                              done.stderr)

    def test_what_the_server_finds_wrong_in_a_file_is_the_files_content(self):
        hall = '[[domain]]\nname = "hall"\nlimit_w = 5000\n'
        self.assertEqual(self.refused("pue = 0.9\n" + hall), "perseus: FILE: site: pue: 0.9; allowed: 1 to 10\n")
        self.assertIn("FILE: body: $.pacing: found 0; expected true or false", self.refused("pacing = 0\n" + hall))
        elsewhere = subprocess.run([served.PROGRAM, "site", "set", self.folder.name + "/refused.toml", "--server", "nowhere"],
                                   capture_output=True, text=True)
        self.assertEqual((elsewhere.returncode, elsewhere.stderr),
                         (64, "perseus: 'nowhere' is not a URL: it must start with http:// or https://\n"))

    def test_a_file_with_keys_that_a_server_does_not_take(self):
        sample = self.server.cli("site", "set", str(served.ROOT / "data/sample_site.toml"), ok=False)
        self.assertEqual(sample.returncode, 65)
        self.assertIn("sample_site.toml:3: unknown key 'end_s'; allowed: name, objective", sample.stderr)
        hall = '[[domain]]\nname = "hall"\nlimit_w = 5000\n'
        self.assertIn("FILE:4: unknown key 'job'; allowed: ", self.refused(hall + '[[job]]\nname = "large"\n'))
        for text in ("nan", "inf", "-inf"):
            self.assertIn(f"FILE:4: {text}; allowed: finite numbers", self.refused(hall + f"window_s = {text}\n"))
        self.assertIn("FILE:3: [[domain]] limit_w: -1; allowed: ", self.refused(hall.replace("5000", "-1")))
        self.assertIn("FILE:4: [[domain]] unknown key 'end_s'; allowed: name, ",
                      self.refused(hall + "end_s = 5\n"))
        limit = hall + '[[limit]]\ndomain = "hall"\nlimit_w = 4000\n'
        for from_s in ("7200", "nan", "2030-01-01", '"now"'):
            self.assertRegex(self.refused(limit + f"from_s = {from_s}\n"),
                             r"FILE:7: \[\[limit\]\] from_s: .*; allowed: seconds since 1970, from 1000000000")
        self.assertIn("FILE:4: [[limit]] from_s: is missing; allowed: seconds since 1970", self.refused(limit))
        self.assertIn("FILE:5: [[limit]] domain: 'row'; allowed: the name of a [[domain]]",
                      self.refused(limit.replace('domain = "hall"', 'domain = "row"') + "from_s = 1800000000\n"))
        self.assertEqual(self.server.ask("GET", "/v1/site")[0], 404)


class Tiers(ServedCase):
    """Tokens of the role job, whose teams have tiers by the site."""

    def setUp(self):
        super().setUp()
        server = self.server
        self.boss = server.ask("POST", "/v1/tokens", {"role": "infrastructure", "name": "olga"}, server.first_secret())[1]["token"]
        self.vision, self.others = (
            server.ask("POST", "/v1/tokens", {"role": "job", "team": team}, self.boss)[1]["token"] for team in ("vision", "others"))

    def ask(self, method, path, body=None, token=None):
        return self.server.ask(method, path, body, token or self.boss)

    def perseus(self, *arguments):
        return subprocess.run([served.PROGRAM, *arguments, "--server", self.server.url], capture_output=True, text=True,
                              env={**os.environ, "PERSEUS_TOKEN": self.boss})

    def jobs(self):
        return {job["name"]: job for job in self.ask("GET", "/v1/site/power")[1]["jobs"]}

    def register_with(self, token, name, **tier):
        status, answer = self.ask("POST", "/v1/jobs", {"name": name, "degrees": {"dp": 1, "pp": 2, "tp": 1}, **tier}, token)
        self.assertEqual(status, 200, answer)
        for rank in range(2):
            status, ranked = self.ask("POST", f"/v1/jobs/{answer['job']}/ranks", {
                "rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "host": f"a-{rank}"}, token)
            self.assertEqual(status, 200, ranked)
        return answer["job"]

    def tier(self, name):
        job = self.jobs()[name]
        return job["domain"], job["least_rate"], self.ask("GET", f"/v1/jobs/{job['job']}")[1]["site"]["priority"]

    def test_a_token_takes_no_more_than_its_team_has_and_an_operator_gives_more(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as site:
            site.write('least_rate = 0.5\n[[domain]]\nname = "hall"\n[[domain]]\nname = "a"\n[[domain]]\nname = "b"\n'
                       '[[host]]\nprefix = "a-"\ndomain = "a"\n[[team]]\nname = "vision"\nleast_rate = 0.9\npriority = 4\n')
            site.flush()
            done = self.perseus("site", "set", site.name)
            self.assertEqual(done.returncode, 0, done.stderr)
        greedy = {"least_rate": 1, "priority": 1000, "domain": "b"}
        first = self.register_with(self.vision, "greedy", **greedy)
        self.register_with(self.vision, "plain")
        self.register_with(self.others, "stranger", **greedy)
        self.register_with(self.others, "modest", least_rate=0.25, priority=0.5)
        self.register_with(self.boss, "operator", **greedy)
        self.assertEqual(self.tier("greedy"), ("a", 0.9, 4))
        self.assertEqual(self.tier("plain"), ("a", 0.9, 4))
        self.assertEqual(self.tier("stranger"), ("a", 0.5, 1))
        self.assertEqual(self.tier("modest"), ("a", 0.25, 0.5))
        self.assertEqual(self.tier("operator"), ("b", 1, 1000))
        self.assertIn("priority 1000 asked for; allowed to its team: at most 4", self.jobs()["greedy"]["reason"])
        self.assertIn("domain 'b' asked for: its hosts are in 'a'", self.jobs()["greedy"]["reason"])

        # Only an operator sets a tier, beyond all bounds, and the log says who.
        self.assertEqual(self.ask("PUT", f"/v1/jobs/{first}/tier", {"priority": 5}, self.vision)[0], 403)
        for wrong, refused, detail in (({"priority": 0}, 400, "priority: 0; allowed: 0.001 to 1000"),
                                       ({"least_rate": 2}, 400, "least_rate: 2; allowed: 0 to 1"), ({"weight": 1}, 422, "weight")):
            status, answer = self.ask("PUT", f"/v1/jobs/{first}/tier", wrong)
            self.assertEqual(status, refused, answer)
            self.assertIn(detail, answer["detail"])
        done = self.perseus("job", "set", "greedy", "--least-rate", "0.95", "--priority", "9", "--domain", "b")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.tier("greedy"), ("b", 0.95, 9))
        event = self.ask("GET", "/v1/events/recent?kind=tier_set")[1]["events"][0]
        self.assertEqual((event["job"], event["by"]), (first, "olga"))
        self.assertEqual(event["text"], "tier of domain b, least rate 0.95, priority 9 set")
        self.assertEqual(self.perseus("job", "set", "greedy", "--priority", "3").returncode, 0)
        self.assertEqual(self.tier("greedy"), ("b", 0.95, 3), "what is left out stays")
        cellar = self.perseus("job", "set", "greedy", "--domain", "cellar")
        self.assertEqual(cellar.returncode, 64, cellar.stderr)
        self.assertIn("domain: 'cellar'; allowed: ", cellar.stderr)
        self.assertEqual(self.tier("greedy"), ("b", 0.95, 3))
        self.assertEqual(self.perseus("job", "set", "greedy", "--reset").returncode, 0)
        self.assertEqual(self.tier("greedy"), ("a", 0.9, 4), "its team's")
        self.assertEqual(self.perseus("job", "set", "greedy", "--least-rate", "90").returncode, 64)

        # Another site: teams' tiers act on running jobs.
        site = self.ask("GET", "/v1/site")[1]
        site["teams"] = [{"name": "others", "priority": 3}]
        self.assertEqual(self.ask("PUT", "/v1/site", site)[0], 200)
        self.assertEqual(self.tier("greedy"), ("a", 0.5, 1))
        self.assertEqual(self.tier("stranger"), ("a", 0.5, 3))

    def test_slurm_s_task_prolog_gives_the_tier_of_a_qos(self):
        script = served.ROOT / "deploy/slurm/task_prolog.sh"
        exported = lambda **given: subprocess.run(  # noqa: E731
            ["sh", script], env={"PATH": os.environ["PATH"], **given}, capture_output=True, text=True, check=True).stdout.split("\n")[1:-1]
        self.assertEqual(exported(), [])
        self.assertEqual(exported(SLURM_JOB_QOS="low"), ["export PERSEUS_LEAST_RATE=0.5", "export PERSEUS_PRIORITY=0.5"])
        self.assertEqual(exported(SLURM_JOB_QOS="high", PERSEUS_PRIORITY="2"),
                         ["export PERSEUS_LEAST_RATE=1", "export PERSEUS_PRIORITY=2"])

    def test_a_token_of_a_job_sees_no_watts_of_other_teams(self):
        self.assertEqual(self.ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 5000}]}]})[0], 200)
        own, other = self.register_with(self.vision, "own"), self.register_with(self.others, "other")
        for path in ("/v1/site", "/v1/site/power", "/v1/site/proof", "/v1/site/forecast", "/v1/history", f"/v1/jobs/{other}"):
            self.assertEqual(self.ask("GET", path, token=self.vision)[0], 403, path)
        self.assertGreater(self.ask("GET", f"/v1/jobs/{own}", token=self.vision)[1]["site"]["counted_w"], 0, "its own")


class Standby(SiteCase):
    """A server that divides watts is killed, and its standby goes on."""

    def setUp(self):
        if postgres.programs() is None:
            self.skipTest("PostgreSQL is not installed")
        self.database = postgres.Postgres()
        self.addCleanup(self.database.close)
        self.server, self.standby = Server(self.database.url), Server(self.database.url, stands_by=True)
        self.servers = [self.server]

    def tearDown(self):
        for server in (*self.servers, self.standby):
            if server.process.poll() is None:
                server.stop(signal.SIGKILL)

    def test_the_standby_takes_over(self):
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        jobs = [self.register(number) for number in range(JOBS)]
        until(lambda: all(plan.get("version") == 1 for job in jobs for plan in job.plans))
        self.limit(1e6)
        most = self.hall()["counted_w"]
        self.limit(0.9 * most)
        until(lambda: self.hall()["counted_w"] <= 0.9 * most * 1.0001)
        killed = time.monotonic()
        self.server.stop(signal.SIGKILL)
        self.server = self.standby
        until(lambda: self.server.ask("GET", "/readyz")[0] == 200)
        self.servers.append(self.server)
        print(f"the standby took over after {time.monotonic() - killed:.1f} s")
        until(lambda: self.hall()["counted_w"] > 0.8 * most)  # the view counts the jobs that it has read
        self.limit(0.63 * most)
        until(lambda: self.hall()["counted_w"] <= 0.63 * most * 1.0001)
        low = self.hall()
        self.assertNotIn("missing_w", low)
        self.limit(0.9 * most)
        until(lambda: self.hall()["granted_w"] > 1.05 * low["granted_w"])
        self.assertLessEqual(self.hall()["counted_w"], 0.9 * most * 1.0001)
        for job in jobs:
            job.over = True


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    served.unittest.main()
