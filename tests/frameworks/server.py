"""`perseus serve` for a test, and its data about a job."""

import csv
import json
import os
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "data" / "sample_profile.csv"


class Server:
    def __init__(self, test, folder, *options):
        self._folder, self._options, self._process = folder, options, None
        test.addCleanup(self.stop)
        self._start("127.0.0.1:0")

    def _start(self, address):
        command = [os.environ["PERSEUS_PROGRAM"], "serve", "--listen", address, "--data", str(self._folder), *self._options]
        with open(f"{self._folder}.log", "a", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = self._process.stdout.readline().split()[-1]

    def stop(self):
        """By SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def start_again(self):
        """At the same address, on its database."""
        self._start(self.url.split("//")[-1])

    def push_sample(self, name, folder, stages, microbatches, time_scale, blocking_power_w):
        """The sample's first stages for 1F1B, with the times that they have here."""
        file = folder / "profile.csv"
        with SAMPLE.open(encoding="utf-8") as sample, file.open("w", encoding="utf-8") as profile:
            rows = csv.DictReader(sample)
            writer = csv.DictWriter(profile, rows.fieldnames)
            writer.writeheader()
            for row in rows:
                if int(row["stage"]) < stages:
                    scaled = {column: time_scale * float(row[column]) for column in ("time", "energy")}
                    writer.writerow({**row, **scaled})
        push = [os.environ["PERSEUS_PROGRAM"], "profile", "push", name, file, "--schedule", "1f1b"]
        options = ["--microbatches", microbatches, "--blocking-power", blocking_power_w, "--server", self.url]
        subprocess.run(list(map(str, push + options)), check=True, stdout=subprocess.DEVNULL)

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def put(self, path, body):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def watch(self):
        """Remembers what the server predicts for its jobs: a job that has ended, as one does with its rank 0, has no prediction."""

        def look():
            while self._process.poll() is None:
                try:
                    for job in self.ask("/v1/jobs")["jobs"]:
                        savings = self.ask(f"/v1/jobs/{job['id']}").get("savings", {})
                        if "per_iteration" in savings:
                            self._predictions[job["id"]] = savings["per_iteration"]
                except OSError:
                    pass  # the server ends
                time.sleep(0.2)

        self._predictions = {}
        threading.Thread(target=look, daemon=True).start()

    def predicted(self, job):
        """(energy saving, slowdown) in percent that the server reported last for the plan in force, since watch()."""
        figures = self._predictions[job]
        saving = 100 * (1 - figures["energy_j"] / figures["all_max_energy_j"])
        return saving, 100 * (figures["time_s"] / figures["all_max_time_s"] - 1)
