"""Training jobs that call servers which may die at any moment, and a ledger of the acknowledged answers.

A worker makes one call after another and records acknowledged changes; an interrupted call may have happened or not.
check() then verifies with a server that the recorded state holds. Waiters are ranks that request the next plan for
ever.
"""

import http.client
import json
import random
import threading
import time

from served import PROFILE, until

MICROBATCHES = 24  # enough that some kills interrupt a characterization
DP, PP = 2, 4
PROVISIONAL = 1 << 30  # versions from here on are of plans sent while the store was slow; no promise holds them


class Lost(Exception):
    """No answer: the outcome of the call is unknown."""


def profile_body(seed):
    """The sample profile with modified times, so that its frontier differs."""
    lines = PROFILE.read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    factor = 1 + seed / 1e6
    text = "\n".join([lines[0]] + [",".join(row[:3] + [f"{float(row[3]) * factor:.9f}", row[4]]) for row in rows]) + "\n"
    return {"profile_csv": text, "pipeline": {"schedule": "1f1b", "microbatches": MICROBATCHES, "blocking_power_w": 90}}


class Addresses:
    """The running servers."""

    def __init__(self):
        self.changed = threading.Condition()
        self.now = []

    def set(self, addresses):
        with self.changed:
            self.now = list(addresses)
            self.changed.notify_all()


class Client:
    """Keeps a connection to one of the servers."""

    def __init__(self, addresses, draw):
        self.addresses, self.draw = addresses, draw
        self.connection = None
        self.address = None

    def ask_until_answered(self, path):
        """Reads from whichever server serves, as clients with a list of servers do."""
        def answer():
            try:
                return self.ask("GET", path)
            except Lost:
                return None
        return until(answer)

    def ask(self, method, path, body=None):
        if self.address not in self.addresses.now:
            with self.addresses.changed:
                if not self.addresses.now:
                    raise Lost
                self.address = self.draw.choice(self.addresses.now)
            if self.connection:
                self.connection.close()
            self.connection = http.client.HTTPConnection(self.address, timeout=600)
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body),
                                    {"Content-Type": "application/json"})
            reply = self.connection.getresponse()
            content = reply.read()
            if reply.status == 503:
                raise OSError("it stops or stands by, or its database is unreachable")
        except (OSError, http.client.HTTPException) as problem:  # retry, also elsewhere
            self.connection.close()
            self.address = None
            time.sleep(0.02)
            raise Lost from problem
        return reply.status, json.loads(content)


class Job:
    """The answers to one worker about one job of its own."""

    def __init__(self, name):
        self.id = name
        self.ranks_asked, self.ranks = set(), set()
        self.targets = [{"rank": r} for r in range(DP * PP)] + [{"accelerator": f"{name}-{r}"} for r in range(DP * PP)]
        self.notices, self.withdrawn, self.maybe_withdrawn = {}, set(), set()
        self.cap, self.maybe_caps = None, []
        self.finished = self.maybe_finished = False
        self.profile_asked = False
        self.touched = True


