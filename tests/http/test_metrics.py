#!/usr/bin/env python3
"""Metrics of energy on a real `perseus serve`, scraped by a real Prometheus with the rules and the dashboard of deploy/.

usage: test_metrics.py PERSEUS [unittest's arguments]
"""

import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

import served
from served import Server, until
from test_jobs import JobCase
from training import Training

DOCUMENTATION = pathlib.Path(__file__).resolve().parents[2] / "docs" / "serve.md"
DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "perseus.rules.yml"
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")


class MetricsCase(JobCase):
    def text(self):
        return self.server.ask("GET", "/metrics", raw=True)[1].decode()

    def series(self):
        """(name, labels as a set of text) -> value"""
        found = re.findall(r"^(perseus_\w+)(?:\{(.*)\})? (\S+)$", self.text(), re.M)
        return {(name, frozenset(re.findall(r'\w+="[^"]*"', labels))): float(value) for name, labels, value in found}

    def trained(self, iterations=30, **more):
        if not getattr(self, "pushed", False):
            self.push()
            self.pushed = True
        training = Training(self.server, self.job(profile="sample", **more))
        training.register()
        self.assertTrue(training.poll(0, wait_s=60))
        training.run(iterations)
        return training


class EnergyMetrics(MetricsCase):
    def test_power_savings_and_plan_of_a_job(self):
        training = self.trained(name="gpt")
        view = training.view()
        cost, total = view["savings"]["per_iteration"], view["savings"]["total"]
        training.ask("POST", "/stragglers", {"pipeline": 0, "degree": 1.2})  # writes the counts
        series = self.series()
        source = frozenset(['source="measured"' if total["measured"] else 'source="estimated"'])
        used_j = total["all_max_energy_j"] - total["saved_j"]
        self.assertGreater(total["iterations"], 0)
        self.assertEqual(series["perseus_iterations_total", source], total["iterations"])
        self.assertAlmostEqual(series["perseus_energy_joules_total", source] / used_j, 1, places=5)
        self.assertAlmostEqual(series["perseus_energy_saved_joules_total", source] / total["saved_j"], 1, places=5)
        own = {(name, label[len('source="'):-1]): value for (name, labels), value in series.items()
               for label in [next((l for l in labels if l.startswith("source")), 'source="-"')]
               if f'training_job="{view["id"]}"' in labels and 'name="gpt"' in labels}
        self.assertGreater(own["perseus_job_iteration_seconds", "planned"], 0.99 * cost["time_s"])
        saved = {source: own.get(("perseus_job_saved_joules", source), 0) for source in ("measured", "estimated")}
        self.assertAlmostEqual(saved["estimated"], total["estimated_saved_j"], places=3)
        self.assertAlmostEqual(sum(saved.values()) / total["saved_j"], 1, places=5)
        self.assertEqual(own["perseus_job_stragglers", "-"], 1)
        self.assertEqual(own["perseus_job_ranks_without_clock_control", "-"], 0)
        self.assertGreaterEqual(own["perseus_job_slowdown_ratio", "-"], 1)
        self.assertLess(own["perseus_job_frontier_point", "-"], own["perseus_job_frontier_points", "-"])
        power = sum(value for (name, _), value in series.items() if name == "perseus_power_watts")
        all_max = sum(value for (name, _), value in series.items() if name == "perseus_all_max_power_watts")
        self.assertTrue(100 < power < all_max, (power, all_max))
        # The job ends: its gauges go, the counters stay.
        before = series["perseus_energy_joules_total", source]
        training.ask("POST", "/finish")
        series = self.series()
        self.assertGreaterEqual(series["perseus_energy_joules_total", source], before)
        self.assertFalse([name for name, _ in series if name.startswith("perseus_job_")])
        if PROMTOOL:
            checked = subprocess.run([PROMTOOL, "check", "metrics"], input=self.text(), capture_output=True, text=True)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_clocks_that_ranks_report(self):
        training = self.trained(name="gpt")
        job = training.view()["id"]

        def report(rank, **clocks):
            training.iteration += 1
            training.ask("POST", "/iterations", {"rank": rank, "plan_version": 0, "last_iteration": training.iteration,
                                                 "iteration_time_s": [0.5], "epoch": 1, "clocks": clocks})

        def counts():
            series, own = self.series(), frozenset([f'training_job="{job}"', 'name="gpt"'])
            kinds = ("clock_failures", "late_clocks", "throttled_iterations")
            return ([series[f"perseus_{kind}_total", frozenset()] for kind in kinds],
                    [series[f"perseus_job_{kind}", own] for kind in kinds])

        self.assertEqual(counts(), ([0, 0, 0], [0, 0, 0]))
        report(0, failed=7, throttled_iterations=2)
        self.assertEqual(counts(), ([0, 0, 0], [7, 0, 2]), "before this server: the counters do not jump")
        report(0, failed=9, late=1, throttled_iterations=2)
        report(1, late=5)
        self.assertEqual(counts(), ([2, 1, 0], [9, 6, 2]))

    def test_the_number_of_series_is_limited(self):
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data, "--metrics-jobs", "1")
        trainings = [self.trained(1, name=f"run-{k}") for k in range(3)]
        series = self.series()
        jobs = {label for _, labels in series for label in labels if label.startswith("training_job")}
        self.assertEqual(len(jobs), 2, jobs)
        self.assertIn('training_job="others"', jobs)

        def sum_of(wanted):
            return sum(value for (name, _), value in series.items() if name == wanted)

        self.assertAlmostEqual(sum_of("perseus_job_power_watts") / sum_of("perseus_power_watts"), 1, places=5)
        for source in ("measured", "estimated"):
            self.assertIn(("perseus_job_saved_joules", frozenset(['training_job="others"', 'name=""', f'source="{source}"'])), series)
        self.assertEqual(len(trainings), 3)


