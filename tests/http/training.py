"""A training job on GPUs that follow the sample profile: its ranks send requests over /v1 and report, as clients
do."""

import csv
import random
import statistics
import time
import urllib.parse

from served import PROFILE

BLOCKING_W = 90.0


def truth(every=2):
    """(stage, instruction, MHz) -> seconds, joules; every n-th clock of the sample profile, the highest included."""
    with PROFILE.open() as rows:
        table = {(int(row["stage"]), row["instruction"], int(row["frequency"])): (float(row["time"]), float(row["energy"]))
                 for row in csv.DictReader(rows)}
    kept = sorted({clock for _, _, clock in table}, reverse=True)[::every]
    return {key: value for key, value in table.items() if key[2] in kept}


def order_1f1b(stage, stages, microbatches):
    """(instruction, microbatch) in the order in which the stage runs them."""
    warm_up = min(stages - 1 - stage, microbatches)
    forward = iter(range(microbatches))
    backward = iter(range(microbatches))
    names = ["forward"] * warm_up + ["forward", "backward"] * (microbatches - warm_up) + ["backward"] * warm_up
    return [(name, next(forward if name == "forward" else backward)) for name in names]


class Training:
    """Ranks 0 to dp * 4 - 1, in step. Iterations are numbered from 1."""

    def __init__(self, server, job, dp=1, microbatches=6, cap_mhz=None, seed=1):
        self.server, self.path = server, f"/v1/jobs/{urllib.parse.quote(job)}"
        self.dp, self.cap_mhz = dp, cap_mhz
        self.truth = truth()
        self.clocks = sorted({clock for _, _, clock in self.truth}, reverse=True)
        self.orders = [order_1f1b(stage, 4, microbatches) for stage in range(4)]
        self.noise = random.Random(seed)
        self.reported = {}  # by window: whether all clocks are the highest, and the times that each rank reported
        self.iteration = 0
        self.version = [0] * (4 * dp)
        self.next = [None] * (4 * dp)  # plan of each rank, until its first iteration
        self.now = [None] * (4 * dp)  # plan that each rank follows
        self.window = [[] for _ in range(4 * dp)]  # iterations of the rank's current profiling window
        self.times = []  # of all iterations, without noise
        self.kinds = []

    def registration(self, rank, **more):
        members = {"rank": rank, "dp_rank": rank // 4, "pp_rank": rank % 4, "tp_rank": 0, "clocks_mhz": self.clocks,
                   "accelerator": f"GPU-{rank}", "host": "node-1", "epoch": 1, "switch_latency_s": 0.001, **more}
        return {name: value for name, value in members.items() if value is not None}

    def register(self, ranks=None, **more):
        for rank in range(4 * self.dp) if ranks is None else ranks:
            self.ask("POST", "/ranks", self.registration(rank, **more))

    def ask(self, method, rest, body=None, expect=200):
        status, answer = self.server.ask(method, self.path + rest, body)
        assert status == expect, (method, rest, answer)
        return answer

    def view(self):
        return self.ask("GET", "")

    def restart(self, epoch, **more):
        """Every process of the job ends, and a new one replaces it."""
        self.iteration = 0
        count = 4 * self.dp
        self.version, self.next, self.now, self.window = [0] * count, [None] * count, [None] * count, [[] for _ in range(count)]
        self.register(epoch=epoch, **more)

    def poll(self, rank, wait_s=0):
        """Requests the next plan; returns whether there is one."""
        answer = self.ask("GET", f"/ranks/{rank}/plan?have={self.version[rank]}&iteration={self.iteration}&wait_s={wait_s}")
        if answer.get("unchanged"):
            return False
        self.version[rank] = answer["version"]
        self.next[rank] = answer
        return True

    def clocks_of(self, rank):
        """Returns the rank's clocks in this iteration, and whether the iteration belongs to a window."""
        plan = self.next[rank]
        if plan and self.iteration >= plan["from_iteration"]:
            self.now[rank], self.next[rank], self.window[rank] = plan, None, []
        plan = self.now[rank]
        highest = [self.clocks[0]] * len(self.orders[rank % 4])
        if plan is None or plan["kind"] == "maximum_clock":
            return highest, False
        if plan["kind"] == "profiling_window" and len(self.window[rank]) >= plan["iterations"]:
            return highest, False
        return [clock for _, clock in plan["clocks"]], plan["kind"] == "profiling_window"

    def run(self, iterations=1, report=True):
        for _ in range(iterations):
            self.iteration += 1
            for rank in range(4 * self.dp):
                self.poll(rank)
            chosen = [self.clocks_of(rank) for rank in range(4 * self.dp)]
            ran = [self.pipeline([chosen[4 * dp + stage][0] for stage in range(4)]) for dp in range(self.dp)]
            self.times.append(max(time_s for time_s, _, _ in ran))
            self.kinds.append(chosen[0][1])
            for rank in range(4 * self.dp):
                time_s, busy_s, busy_j = ran[rank // 4]
                if report:
                    self.report(rank, chosen[rank], time_s, busy_j[rank % 4] + BLOCKING_W * (time_s - busy_s[rank % 4]))

    def run_until(self, states, limit_s=240):
        """Iterations take no time here, so the number of iterations until the server has planned depends on the
        machine."""
        limit_s += time.monotonic()
        while (view := self.view())["state"] not in states:
            if time.monotonic() > limit_s:
                raise AssertionError(f"not {states} after {self.iteration} iterations: {view}")
            self.run()
        return view

    def one(self, stage, instruction, clock):
        wanted = clock or max(self.clocks)  # 0: the clock stays as it is
        runs_at = min(wanted, self.cap_mhz or wanted)
        return self.truth[stage, instruction, max(c for c in self.clocks if c <= runs_at)]

    def pipeline(self, clocks):
        """Returns the seconds of an iteration, and per stage the seconds and joules of its computations."""
        ends, at, free = {}, [0] * 4, [0.0] * 4
        busy_s, busy_j = [0.0] * 4, [0.0] * 4
        while any(at[stage] < len(self.orders[stage]) for stage in range(4)):
            for stage in range(4):
                while at[stage] < len(self.orders[stage]):
                    name, microbatch = self.orders[stage][at[stage]]
                    before = stage - 1 if name == "forward" else stage + 1
                    if 0 <= before < 4 and (before, name, microbatch) not in ends:
                        break
                    seconds, joules = self.one(stage, name, clocks[stage][at[stage]])
                    free[stage] = max(free[stage], ends.get((before, name, microbatch), 0.0)) + seconds
                    ends[stage, name, microbatch] = free[stage]
                    busy_s[stage] += seconds
                    busy_j[stage] += joules
                    at[stage] += 1
        return max(free), busy_s, busy_j

    def report(self, rank, chosen, time_s, energy_j):
        clocks, in_window = chosen
        noisy = lambda value: value * self.noise.gauss(1, 0.003)
        measured = {"last_iteration": self.iteration, "iteration_time_s": [noisy(time_s)], "iteration_energy_j": [noisy(energy_j)]}
        plan = self.now[rank]
        if not in_window:
            followed = plan["version"] if plan else 0
            self.ask("POST", "/iterations", {"rank": rank, "plan_version": followed, **measured})
            return
        times, energies = {"forward": [], "backward": []}, {"forward": [], "backward": []}
        for (name, _), clock in zip(self.orders[rank % 4], clocks):
            seconds, joules = self.one(rank % 4, name, clock)
            times[name].append(noisy(seconds))
            energies[name].append(noisy(joules))
        throttled = self.cap_mhz is not None and max(clocks) > self.cap_mhz
        self.window[rank].append({**measured, "time_s": times, "energy_j": energies, "throttled": throttled})
        ran = self.window[rank]
        if len(ran) < plan["iterations"]:
            return
        joined = {"rank": rank, "window": plan["window"], "last_iteration": self.iteration, "plan_version": plan["version"],
                  "iteration_time_s": [one["iteration_time_s"][0] for one in ran],
                  "iteration_energy_j": [one["iteration_energy_j"][0] for one in ran],
                  "throttled": [one["throttled"] for one in ran]}
        _, reported = self.reported.setdefault(plan["window"], [True, []])
        self.reported[plan["window"]][0] &= set(clocks) <= {0, self.clocks[0]}
        reported.append(joined["iteration_time_s"])
        for member in ("time_s", "energy_j"):
            joined[member] = {name: [one[member][name] for one in ran] for name in times}
        self.ask("POST", "/iterations", joined)

    def highest_s(self):
        """Runs an iteration with everything at the highest clock."""
        return self.pipeline([[self.clocks[0]] * len(order) for order in self.orders])[0]

    def reported_extra_s(self):
        """What windows cost against the shortest one at the highest clock before them, by the noisy times that were reported."""
        highest_s, extra_s = 0.0, 0.0
        for _, (is_highest, of_ranks) in sorted(self.reported.items()):
            time_s = max(statistics.fmean(times) for times in of_ranks)
            if is_highest and (highest_s == 0 or time_s < highest_s):
                highest_s = time_s
            if highest_s > 0:
                extra_s += len(of_ranks[0]) * (time_s - highest_s)
        return extra_s

    def mean_time_s(self, last):
        return statistics.fmean(self.times[-last:])
