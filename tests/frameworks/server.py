"""`perseus serve` for a test, and its data about a job."""

import csv
import json
import os
import subprocess
import urllib.request
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "data" / "sample_profile.csv"


class Server:
    def __init__(self, test, folder, *options):
        command = [os.environ["PERSEUS_PROGRAM"], "serve", "--listen", "127.0.0.1:0", "--data", str(folder), *options]
        with open(f"{folder}.log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        test.addCleanup(self.stop)
        self.url = self._process.stdout.readline().split()[-1]

    def stop(self):
        self._process.kill()
        self._process.communicate()

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

    def predicted(self, job):
        """(energy saving, slowdown) in percent that the server reports for the plan in force."""
        figures = self.ask(f"/v1/jobs/{job}")["savings"]["per_iteration"]
        saving = 100 * (1 - figures["energy_j"] / figures["all_max_energy_j"])
        return saving, 100 * (figures["time_s"] / figures["all_max_time_s"] - 1)
