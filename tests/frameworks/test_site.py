"""A job of torch.distributed.pipelining under the limit of a site, on simulated GPUs: the limit falls while it trains, the
server is killed, starts again on its database, and the limit comes back. A meter that asks neither server nor clients judges
the watts; losses and weights are those of a run without Perseus, bit by bit. Runs in the root that make_root.sh makes."""

import concurrent.futures
import json
import os
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path
from statistics import median

from measured_steps import medians
from run_job import run
from server import Server
from site_meter import SiteMeter

from perseus import simulated_gpu

SCHEDULE, RANKS, MICROBATCHES, TIME_SCALE = "1F1B", 2, 4, 0.5
UNDER_WAY = 3  # steps, of hosts that are one ahead of their GPUs
FULL_W = 522  # of both GPUs without a limit: 139.1 J in 0.26656 s
LEASE_S, WINDOW_S = 10, 5
NOT_CORRECTED = 0.01  # the server corrects no job that draws so little more than planned
LIMIT_S = 240  # for whatever the test waits for


class Training:
    """A job's ranks, and what they said last."""

    def __init__(self, test, server, folder, environment):
        self.test, self.folder = test, folder
        environment = {"TIME_SCALE": str(TIME_SCALE), **environment}
        arguments = (SCHEDULE, MICROBATCHES, folder, server.url, "trained")
        run_ranks = lambda: run("site_rank.py", RANKS, *arguments, limit_s=600, environment=environment)  # noqa: E731
        self._ran = concurrent.futures.ThreadPoolExecutor(1).submit(run_ranks)
        test.addCleanup((folder / "stop").touch)

    def progress(self):
        if self._ran.done():
            self._ran.result()
            self.test.fail("the ranks have ended")
        files = [self.folder / f"step{rank}" for rank in range(RANKS)]
        return [json.loads(file.read_text()) if file.exists() else {"step": 0, "state": ""} for file in files]

    def wait(self, condition, what, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while not condition():
            progress = self.progress()
            self.test.assertLess(time.monotonic(), deadline, f"{what}: {progress}")
            time.sleep(0.1)

    def wait_for_state(self, state):
        self.wait(lambda: all(rank["state"] == state for rank in self.progress()), state)

    def hold(self, duration_s, least_steps=0):
        """Lets it train on."""
        until_s, first = time.monotonic() + duration_s, self.progress()[0]["step"]
        enough = lambda: time.monotonic() >= until_s and self.progress()[0]["step"] >= first + least_steps  # noqa: E731
        self.wait(enough, f"{least_steps} steps")

    def end(self):
        (self.folder / "stop").touch()
        return self._ran.result()


class Story:
    """What happens to the site, and when (time.monotonic())."""

    def __init__(self, test, fall=0.3, site=None, **environment):
        self.test, self.fall, self.site = test, fall, site or {}
        self.folder = Path(test.enterContext(tempfile.TemporaryDirectory(prefix="perseus_site.")))
        self.server = Server(test, self.folder / "data")
        self.server.push_sample("trained", self.folder, RANKS, MICROBATCHES, TIME_SCALE, 90)
        self.training = Training(test, self.server, self.folder, environment)
        self.gpus = [self.folder / f"gpu{rank}" for rank in range(RANKS)]
        self.phases = {}  # name: (from, until, limit in watts)

    def hall(self):
        return self.server.ask("/v1/site/power")["domains"][0]

    def set_limit(self, limit_w):
        limit = {"limit_w": int((1 - NOT_CORRECTED) * limit_w)}
        hall = {"name": "hall", "window_s": WINDOW_S, "limits": [limit]}
        self.server.put("/v1/site", {"lease_s": LEASE_S, "dwell_s": 1, "node_overhead_w": 0, "domains": [hall], **self.site})

    def keeps_limit(self):
        hall = self.hall()
        return hall["counted_w"] <= hall["limit_w"] - hall["guard_w"] + 1e-3

    def phase(self, name, limit_w, duration_s, least_steps=0):
        from_s = time.monotonic()
        self.training.hold(duration_s, least_steps)
        self.phases[name] = (from_s, time.monotonic(), limit_w)

    def fall_and_stay(self):
        """The limit is what the job draws without one, less the fall."""
        self.training.wait_for_state("planned")
        self.training.hold(0, least_steps=UNDER_WAY)
        self.meter = SiteMeter(self.gpus)
        self.phase("no limit", None, WINDOW_S + 1)
        self.low_w = (1 - self.fall) * FULL_W
        from_s = time.monotonic()
        self.set_limit(self.low_w)
        self.training.wait(self.keeps_limit, f"at most {self.low_w:.0f} W", 3 * LEASE_S)
        self.training.hold(0, least_steps=UNDER_WAY)
        self.acted_after_s = time.monotonic() - from_s
        self.phase("low", self.low_w, 2 * WINDOW_S, least_steps=UNDER_WAY)

    def kill_server(self):
        self.server.stop()
        self.phase("no server", self.low_w, LEASE_S + WINDOW_S + 4, least_steps=8)
        self.server.start_again()
        self.training.wait_for_state("planned")
        self.phase("low again", self.low_w, 2 * WINDOW_S, least_steps=UNDER_WAY + 1)

    def stop_a_rank(self, duration_s):
        """By SIGSTOP, for longer than its lease."""
        pid, from_s = self.training.progress()[1]["pid"], time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(duration_s)
        os.kill(pid, signal.SIGCONT)
        self.training.wait_for_state("planned")
        self.training.hold(WINDOW_S, least_steps=UNDER_WAY)
        self.phases["stopped"] = (from_s, time.monotonic(), self.low_w)
        self.phase("low again", self.low_w, 2 * WINDOW_S)

    def come_back(self):
        """Ends the training, too."""
        low_w = self.hall()["counted_w"]
        self.set_limit(FULL_W)
        self.training.wait(lambda: self.hall()["counted_w"] > 1.05 * low_w, "the watts come back")
        self.training.hold(0, least_steps=UNDER_WAY)
        self.phase("back", FULL_W, 2 * WINDOW_S)
        self.ranks = self.training.end()
        self.meter.stop()
        self.locked = [simulated_gpu.read(gpu, time.monotonic() - 1).locked for gpu in self.gpus]

    def steps(self, phase):
        """Of each rank, those that lie within the phase; without a server, those after the lease."""
        from_s, until_s, _ = self.phases[phase]
        from_s += LEASE_S if phase == "no server" else 0
        return [
            [step for step in rank["steps"] if step["at_s"] - step["time_s"] >= from_s and step["at_s"] <= until_s]
            for rank in self.ranks
        ]

    def figures(self, phase):
        """The time of a step is the median, without what the machine was late."""
        from_s, until_s, limit_w = self.phases[phase]
        steps = self.steps(phase)
        figures = medians(steps)
        greatest_w, windows = self.meter.greatest_w(from_s, until_s, WINDOW_S)
        return {
            "limit_w": limit_w, "windows": windows, "mean_w": self.meter.mean_w(from_s, until_s), "greatest_w": greatest_w,
            "steps": len(steps[0]), "step_s": figures["time_s"], "lost_s": figures["lost_s"],
            "planned_s": median(step["planned_iteration_time_s"] for step in steps[0]),
            "paced_s": steps[0][-1]["paced_s"] - steps[0][0]["paced_s"],
            "states": sorted({step["state"] for rank in steps for step in rank}),
        }  # fmt: skip


class Limits(unittest.TestCase):
    def judge(self, story, not_judged=()):
        """Returns the figures of each phase."""
        figures = {phase: story.figures(phase) for phase in story.phases}
        print(json.dumps({"acted_after_s": story.acted_after_s, "trained": story.ranks[0]["trained"], **figures}), file=sys.stderr)
        for phase, of in figures.items():
            if of["limit_w"] is not None and phase not in not_judged:
                self.assertGreater(of["windows"], 0, phase)
                self.assertLessEqual(of["greatest_w"], of["limit_w"], phase)
        self.assertGreater(figures["back"]["mean_w"], 1.05 * figures["low"]["mean_w"])
        for rank in story.ranks:
            # A busy machine sets clocks late.
            self.assertEqual([wrong for wrong in rank["status"]["wrong"] if wrong["cause"] != "late_clocks"], [])
            self.assertEqual((rank["statistics"]["clocks_failed"], rank["statistics"]["plans_dropped"]), (0, 0))
        self.assertEqual(story.locked, RANKS * [0])
        without = run("site_rank.py", RANKS, SCHEDULE, MICROBATCHES, story.folder, "--steps", story.ranks[0]["trained"])
        for key in ("trained", "losses", "weights"):
            self.assertEqual([rank[key] for rank in story.ranks], [rank[key] for rank in without], key)
        self.assertTrue(story.ranks[-1]["losses"])
        return figures

    def test_a_fall_of_30_percent(self):
        story = Story(self)
        story.fall_and_stay()
        story.kill_server()
        story.come_back()
        figures = self.judge(story)
        for phase in ("no limit", "low", "low again", "back"):
            self.assertAlmostEqual(figures[phase]["step_s"] / figures[phase]["planned_s"], 1, delta=0.03, msg=phase)
            self.assertEqual(figures[phase]["states"], ["planned"])
        self.assertIn("ceiling", figures["no server"]["states"])
        self.assertEqual(sum(of["paced_s"] for of in figures.values()), 0)

    def test_a_fall_below_the_slowest_plan_where_all_pace(self):
        story = Story(self, fall=0.6, site={"pacing": True}, PERSEUS_PACES="1")
        story.fall_and_stay()
        story.kill_server()
        story.come_back()
        figures = self.judge(story)
        for phase in ("low", "no server", "low again"):
            self.assertGreater(figures[phase]["paced_s"], 1, phase)
            self.assertGreater(figures[phase]["step_s"], 1.2 * figures[phase]["planned_s"], phase)
        for phase in ("no limit", "back"):
            self.assertEqual(figures[phase]["paced_s"], 0, phase)

    def test_a_rank_that_is_stopped_for_30_s_near_the_slowest_plan(self):
        story = Story(self, fall=0.45)
        story.fall_and_stay()
        story.stop_a_rank(30)
        story.come_back()
        # The energies that ranks report after a stop may be some percent too low, and with them the correction: 523.1 W of 522 W.
        figures = self.judge(story, not_judged=("back",))
        self.assertAlmostEqual(figures["low again"]["step_s"] / figures["low"]["step_s"], 1, delta=0.03)


if __name__ == "__main__":
    unittest.main()
