#!/usr/bin/env python3
"""What a running server says of its site's past and coming hours: the proof as JSON, CSV and a table, over a restart, and
the forecast of an announced limit.

usage: test_site_proof.py PERSEUS [unittest's arguments]
"""

import csv
import io
import re
import sys
import time
import unittest

import served
import test_site
from served import Server, until
from workload import profile_body


class Proof(test_site.SiteCase):
    def proof(self, query=""):
        status, answer = self.server.ask("GET", "/v1/site/proof?" + query)
        self.assertEqual(status, 200, answer)
        return answer["entries"]

    def between_readings(self, look):
        """The entries, and what `look` returns of them: the server takes a reading every 5 s, and none meanwhile."""
        def same():
            entries, seen = self.proof(), look()
            return (entries, seen) if self.proof() == entries else None

        return until(same)

    def put(self, limits, domains=()):
        status, answer = self.server.ask("PUT", "/v1/site", {
            "dwell_s": 1, "pue": 1.25, "supply_efficiency": 0.8,
            "domains": [{"name": "hall", "limits": limits}, *domains]})
        self.assertEqual(status, 200, answer)

    def start(self, count):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        self.jobs = [self.register(number) for number in range(count)]
        until(lambda: all(plan.get("version") == 1 for job in self.jobs for plan in job.plans))

    def stop_ranks(self):
        for job in self.jobs:
            job.over = True

    def test_proof(self):
        self.start(2)
        self.put([{"limit_w": 1e6}], [{"name": "row, \"a\"", "parent": "hall"}])
        until(lambda: self.proof())
        most = self.hall()["counted_w"]
        limit = 0.75 * self.hall()["baseline_w"]
        self.put([{"limit_w": limit * 1.25 / 0.8}])
        until(lambda: self.hall()["counted_w"] <= limit * 1.0001)
        now = self.hall()
        self.assertLess(now["planned_w"], now["baseline_w"])
        self.assertLess(now["baseline_w"], most)
        self.assertGreater(now["rate_lost"], 0)
        for job in self.power()["jobs"]:
            self.assertLess(job["rate"], 1)
            self.assertAlmostEqual(job["rate_lost"], 1 - job["rate"], 6)  # no policy, no straggler
        before = sum(entry["readings"] for entry in self.proof())
        until(lambda: sum(entry["readings"] for entry in self.proof()) >= before + 2)
        self.stop_ranks()
        self.assertEqual(self.server.stop(), 0)
        self.server = Server(self.data)
        entries = self.proof()  # as the store has it
        self.assertEqual({entry["domain"] for entry in entries}, {"hall"}, "a row without a limit is left out")
        self.assertGreaterEqual(sum(entry["readings"] for entry in entries), before + 2)
        last = entries[-1]
        self.assertEqual(last["start_s"] % 60, 0)
        self.assertLess(last["limit_w"], 1e6)
        self.assertAlmostEqual(last["metered_limit_w"], last["limit_w"] * 1.25 / 0.8, 3)
        self.assertAlmostEqual(last["metered_baseline_w"], last["baseline_w"] * 1.25 / 0.8, 3)
        self.assertAlmostEqual(last["baseline_w"], now["baseline_w"], 3)
        self.assertEqual([tier["least_rate"] for tier in last["tiers"]], [0.3])
        self.assertGreater(last["tiers"][0]["rate_lost"], 0)
        self.assertEqual(last["rate_lost"], last["tiers"][0]["rate_lost"])
        entries, hours = self.between_readings(lambda: self.proof("step=hour"))
        self.assertEqual(sum(entry["readings"] for entry in hours), sum(entry["readings"] for entry in entries))
        self.assertEqual(self.proof(f"until={entries[0]['start_s']}"), [])
        self.assertEqual(self.server.ask("GET", "/v1/site/forecast?domain=cellar")[0], 400)
        for query, words in (("domain=cellar", "'domain' is 'cellar'; expected a domain of the site, or of its history at that time"),
                             ("from=20&until=10", "'from' is '20'; expected a time before 'until', which is 10"),
                             ("from=nan", "'from' is 'nan'; expected seconds since 1970")):
            status, answer = self.server.ask("GET", "/v1/site/proof?" + query)
            self.assertEqual((status, answer["detail"]), (400, words))
        for headers, query in [({"Accept": "text/csv"}, ""), ({}, "?format=csv")]:
            entries, text = self.between_readings(
                lambda: self.server.ask("GET", "/v1/site/proof" + query, raw=True, headers=headers)[1].decode())
            rows = list(csv.DictReader(io.StringIO(text)))
            self.assertEqual([int(row["readings"]) for row in rows], [entry["readings"] for entry in entries])
            self.assertAlmostEqual(float(rows[-1]["rate_lost_0.3"]), entries[-1]["rate_lost"])
            self.assertEqual(rows[-1]["metered_w"], "")
        table = self.server.cli("site", "proof").stdout.splitlines()
        self.assertRegex(table[0], r"^START +DOMAIN +METERED LIMIT ")
        self.assertIn(len(table), (1 + len(entries), 2 + len(entries)), "a minute may begin before")
        lines = self.server.cli("site", "proof", "--from", str(last["start_s"]), "--until", str(last["start_s"] + 60), "-o", "csv").stdout.splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(lines[0].startswith("start_s,domain,metered_limit_w,"), lines)

    def test_a_straggler_is_no_curtailment(self):
        self.start(1)
        self.put([{"limit_w": 1e6}])
        status, answer = self.server.ask("POST", f"/v1/jobs/{self.jobs[0].job}/stragglers", {"pipeline": 0, "degree": 1.3})
        self.assertEqual(status, 200, answer)
        until(lambda: all(plan.get("version") == 2 for plan in self.jobs[0].plans))
        hall = self.hall()
        self.assertEqual(hall["planned_w"], hall["baseline_w"])
        self.assertEqual(hall["rate_lost"], 0)
        self.assertLess(self.power()["jobs"][0]["rate"], 0.8)
        self.stop_ranks()

    def test_pages(self):
        self.servers, self.jobs = [self.server], []
        listed = lambda: self.server.ask("GET", "/v1/jobs")[1]["server"].get("site")
        self.assertIsNone(listed())
        self.put([{"limit_w": 1e6}], [{"name": "row", "parent": "hall", "limits": [{"limit_w": 1e5}]}])
        until(lambda: len(self.proof()) >= 2)
        self.assertIs(listed(), True)
        page = self.server.ask("GET", "/v1/site/proof?limit=1")[1]
        self.assertEqual([entry["domain"] for entry in page["entries"]], ["hall", "row"], "the domains of a step stay together")

    def test_forecast(self):
        self.start(2)
        now_s = time.time()
        self.put([{"limit_w": 1e6}])
        baseline = self.hall()["baseline_w"]
        metered = 0.75 * baseline * 1.25 / 0.8
        self.put([{"limit_w": 1e6}, {"from_s": now_s + 3600, "limit_w": metered}, {"from_s": now_s + 7200, "limit_w": 10},
                  {"from_s": now_s + 3 * 86400}])
        entries = self.server.ask("GET", "/v1/site/forecast?hours=96")[1]["entries"]
        self.assertEqual([round(entry["start_s"] - now_s) for entry in entries[1:]], [3600, 7200, 3 * 86400])
        high, low, lowest, none = entries
        self.assertAlmostEqual(high["expected_w"], baseline, 3)
        self.assertEqual(high["rate_lost"], 0)
        self.assertLessEqual(low["expected_w"], 0.75 * baseline * 1.0001)
        self.assertGreater(low["expected_w"], 0.7 * baseline)
        self.assertGreater(low["rate_lost"], 0)
        self.assertGreater(low["price"], 0)
        self.assertNotIn("missing_w", low)
        self.assertGreater(lowest["missing_w"], 0)
        self.assertGreater(lowest["tiers"][0]["rate_lost"], low["tiers"][0]["rate_lost"])
        self.assertNotIn("limit_w", none)
        self.assertAlmostEqual(none["expected_w"], baseline, 3)
        again = self.server.ask("GET", "/v1/site/forecast?hours=96")[1]
        self.assertEqual(again["entries"], entries)
        self.assertEqual(len(self.server.ask("GET", "/v1/site/forecast?hours=1.5")[1]["entries"]), 2)
        table = self.server.cli("site", "forecast", "--hours", "96").stdout.splitlines()
        self.assertRegex(table[0], r"^START +DOMAIN +METERED LIMIT +LIMIT +EXPECTED +MISSING +RATE LOST")
        self.assertEqual(len(table), 5)
        lost = re.search(r" ([\d.]+) % ", table[2])
        self.assertAlmostEqual(float(lost[1]), 100 * low["rate_lost"], 1)
        self.stop_ranks()


