"""The example with Megatron Core, of the checkout at /megatron ($PERSEUS_MEGATRON), on simulated GPUs: the job gets a plan,
its GPUs follow it, and what is saved is what was predicted. Runs in the root that make_root.sh makes; 77 where there is no
checkout.

usage: test_megatron_planned.py [online]    online: the job is profiled while it trains, which takes some 200 steps more
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from run_job import printed
from server import Server

REPOSITORY = Path(__file__).parents[2]
EXAMPLE, SAMPLE = REPOSITORY / "examples" / "megatron_gpt.py", REPOSITORY / "data" / "sample_profile.csv"
ONLINE = "online" in sys.argv[1:]
RANKS, MICROBATCHES, MOST_WAITING = 2, 4, 1.1
TIME_SCALE = float(os.environ.get("TIME_SCALE", "1"))  # more where the machine is busy


def push_profile(folder, url):
    """Of the stages that run, with the times that they have here."""
    with SAMPLE.open(encoding="utf-8") as sample, (folder / "profile.csv").open("w", encoding="utf-8") as profile:
        rows = csv.DictReader(sample)
        writer = csv.DictWriter(profile, rows.fieldnames)
        writer.writeheader()
        for row in rows:
            if int(row["stage"]) < RANKS:
                scaled = {name: TIME_SCALE * float(row[name]) for name in ("time", "energy")}
                writer.writerow({**row, **scaled})
    push = [os.environ["PERSEUS_PROGRAM"], "profile", "push", "gpt", folder / "profile.csv", "--schedule", "1f1b"]
    options = ["--microbatches", MICROBATCHES, "--blocking-power", 90, "--server", url]
    subprocess.run(list(map(str, push + options)), check=True, stdout=subprocess.DEVNULL)


class Planned(unittest.TestCase):
    def test_1f1b(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_megatron.")))
        server = Server(self, folder / "data")
        if not ONLINE:
            push_profile(folder, server.url)
        os.environ["TIME_SCALE"] = str(TIME_SCALE)
        profile = [] if ONLINE else ["gpt"]
        outputs = printed("on_simulated_gpu.py", RANKS, folder, EXAMPLE, server.url, *profile, limit_s=1200)
        output = outputs[0]
        print(output, file=sys.stderr)
        job = re.search(r"planned after \d+ steps, job (\S+)", output).group(1)
        before_s = float(re.search(r"J and (\S+) s a step before", output).group(1))
        saved, slower = map(float, re.search(r"saved (\S+) % of energy, (\S+) % slower", output).groups())
        figures = server.ask(f"/v1/jobs/{job}")["savings"]["per_iteration"]
        if figures is None or before_s > MOST_WAITING * figures["all_max_time_s"]:
            # Times and energies are then this machine's, not the profile's.
            self.skipTest(f"this machine is too busy: a step takes {before_s} s, of the server's {figures}")
        predicted_saved, predicted_slower = server.predicted(job)
        print(f"predicted: {predicted_saved:.2f} % saved, {predicted_slower:.2f} % slower", file=sys.stderr)
        self.assertGreater(predicted_saved, 1)
        # The example leaves out what a rank waits after its last computation, which a busy machine makes longer.
        self.assertAlmostEqual(saved, predicted_saved, delta=4)
        self.assertLess(slower, predicted_slower + 3)


if __name__ == "__main__":
    if not Path("/megatron/megatron/core").is_dir():
        print("PERSEUS_MEGATRON names no checkout of Megatron-LM")
        sys.exit(77)
    os.environ["PYTHONPATH"] += ":/megatron"
    unittest.main(argv=sys.argv[:1])