class Documented(MetricsCase):
    def test_the_documentation_lists_the_metrics_that_the_server_has(self):
        self.trained()
        self.server.ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 1e6}]}]})
        until(lambda: "# TYPE perseus_database_bytes " in self.text())  # measured after the first scrape
        exported = set(re.findall(r"^# TYPE (perseus_\w+) ", self.text(), re.M))
        section = DOCUMENTATION.read_text().split("\n## Health and metrics\n")[1].split("\n## ")[0]
        documented = set(re.findall(r"`(perseus_[a-z_]+[a-z])\b", section)) - {"perseus_requests_seconds_count"}
        # This server speaks plain HTTP; only one with a certificate has the metric of its end (http.server).
        self.assertEqual(exported | {"perseus_certificate_end_seconds"}, documented)


@unittest.skipUnless(PROMTOOL, "no promtool: install the Debian package prometheus")
class Rules(unittest.TestCase):
    def test_every_alert_fires_and_only_then(self):
        ran = subprocess.run([PROMTOOL, "test", "rules", "perseus.test.yml"], cwd=RULES.parent, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_the_configuration_is_valid(self):
        ran = subprocess.run([PROMTOOL, "check", "config", RULES.parent / "prometheus.yml"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


class Dashboard(unittest.TestCase):
    def test_it_can_be_imported(self):
        board = json.loads((DEPLOY / "grafana" / "perseus.json").read_text())
        self.assertGreaterEqual(board["schemaVersion"], 39)
        self.assertEqual([v["type"] for v in board["templating"]["list"]], ["datasource"])
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        for panel in board["panels"]:
            for part in (panel, *panel["targets"]):
                self.assertEqual(part["datasource"], {"type": "prometheus", "uid": "${datasource}"})
            self.assertTrue(panel["title"] and panel["targets"])
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)


@unittest.skipUnless(PROMETHEUS, "no prometheus: install the Debian package prometheus")
class Scraped(MetricsCase):
    def setUp(self):
        super().setUp()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.prometheus = None

    def tearDown(self):
        if self.prometheus:
            self.prometheus.kill()
            self.prometheus.wait()
        super().tearDown()

    def start_prometheus(self, target):
        folder = pathlib.Path(self.folder.name)
        config = (RULES.parent / "prometheus.yml").read_text().replace("localhost:7787", target).replace(": 15s", ": 1s")
        self.assertIn(target, config)
        (folder / "prometheus.yml").write_text(config)
        # The same rules without their delays.
        (folder / RULES.name).write_text(re.sub(r"^ +for: .*\n", "", RULES.read_text(), flags=re.M))
        self.prometheus = subprocess.Popen(
            [PROMETHEUS, "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "tsdb",
             "--web.listen-address", f"127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask_prometheus(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None  # it is starting
            self.fail(f"{url}: {error.read().decode()}")
        except OSError:
            return None  # it is starting

    def test_prometheus_has_the_figures_and_an_alert_fires(self):
        training = self.trained()
        self.server.ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 1e6}]}]})
        training.ask("POST", "/ranks", training.registration(1, epoch=2, control="none", control_reason="no permission"))
        self.start_prometheus(self.server.address)
        query = lambda text: (self.ask_prometheus("query", query=text) or {}).get("result")
        power = until(lambda: query("sum(perseus_power_watts)"))
        self.assertGreater(float(power[0]["value"][1]), 100)
        alerts = lambda: {(a["labels"]["alertname"], a["labels"].get("training_job"))
                          for a in (self.ask_prometheus("alerts") or {"alerts": []})["alerts"] if a["state"] == "firing"}
        job = training.view()["id"]
        until(lambda: ("PerseusNoPermission", job) in alerts())
        # Without its delay one scrape that takes more than a second makes the server count as down, until the next one.
        until(lambda: not {name for name, _ in alerts()} & {"PerseusServerDown", "PerseusPowerHigh"})
        # Expressions of the dashboard and of the rules are valid, and name only metrics that the server has.
        # This server speaks plain HTTP; only one with a certificate has the metric of its end (http.server).
        known = set(self.ask_prometheus("label/__name__/values")) | {"perseus_certificate_end_seconds"}
        board = json.loads((DEPLOY / "grafana" / "perseus.json").read_text())
        expressions = [target["expr"].replace("$__range", "6h") for panel in board["panels"] for target in panel["targets"]]
        expressions += [rule["query"] for group in self.ask_prometheus("rules")["groups"] for rule in group["rules"]]
        self.assertGreater(len(expressions), 15)
        for expression in expressions:
            self.ask_prometheus("query", query=expression)
            for name in re.findall(r"\bperseus_\w+", expression):
                self.assertIn(name, known, expression)
        self.server.stop(signal.SIGKILL)
        until(lambda: ("PerseusServerDown", None) in alerts())


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
