"""A job of Python ranks against the real `perseus serve`, each with its helper and a simulated GPU."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from tables import table_of

HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "data" / "sample_profile.csv"
BUILT = Path(os.environ["PERSEUS_BUILT_PACKAGE"])
CLOCKS = range(1500, 599, -45)  # the sample's
RANKS, MICROBATCHES = 4, 8


def plain_environment():
    """For programs that bring their own sanitizer."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def program(name, *arguments):
    command = [os.environ[name], *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, env=plain_environment())
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stderr}")
    return result.stdout


def with_split_backward(profile):
    """Halves of the backward as its input and weight gradients, too."""
    rows = profile.splitlines()
    for row in rows[1:]:
        stage, instruction, clock, time, energy = row.split(",")
        if instruction == "backward":
            halves = f"{clock},{float(time) / 2},{float(energy) / 2}"
            rows += [f"{stage},input_gradient,{halves}", f"{stage},weight_gradient,{halves}"]
    return "\n".join(rows) + "\n"


class JobCase(unittest.TestCase):
    python, package = sys.executable, str(BUILT)  # what runs the ranks; package: "" where it is installed

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_job.")))
        self.server = self.process(
            [os.environ["PERSEUS_PROGRAM"], "serve", "--listen", "127.0.0.1:0", "--data", self.folder / "data",
             "--plan-deadlines", "40"],
            env=plain_environment(), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.url = self.server.stdout.readline().split()[-1]

    def push_profile(self, schedule, *options, stages=4):
        profile = self.folder / "profile.csv"
        head, *rows = with_split_backward(SAMPLE.read_text()).splitlines(keepends=True)
        profile.write_text("".join([head, *(row for row in rows if int(row.split(",")[0]) < stages)]))
        program(
            "PERSEUS_PROGRAM", "profile", "push", "sample", profile, "--schedule", schedule, "--microbatches", MICROBATCHES,
            "--blocking-power", 90, "--server", self.url, *options,
        )  # fmt: skip

    def process(self, command, **options):
        process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ranks(self, devices, *table):
        """Started, and each has a plan."""
        ranks = [self.rank(0, len(devices), "", devices[0], *table)]
        job = ranks[0].stdout.readline().split()[-1]
        self.assertNotEqual(job, "job", "rank 0 has no job")
        for number, device in enumerate(devices[1:], 1):
            ranks.append(self.rank(number, len(devices), job, device, *table))
        for number, process in enumerate(ranks):
            for line in process.stdout:
                if line == "planned\n":
                    break
            else:
                self.fail(f"rank {number} had no plan")
        return ranks

    def ended(self, ranks):
        """Their statistics."""
        found = []
        for process in reversed(ranks):  # rank 0 reports the end of the job
            said, _ = process.communicate("")
            self.assertEqual(process.returncode, 0)
            found.insert(0, json.loads(said.splitlines()[-1]))
        return found

    def rank(self, number, ranks, job, device, *table):
        environment = {name: value for name, value in os.environ.items() if name != "PERSEUS_LIBRARY"}
        environment["PYTHONPATH"] = self.package
        environment["PERSEUS_PLAN_TOLERANCE"] = "-1"  # the ranks sleep for milliseconds, the profile has seconds
        command = [self.python, "-B", HERE / "rank_of_pipeline.py", self.url, number, ranks, MICROBATCHES, job, device]
        return self.process([*command, *table], env=environment)

    def follow_plans(self):
        devices = [self.folder / f"gpu{number}" for number in range(RANKS)]
        for device in devices:
            program("PERSEUS_SIMULATED_GPU_PROGRAM", "create", device, *CLOCKS)
        self.push_profile("1f1b")
        ranks = self.ranks([f"simulated:{device}" for device in devices])
        self.assertIn("locked", "".join(program("PERSEUS_SIMULATED_GPU_PROGRAM", "show", device) for device in devices))
        for number, statistics in enumerate(self.ended(ranks)):
            with self.subTest(rank=number):
                self.assertGreater(statistics["plan_version"], 0)
                self.assertEqual((statistics["controls_clock"], statistics["clocks_failed"]), (1, 0))
                self.assertGreater(statistics["planned_iteration_time_s"], 0)
                self.assertIn("free", program("PERSEUS_SIMULATED_GPU_PROGRAM", "show", devices[number]))


class Job(JobCase):
    def test_plans_are_followed_and_clocks_given_back(self):
        self.follow_plans()

    def test_steps_of_two_shapes_follow_a_plan_each(self):
        """They alternate, which costs no further version of the plan."""
        os.environ["ALTERNATES"] = "4"
        self.addCleanup(os.environ.pop, "ALTERNATES")
        for count in (2, 4):
            with self.subTest(ranks=count):
                devices = [self.folder / f"gpu{count}.{number}" for number in range(count)]
                for device in devices:
                    program("PERSEUS_SIMULATED_GPU_PROGRAM", "create", device, *CLOCKS)
                self.push_profile("1f1b", stages=count)
                ranks = self.ranks([f"simulated:{device}" for device in devices])
                for process in ranks:
                    times = json.loads(self.line(process, "both planned").removeprefix("both planned"))
                    self.assertGreater(times[str(MICROBATCHES)], 1.2 * times["4"])
                before = self.only_job()
                self.assertEqual({shape["microbatches"]: shape["planned"] for shape in before["shapes"]}, {8: True, 4: True})
                for process in ranks:
                    self.line(process, "alternated")
                self.assertEqual(self.only_job()["plan"]["version"], before["plan"]["version"])
                self.ended(ranks)

    def line(self, process, begin):
        for line in process.stdout:
            if line.startswith(begin):
                return line
        self.fail(f"no line '{begin}'")

    def only_job(self):
        """The one that has not ended."""
        jobs = json.loads(program("PERSEUS_PROGRAM", "job", "list", "--server", self.url, "--json"))["jobs"]
        (running,) = [job["id"] for job in jobs if job["state"] != "finished"]
        return json.loads(program("PERSEUS_PROGRAM", "job", "show", running, "--server", self.url, "--json"))

    def test_advice_without_a_profile_is_modeled_and_sets_nothing(self):
        devices = [self.folder / f"gpu{number}" for number in range(2)]
        os.environ.update(GPU_NAME="NVIDIA A40", PROFILE="", PERSEUS_ADVICE_ONLY="1")
        for name in ("GPU_NAME", "PROFILE", "PERSEUS_ADVICE_ONLY"):
            self.addCleanup(os.environ.pop, name)
        for device in devices:
            program("PERSEUS_SIMULATED_GPU_PROGRAM", "create", device, *CLOCKS)
            program("PERSEUS_SIMULATED_GPU_PROGRAM", "guard", device)
        first = self.rank(0, 2, "", f"simulated:{devices[0]}")
        job = first.stdout.readline().split()[-1]
        ranks = [first, self.rank(1, 2, job, f"simulated:{devices[1]}")]
        while True:
            view = json.loads(program("PERSEUS_PROGRAM", "job", "show", job, "--server", self.url, "--json"))
            if view["state"] not in ("registered", "profiling"):
                break
            time.sleep(0.2)
        self.assertEqual(view["state"], "deployed", view.get("reason"))
        self.assertIn("possible", view["savings"], view["savings"]["none_because"])
        possible = view["savings"]["possible"]
        self.assertTrue(possible["modeled"])
        self.assertGreater(possible["saving_stddev_pct"], 0)
        self.assertIn("by a model of NVIDIA A40", view["savings"]["none_because"])
        self.assertIn(" modeled", program("PERSEUS_PROGRAM", "job", "list", "-o", "wide", "--server", self.url))
        for statistics in self.ended(ranks):
            self.assertEqual((statistics["controls_clock"], statistics["clocks_requested"]), (0, 0))
        for device in devices:
            self.assertEqual(program("PERSEUS_SIMULATED_GPU_PROGRAM", "setters", device), "")

    def test_tables_of_pytorch(self):
        for schedule, *options in (("interleaved-1f1b", "--chunks", 2), ("zbv",), ("dualpipev",)):
            with self.subTest(schedule):
                self.push_profile(schedule, *options)
                table = self.folder / "table.csv"
                table.write_text(table_of(schedule, RANKS // 2, MICROBATCHES, 2))
                ranks = self.ranks(["none"] * (RANKS // 2), table)
                for statistics in self.ended(ranks):
                    self.assertEqual(statistics["state"], "planned")
                    # Each report that is refused would be one, 5 in a second; on a busy machine an answer may take too long.
                    self.assertLessEqual(statistics["server_failures"], 2)


if __name__ == "__main__":
    unittest.main()
