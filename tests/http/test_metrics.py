#!/usr/bin/env python3
"""Metrics of energy on a real `perseus serve`.

usage: test_metrics.py PERSEUS [unittest's arguments]
"""

import re
import shutil
import signal
import subprocess
import sys
import unittest

import served
from served import Server
from test_jobs import JobCase
from training import Training

PROMTOOL = shutil.which("promtool")


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
        self.assertEqual(len(trainings), 3)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