class Workload:
    def __init__(self, addresses, seed, workers=3, waiters=3):
        self.addresses = addresses
        self.jobs, self.profiles = [], {}
        self.plans = {}  # (job, rank, version) -> the plan as the rank received it
        self.newest = {}  # job -> highest version that a rank received
        self.lock = threading.Condition()
        self.paused, self.stopping, self.parked = False, False, 0
        self.lost = self.done = self.failures_seen = 0
        self.problem = None
        self.threads = [threading.Thread(target=self.run, args=(turn, random.Random(f"{seed}/{number}")))
                        for number, turn in enumerate([self.work] * workers + [self.wait] * waiters)]
        for thread in self.threads:
            thread.start()

    # ---- Threads that pause on request

    def run(self, turn, draw):
        client, memory = Client(self.addresses, draw), {}
        try:
            while self.may_go_on():
                try:
                    turn(client, draw, memory)
                    self.done += 1
                except Lost:
                    self.lost += 1
                    with self.addresses.changed:
                        self.addresses.changed.wait_for(
                            lambda: self.paused or self.stopping or client.address in self.addresses.now or
                            self.addresses.now, 60)
        except BaseException as problem:  # pylint: disable=broad-except
            self.problem = problem
            raise
        finally:
            with self.lock:
                self.parked += 1
                self.lock.notify_all()

    def may_go_on(self):
        with self.lock:
            if not self.paused:
                return not self.stopping
            self.parked += 1
            self.lock.notify_all()
            self.lock.wait_for(lambda: not self.paused)
            self.parked -= 1
            return not self.stopping

    def pause(self):
        """Returns when every thread has recorded its last answer."""
        with self.lock:
            self.paused = True
        with self.addresses.changed:
            self.addresses.changed.notify_all()
        with self.lock:
            assert self.lock.wait_for(lambda: self.parked == len(self.threads), 120), "a thread hangs"
        if self.problem:
            raise self.problem

    def resume(self):
        with self.lock:
            self.paused = False
            self.lock.notify_all()

    def stop(self):
        with self.lock:
            self.paused, self.stopping = False, True
            self.lock.notify_all()
        with self.addresses.changed:
            self.addresses.changed.notify_all()
        for thread in self.threads:
            thread.join()
        if self.problem:
            raise self.problem

    # ---- The calls of workers and waiters

    def work(self, client, draw, mine):
        jobs = mine.setdefault("jobs", [])
        open_jobs = [job for job in jobs if not (job.finished or job.maybe_finished)]
        if len(open_jobs) < 2:
            return self.register(client, draw, jobs)
        job = draw.choice(open_jobs[-2:])
        job.touched = True
        missing = sorted(set(range(DP * PP)) - job.ranks)
        what = draw.random()
        if not job.profile_asked and what < 0.3:
            self.upload(client, job, draw)
        elif missing and what < 0.75:
            self.rank(client, job, draw.choice(missing))
        elif job.targets and job.ranks and what < 0.85:
            self.straggler(client, job, draw)
        elif job.notices and what < 0.9:
            self.withdraw(client, job, draw)
        elif what < 0.97 or missing or not job.profile_asked:
            self.policy(client, job, draw)
        else:
            self.finish(client, job)
        return None

    def register(self, client, draw, jobs):
        name = f"p{draw.randrange(10**9)}"
        if draw.random() < 0.5:
            body = profile_body(draw.randrange(10**5))
            self.profiles[name] = (body, False)
            self.expect(client.ask("PUT", f"/v1/profiles/{name}", body))
            self.profiles[name] = (body, True)
        request = {"name": name, "degrees": {"dp": DP, "pp": PP, "tp": 1}}
        if name in self.profiles:
            request["profile"] = name
        job = Job(self.expect(client.ask("POST", "/v1/jobs", request))["job"])
        job.profile_asked = name in self.profiles
        jobs.append(job)
        self.jobs.append(job)

    def upload(self, client, job, draw):
        job.profile_asked = self.expect(client.ask("PUT", f"/v1/jobs/{job.id}/profile",
                                                   profile_body(draw.randrange(10**5)))) == {}

    def rank(self, client, job, rank):
        job.ranks_asked.add(rank)
        self.expect(client.ask("POST", f"/v1/jobs/{job.id}/ranks",
                               {"rank": rank, "dp_rank": rank // PP, "pp_rank": rank % PP, "tp_rank": 0,
                                "accelerator": f"{job.id}-{rank}"}))
        job.ranks.add(rank)

    def straggler(self, client, job, draw):
        # Each target once: the scenarios test which notice may replace which.
        known = [t for t in job.targets if t.get("rank", 0) in job.ranks and
                 ("accelerator" not in t or int(t["accelerator"].rsplit("-", 1)[1]) in job.ranks)]
        if not known:
            return
        target = draw.choice(known)
        job.targets.remove(target)
        degree = 1 + draw.randrange(1, 200) / 1000
        answer = self.expect(client.ask("POST", f"/v1/jobs/{job.id}/stragglers",
                                        {**target, "delay_s": draw.choice([0, 0.2, 1, 3]), "degree": degree}))
        for notice in answer["notices"]:
            job.notices[notice["id"]] = (notice["pipeline"], degree, notice["at_s"])

    def withdraw(self, client, job, draw):
        notice = draw.choice(sorted(job.notices))
        again = notice in job.maybe_withdrawn
        job.maybe_withdrawn.add(notice)
        status, answer = client.ask("DELETE", f"/v1/jobs/{job.id}/stragglers/{notice}")
        assert status == 200 or (again and status == 404), answer
        job.withdrawn.add(notice)

    def policy(self, client, job, draw):
        cap = draw.choice([1000, 1500, 2000, 2500])
        job.maybe_caps.append(cap)
        self.expect(client.ask("PUT", f"/v1/jobs/{job.id}/policies/power_cap", {"average_w": cap}))
        job.cap, job.maybe_caps = cap, []

    def finish(self, client, job):
        job.maybe_finished = True
        self.expect(client.ask("POST", f"/v1/jobs/{job.id}/finish", {}))
        job.finished = True

    def wait(self, client, draw, mine):
        """One rank after another: each requests plans from its own version on until its job has ended."""
        if "job" not in mine or mine["job"].finished or draw.random() < 0.02:
            jobs = [job for job in self.jobs[-6:] if job.ranks and not job.finished]
            if not jobs:
                client.ask("GET", "/v1/jobs")
                return
            mine["job"] = draw.choice(jobs)
            mine["rank"], mine["have"] = draw.choice(sorted(mine["job"].ranks)), 0
        job, rank, have = mine["job"].id, mine["rank"], mine["have"]
        status, plan = client.ask("GET", f"/v1/jobs/{job}/ranks/{rank}/plan?have={have}&wait_s=0.3")
        if status == 409:  # meanwhile finished
            assert mine["job"].finished or mine["job"].maybe_finished, plan
            del mine["job"]
            return
        assert status == 200, plan
        if plan.get("unchanged"):
            return
        assert plan["version"] >= have or have >= PROVISIONAL, f"{job}: rank {rank} had plan {have} and got {plan['version']}"
        mine["have"] = plan["version"]
        self.remember(job, rank, plan)

    def remember(self, job, rank, plan):
        if plan["version"] >= PROVISIONAL:
            return
        text = json.dumps(plan, sort_keys=True)
        with self.lock:
            first = self.plans.setdefault((job, rank, plan["version"]), text)
            self.newest[job] = max(self.newest.get(job, 0), plan["version"])
        assert first == text, f"{job}: plan {plan['version']} of rank {rank} was {first} and is {text}"

    @staticmethod
    def expect(answer):
        status, content = answer
        assert status == 200, content
        return content

    # ---- Checks of the recorded state

    def check(self, client, draw, everything=False):
        """Asserts the acknowledged state of the jobs that changed. Returns their states."""
        states = []
        for name, (body, acknowledged) in list(self.profiles.items())[0 if everything else -4:]:
            status, answer = client.ask_until_answered(f"/v1/profiles/{name}")
            assert status == 200 or not acknowledged, answer
            if status == 200:
                assert answer["profile_csv"] == body["profile_csv"], f"profile {name} is another one"
        for job in self.jobs:
            if not (everything or job.touched or draw.random() < 0.05):
                continue
            view = self.expect(client.ask_until_answered(f"/v1/jobs/{job.id}"))
            self.check_view(job, view)
            states.append(view["state"])
            version = (view.get("plan") or {}).get("version", 0)
            assert version >= self.newest.get(job.id, 0), f"{job.id}: plan {self.newest[job.id]} is lost: {view}"
            if version > 0 and view["state"] != "finished" and job.ranks:
                rank = draw.choice(sorted(job.ranks))
                plan = self.expect(client.ask_until_answered(f"/v1/jobs/{job.id}/ranks/{rank}/plan"))
                self.remember(job.id, rank, plan)
            job.touched = False
        return states

    @staticmethod
    def check_view(job, view):
        assert len(job.ranks) <= view["ranks"]["registered"] <= len(job.ranks_asked), (job.ranks, view)
        if job.finished:
            assert view["state"] == "finished", view
        shown = {notice["id"]: notice for notice in view["stragglers"]}
        for notice, (pipeline, degree, at_s) in job.notices.items():
            if notice in job.withdrawn:
                assert notice not in shown, f"notice {notice} was withdrawn: {view}"
            elif notice not in job.maybe_withdrawn:
                assert notice in shown, f"notice {notice} is lost: {view}"
                found = shown[notice]
                assert (found["pipeline"], found["degree"], found["at_s"]) == (pipeline, degree, at_s), (at_s, found)
        for notice in shown.values():
            assert notice["state"] == "pending" or notice["at_s"] <= view["now_s"], f"too early: {notice}"
        cap = [policy["power_cap"]["average_w"] for policy in view["policies"]]
        assert cap in ([job.cap] if job.cap else [], *([c] for c in job.maybe_caps)), (job.cap, job.maybe_caps, view)

    def settled(self, client):
        """Whether no work is pending: every job with a known profile has its plan, all notices are in force."""
        for job in self.jobs:
            view = self.expect(client.ask_until_answered(f"/v1/jobs/{job.id}"))
            assert view["state"] != "failed", view
            if view["state"] == "characterizing" or (job.profile_asked and view["state"] == "registered"):
                return False
            if view["state"] != "finished" and any(notice["state"] == "pending" for notice in view["stragglers"]):
                return False
        return True

    def lateness(self, server, outages):
        """Delay of notices after their due time, or after the end of the last outage (begin, end) that they met."""
        late = []
        for job in self.jobs:
            due = {f"straggler notice {notice} is in force": at_s for notice, (_, _, at_s) in job.notices.items()}
            last = self.expect(server.ask("GET", f"/v1/jobs/{job.id}"))["sequence"]
            for event in server.events(job.id) if due else ():
                if event["text"] in due:
                    from_s = due[event["text"]]
                    for begin, end in outages:
                        if begin <= from_s + 1 and end > from_s:
                            from_s = end
                    late.append(event["at_s"] - from_s)
                if event["sequence"] == last:
                    break
        if not late:
            return "no notice was due"
        late.sort()
        return (f"{len(late)} notices took effect: the median {late[len(late) // 2]:.3f} s, the last {late[-1]:.3f} s after it "
                f"was due or its outage was over; {sum(s > 1 for s in late)} more than 1 s")
