"""`perseus serve` for a test, and what it says of a job."""

import json
import os
import subprocess
import urllib.request


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

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def predicted(self, job):
        """(saving of energy, slowdown) in percent that the server says of the plan in force."""
        figures = self.ask(f"/v1/jobs/{job}")["savings"]["per_iteration"]
        saving = 100 * (1 - figures["energy_j"] / figures["all_max_energy_j"])
        return saving, 100 * (figures["time_s"] / figures["all_max_time_s"] - 1)