class Alerts(test_site.SiteCase):
    arguments = ("--alert-after-s", "0.2")

    def alerts(self, query="", token=None):
        return {alert["alert"]: alert for alert in self.server.ask("GET", "/v1/alerts?" + query, token=token)[1]["alerts"]}

    def test_missing_watts_and_a_limit_that_is_exceeded(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        jobs = [self.register(0), self.register(1, keeps_budgets=False)]
        until(lambda: all(plan.get("version") for job in jobs for plan in job.plans))
        self.limit(100)
        alerts = until(lambda: (found := self.alerts()) if len(self.alerts()) == 2 else None)
        for kind, words in [("watts_missing", "are missing for the least rates"), ("site_over_limit", "the limit leaves 0.1 kW")]:
            self.assertEqual(alerts[kind]["domain"], "hall")
            self.assertNotIn("job", alerts[kind])
            self.assertIn(words, alerts[kind]["text"])
            self.assertIn(f'perseus_alerts{{alert="{kind}"}} 1\n', self.server.ask("GET", "/metrics", raw=True)[1].decode())
            self.assertEqual(list(self.alerts(f"alert={kind}")), [kind])
        table = self.server.cli("alert", "list", "-o", "wide").stdout
        self.assertRegex(table, r"(?m)^watts_missing +.* hall +")
        until(lambda: any("domain 'hall': alert watts_missing raised" in line for line in self.server.log))
        boss = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, self.server.first_secret())[1]["token"]
        token = self.server.ask("POST", "/v1/tokens", {"role": "job"}, boss)[1]["token"]
        self.assertEqual(self.alerts(token=token), {}, "a token of jobs sees those of its jobs")
        self.assertEqual(len(self.alerts(token=boss)), 2)
        self.assertEqual(self.server.ask("DELETE", "/v1/site", token=boss)[0], 200)
        until(lambda: self.alerts(token=boss) == {})
        for job in jobs:
            job.over = True

    def test_a_job_says_how_it_stands(self):
        self.servers = [self.server]
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        ranks = self.register(0)
        until(lambda: all(plan.get("version") == 1 for plan in ranks.plans))
        self.assertNotIn("site", self.server.ask("GET", f"/v1/jobs/{ranks.job}")[1])
        self.limit(1e6)
        baseline = self.hall()["baseline_w"]
        self.limit(0.8 * baseline)
        site = lambda: self.server.ask("GET", f"/v1/jobs/{ranks.job}")[1]["site"]
        until(lambda: site().get("granted_w") and site()["counted_w"] <= 0.8 * baseline * 1.0001)
        self.assertEqual((site()["domain"], site()["least_rate"], site()["priority"], site()["state"]), ("hall", 0.3, 1, "granted"))
        self.assertLess(site()["planned_w"], site()["baseline_w"])
        self.assertGreater(site()["rate_lost"], 0)
        self.assertGreater(site()["ceiling_mhz"], 0)
        shown = self.server.cli("job", "show", ranks.job).stdout
        self.assertRegex(shown, r"site:\n +domain: hall\n")
        self.assertRegex(shown, r" granted: [\d,.]+ W\n")
        texts = [event["text"] for event in self.server.ask("GET", "/v1/events/recent")[1]["events"] if event["kind"] == "power_granted"]
        self.assertIn("W, at once: its ranks may draw ", texts[-1])
        ranks.over = True


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main()
