"""A small server with the part of /v1 that the dashboard reads (web/src/dashboard/api.js), controlled by a test.

Frontier and iterations come from a report's data (perseus_report_sample), so what is drawn is consistent. Run as a
program it shows a few jobs until it is stopped.   usage: standin_server.py SAMPLE_FOLDER [PORT]
"""

import bisect
import http.server
import json
import os
import queue
import re
import sys
import threading
import time
import urllib.parse


def report_data(folder):
    with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
        html = file.read()
    return json.loads(re.search(r'id="perseus-data">(.*?)</script>', html, re.S).group(1))


class Job:
    """One job of `dp` pipelines that all have the sample's frontier."""

    def __init__(self, data, job, name, dp, created_s):
        self.data, self.id, self.name, self.dp, self.created_s = data, job, name, dp, created_s
        self.state, self.reason, self.profiling = "registered", None, None
        self.registered = self.waiting = 0
        self.version, self.deployed_s = 0, None
        self.stragglers, self.policies, self.events = [], [], []
        self.factors, self.total = {}, None
        self.slowest = None  # (seconds, sentence) of a policy
        self.history = []  # buckets of its history, minutes
        self.listed = {}  # more members of its row in the list
        self.possible = {}  # more members of its savings
        self.doubts = []  # of its profile
        self.module = False  # its ranks measure modules, not GPUs alone
        self.site = None  # how it stands under the site's limits

    @property
    def world_size(self):
        return self.dp * len(self.data["accelerators"])

    def plan(self):
        """(T', T_opt, reason) under the stragglers in force and the policy."""
        summary = self.data["summary"]
        in_force = [s for s in self.stragglers if s["state"] == "in_force"]
        if not in_force and not self.slowest:
            return None, summary["t_min_s"], "no straggler: the fastest plan"
        if self.slowest and not in_force:
            return None, self.slowest[0], self.slowest[1]
        worst = max(in_force, key=lambda s: s["degree"])
        t_straggler = worst["degree"] * summary["fastest"]["time_s"]
        t_opt = min(t_straggler, summary["t_star_s"])
        why = f"{worst['target']} is {worst['degree']:g}× slower: T′ = {t_straggler:.4g} s"
        if t_opt < t_straggler:
            why += f", and nothing is saved beyond T* = {t_opt:.4g} s"
        return t_straggler, t_opt, why

    def point_for(self, deadline_s):
        times = self.data["points"]["time_s"]  # slowest first
        at = bisect.bisect_left([-t for t in times], -deadline_s)
        return min(at, len(times) - 1)

    def row(self):
        row = {"id": self.id, "name": self.name, "state": self.state, "created_at_s": self.created_s, "ranks": self.world_size,
               "ranks_registered": self.registered,
               "pipelines": self.dp, "stragglers": len(self.stragglers), "saved_pct": None, "iteration_time_s": None}
        if self.version:
            now = self.per_iteration()
            row["saved_pct"] = 100 * (1 - now["energy_j"] / now["all_max_energy_j"])
            row["iteration_time_s"] = now["time_s"]
        return row | self.listed

    def per_iteration(self):
        t_straggler, t_opt, _ = self.plan()
        points, summary = self.data["points"], self.data["summary"]
        point = self.point_for(t_opt)
        waiting_w = sum(self.data["accelerators"]) * self.data["blocking_power_w"]

        def waited(time_s, energy_j):
            return self.dp * (energy_j + waiting_w * max(0, (t_straggler or 0) - time_s))

        most = summary["all_max"]
        return {"time_s": max(t_straggler or 0, points["time_s"][point]), "energy_j": waited(points["time_s"][point], points["energy_j"][point]),
                "all_max_time_s": max(most["time_s"], t_straggler or 0), "all_max_energy_j": waited(most["time_s"], most["energy_j"])}

    def detail(self):
        out = self.row() | {
            "reason": self.reason, "now_s": time.time(), "sequence": len(self.events), "schedule": "1f1b",
            "degrees": {"dp": self.dp, "pp": len(self.data["accelerators"]), "tp": 1}, "microbatches": 24,
            "world_size": self.world_size, "ranks": {"expected": self.world_size, "registered": self.registered, "waiting": self.waiting},
            "facts": {"accelerator": "NVIDIA A100-SXM4-40GB", "microbatch_size": "4"}, "profiling": self.profiling, "plan": None, "savings": None,
            "stragglers": self.stragglers, "policies": self.policies,
            "pipelines": [{"pipeline": p, "straggler": False, "point": None} for p in range(self.dp)]}
        if self.module:
            out["facts"]["power"] = "of the module, CPU included"
        if self.doubts:
            out["profile_doubts"] = self.doubts
        if self.site:
            out["site"] = self.site
        if self.version:
            t_straggler, t_opt, why = self.plan()
            summary, points = self.data["summary"], self.data["points"]
            slow = {s["pipeline"] for s in self.stragglers if s["state"] == "in_force"}
            count = len(points["time_s"])
            out["plan"] = {"version": self.version, "from_iteration": 100 * self.version, "deployed_at_s": self.deployed_s,
                           "t_min_s": summary["t_min_s"], "t_star_s": summary["t_star_s"], "t_straggler_s": t_straggler,
                           "t_opt_s": t_opt, "reason": why}
            for p in out["pipelines"]:
                p["straggler"] = p["pipeline"] in slow
                p["point"] = count - 1 if p["straggler"] else self.point_for(t_opt)
                p.update(points=count, time_s=points["time_s"][p["point"]], energy_j=points["energy_j"][p["point"]], frontier="f1")
            counted = {"total": self.total} if self.total else {"no_total_because": "no reports of iterations"}
            out["savings"] = {"per_iteration": self.per_iteration(), **counted, "factors": self.factors, **self.possible}
        return out

    def frontier(self):
        waiting_w = sum(self.data["accelerators"]) * self.data["blocking_power_w"]
        summary = {k: v for k, v in self.data["summary"].items() if k != "straggler"}
        return {"format": 1, "waiting_w": waiting_w, "points": self.data["points"], "bound": self.data["bound"], "summary": summary}

    def timeline(self, point):
        plans = self.data["plans"]
        nearest = min(range(len(plans["point"])), key=lambda k: abs(plans["point"][k] - point))
        kept = ("format", "blocking_power_w", "accelerators", "types", "computations", "dependencies")
        return {k: self.data[k] for k in kept} | {"runs": plans["runs"][nearest]}


class Cluster:
    """The server's state. It outlives the server, as a store does. The test changes it, requests read it."""

    def __init__(self, folder):
        self.data = report_data(folder)
        with open(os.path.join(folder, "dashboard.html"), "rb") as file:
            self.page = file.read()
        self.jobs, self.token, self.page_rows, self.factors = {}, None, 50, {}
        self.site_versions, self.site_rows_sent = [], 0  # answers of GET /v1/site/power; changed rows in those with `since`
        self.alerts, self.resolved, self.hosts = [], [], []
        self.history = []  # of all jobs, minutes; or the status that refuses it
        self.site, self.proof, self.forecast = None, [], []  # SitePower, entries of both; see fill_site()
        self.lock = threading.RLock()
        self.listeners = {}  # queue -> job or None for all
        self.asked = []  # (path, Last-Event-ID) of every request
        self.prefix = ""  # of all paths, as behind a proxy that strips it

    def say(self, job, kind, text, by="server"):
        event = {"job": job.id, "sequence": len(job.events) + 1, "kind": kind, "at_s": time.time(), "text": text, "by": by}
        job.events.append(event)
        for listener, wanted in self.listeners.items():
            if wanted in (None, job.id):
                listener.put(event)

    def list_page(self, after):
        """The list from the row after that one; pages are short, so that tests follow some."""
        rows = [job.row() for job in reversed(self.jobs.values())]
        begin = next((k + 1 for k, row in enumerate(rows) if row["id"] == after), 0)
        page = {"server": {"now_s": time.time()} | ({"site": True} if self.site else {}), "factors": self.factors, "jobs": rows[begin:begin + self.page_rows]}
        if begin + self.page_rows < len(rows):
            page["next"] = page["jobs"][-1]["id"]
        return page

    def site_since(self, since):
        """The site with what has changed since an answer with that version."""
        now = {"domains": {row["name"]: dict(row) for row in self.site["domains"]}, "jobs": {row["job"]: dict(row) for row in self.site["jobs"]}}
        self.site_versions.append(now)
        before = self.site_versions[int(since)] if since.isdigit() and int(since) < len(self.site_versions) else None
        answer = self.site | {"version": str(len(self.site_versions) - 1)}
        if before is None or list(before["domains"]) != list(now["domains"]):
            return answer
        changed = {part: [row for name, row in now[part].items() if before[part].get(name) != row] for part in now}
        self.site_rows_sent += sum(map(len, changed.values()))
        return answer | {"since": since, **changed, "gone": [job for job in before["jobs"] if job not in now["jobs"]]}

    def alert_page(self, begin):
        """Pages are short, so that tests follow some."""
        page = {"alerts": self.alerts[begin:begin + self.page_rows]} | ({} if begin else {"resolved": self.resolved})
        return page | ({"next": str(begin + self.page_rows)} if begin + self.page_rows < len(self.alerts) else {})

    def host_page(self, begin):
        page = {"hosts": self.hosts[begin:begin + self.page_rows]}
        return page | ({"next": str(begin + self.page_rows)} if begin + self.page_rows < len(self.hosts) else {})

    def event_page(self, begin):
        """Of events beyond ranks' own, the last one first."""
        events = sorted((event | {"name": job.name} for job in self.jobs.values() for event in job.events
                         if event["kind"] != "rank_registered"), key=lambda event: -event["at_s"])
        page = {"events": events[begin:begin + self.page_rows]}
        return page | ({"next": str(begin + self.page_rows)} if begin + self.page_rows < len(events) else {})

    def alert(self, job, kind, text, age_s=600):
        with self.lock:
            now_s = time.time()
            self.alerts = [{"alert": kind, "state": "raised", "job": job.id, "name": job.name, "text": text, "since_s": now_s - age_s,
                            "raised_at_s": now_s - age_s / 2}, *self.alerts]

    def resolve(self, job):
        with self.lock:
            gone = [alert | {"state": "resolved", "resolved_at_s": time.time()} for alert in self.alerts if alert["job"] == job.id]
            self.alerts = [alert for alert in self.alerts if alert["job"] != job.id]
            self.resolved = [*gone, *self.resolved]

    def remove(self, job):
        with self.lock:
            del self.jobs[job.id]
            self.say(job, "job_removed", "removed")

    def add(self, name, dp=4):
        with self.lock:
            job = Job(self.data, f"j_{len(self.jobs):04d}{name.encode().hex()[:8]}", name, dp, time.time())
            self.jobs[job.id] = job
            self.say(job, "job_registered", f"{name} registered: {job.world_size} ranks")
            return job

    def change(self, job, kind, text, **members):
        with self.lock:
            for name, value in members.items():
                setattr(job, name, value)
            self.say(job, kind, text)

    def deploy(self, job, text="plan in force"):
        with self.lock:
            job.state, job.registered, job.profiling = "deployed", job.world_size, None
            job.version += 1
            job.deployed_s = time.time()
            self.say(job, "plan_deployed", f"version {job.version}: {text}")

    def straggler(self, job, pipeline, degree, delay_s=0.0):
        with self.lock:
            notice = {"id": f"s{len(job.events)}", "target": f"pipeline {pipeline}", "pipeline": pipeline, "degree": degree,
                      "state": "pending" if delay_s else "in_force", "at_s": time.time() + delay_s, "origin": "notice"}
            job.stragglers = [*job.stragglers, notice]
            self.say(job, "straggler_notice", f"pipeline {pipeline} will be {degree:g}× slower" if delay_s
                     else f"pipeline {pipeline} is {degree:g}× slower")
            if not delay_s:
                self.deploy(job, job.plan()[2])
            return notice["id"]

    def withdraw(self, job, straggler):
        with self.lock:
            job.stragglers = [s for s in job.stragglers if s["id"] != straggler]
            self.say(job, "straggler_withdrawn", "back to normal")
            if job.version:
                self.deploy(job, job.plan()[2])


class Server:
    """The cluster on a port of the loopback interface; 0 finds a free one."""

    def __init__(self, cluster, port=0):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                try:
                    server.answer(self)
                except ConnectionError:
                    pass  # the page has gone

        server = self
        self.cluster = cluster
        self.closing = threading.Event()
        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.connections = set()
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def close(self):
        """Acts like kill -9: connections end in the middle of an answer."""
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(2)
            except OSError:
                pass
        self.thread.join()

    def answer(self, request):
        self.connections.add(request.connection)
        cluster = self.cluster
        inside = request.path.startswith(cluster.prefix + "/")
        url = urllib.parse.urlsplit(request.path.removeprefix(cluster.prefix) if inside else "/outside")
        query = dict(urllib.parse.parse_qsl(url.query))
        cluster.asked.append((url.path, request.headers.get("last-event-id")))

        def send(status, body, kind="application/json"):
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            request.send_response(status)
            for name, value in (("content-type", kind), ("content-length", str(len(text))), ("cache-control", "no-cache")):
                request.send_header(name, value)
            request.end_headers()
            request.wfile.write(text)

        def refuse(status, message):
            send(status, {"detail": message})

        if url.path == "/":
            return send(200, cluster.page, "text/html; charset=utf-8")
        if cluster.token and request.headers.get("authorization") != f"Bearer {cluster.token}":
            return refuse(401, "this needs a valid token")
        if url.path == "/v1/jobs":
            with cluster.lock:
                return send(200, cluster.list_page(query.get("after")))
        if url.path == "/v1/alerts":
            with cluster.lock:
                return send(200, cluster.alert_page(int(query.get("after", 0))))
        if url.path == "/v1/hosts":
            with cluster.lock:
                return send(200, cluster.host_page(int(query.get("after", 0))))
        if url.path == "/v1/events/recent":
            with cluster.lock:
                return send(200, cluster.event_page(int(query.get("after", 0))))
        if url.path == "/v1/history":
            if not isinstance(cluster.history, list):
                return refuse(cluster.history, "no history for you")
            with cluster.lock:
                step_s = {"minute": 60, "hour": 3600, "day": 86400}[query.get("step", "minute")]
                shown = [bucket for bucket in cluster.history if bucket["start_s"] >= float(query.get("from", 0)) and step_s == 60]
                return send(200, {"step_s": step_s, "buckets": shown})
        if url.path.startswith("/v1/site/") and cluster.site:
            with cluster.lock:
                return self.answer_site(cluster, url.path, query, request, send)
        if url.path == "/v1/job_changes":
            return self.stream(request, None, None)
        match = re.fullmatch(r"/v1/jobs/([^/]+)(?:/(\w+))?", url.path)
        job = cluster.jobs.get(urllib.parse.unquote(match[1])) if match else None
        if not job:
            return refuse(404, f"there is no {url.path}")
        if match[2] == "events":
            return self.stream(request, job, int(request.headers.get("last-event-id") or query.get("after", len(job.events))))
        with cluster.lock:
            if match[2] is None:
                return send(200, job.detail())
            if match[2] == "history":
                from_s = float(query.get("from", 0))
                step_s = {"minute": 60, "hour": 3600, "day": 86400}[query.get("step", "minute")]
                shown = [bucket for bucket in job.history if bucket["start_s"] >= from_s and step_s == 60]
                return send(200, {"step_s": step_s, "buckets": shown})
            if not job.version:
                return refuse(404, "there is no plan yet")
            if match[2] == "frontier":
                return send(200, job.frontier())
            return send(200, job.timeline(int(query.get("point", job.point_for(job.plan()[1])))))

    @staticmethod
    def answer_site(cluster, path, query, request, send):
        if path == "/v1/site/power":
            return send(200, cluster.site_since(query.get("since", "")) | {"now_s": time.time()})
        if path == "/v1/site/forecast":
            until_s = time.time() + 3600 * float(query["hours"])
            return send(200, {"now_s": time.time(), "until_s": until_s, "entries": [
                e for e in cluster.forecast if e["start_s"] < until_s and query.get("domain", e["domain"]) == e["domain"]]})
        step_s = {"minute": 60, "hour": 3600, "day": 86400}[query.get("step", "minute")]
        shown = [entry for entry in cluster.proof if float(query.get("from", 0)) <= entry["start_s"] < float(query.get("until", 1e11))
                 and query.get("domain", entry["domain"]) == entry["domain"] and step_s == 60]
        if "text/csv" in request.headers.get("accept", ""):
            lines = ["start_s,domain,limit_w", *(f"{e['start_s']},{e['domain']},{e.get('limit_w', '')}" for e in shown)]
            return send(200, ("\n".join(lines) + "\n").encode(), "text/csv; charset=utf-8")
        return send(200, {"step_s": step_s, "entries": shown})

    def stream(self, request, job, after):
        cluster, mine = self.cluster, queue.Queue()
        with cluster.lock:
            cluster.listeners[mine] = job.id if job else None
            for event in job.events[after:] if job else []:
                mine.put(event)
        request.close_connection = True
        request.send_response(200)
        request.send_header("content-type", "text/event-stream")
        request.send_header("connection", "close")
        request.end_headers()
        try:
            request.wfile.write(b": hello\n\n")
            while not self.closing.is_set():
                try:
                    event = mine.get(timeout=0.1)
                except queue.Empty:
                    continue
                text = f"id: {event['sequence']}\nevent: {event['kind']}\ndata: {json.dumps(event)}"
                if not job:
                    with cluster.lock:
                        changed = cluster.jobs.get(event["job"])
                        change = {"jobs": [changed.row()], "removed": []} if changed else {"jobs": [], "removed": [event["job"]]}
                    text = f"event: jobs\ndata: {json.dumps(change)}"
                request.wfile.write(f"{text}\n\n".encode())
                request.wfile.flush()
        except OSError:
            pass  # the page has gone
        finally:
            with cluster.lock:
                del cluster.listeners[mine]


def fill(cluster, jobs):
    """Many jobs of two teams on three kinds of GPU, of which every fifth measures, and every seventh reports nothing."""
    states = ("deployed", "deployed", "deployed", "profiling", "finished", "registered", "failed")
    for k in range(jobs):
        job = cluster.add(f"run-{k:04d}", 1 + k % 8)
        job.state, job.registered, job.created_s = states[k % 7], job.world_size, time.time() - 60 * (jobs - k)
        job.listed = {"accelerator": ("NVIDIA H100", "NVIDIA A100", "NVIDIA A40")[k % 3],
                      "labels": {"team": "vision" if k % 2 else "language"}}
        if job.state == "deployed" and k % 7 < 2:
            job.listed |= {"iteration_time_s": 1 + k % 10, "saved_pct": 5 + k % 10, "saved_j": 3.6e6 * (1 + k % 100),
                           "power_w": 900.0, "all_max_power_w": 1000.0, "power_measured": k % 5 == 0, "planned_power_w": 880.0,
                           "estimated_saved_j": 0 if k % 5 == 0 else 3.6e6}


def fill_site(cluster, jobs=12, minutes=180, racks=0):
    """A hall with two rows, whose limit falls in an hour, with a past of `minutes` minutes; `racks`: in row b, with limits, without jobs."""
    now_s = time.time()
    rows = ["row a", "row b"]
    running = [{"job": f"j_site{k:04d}", "name": f"run-{k:02d}", "domain": rows[k % 2], "least_rate": (0, 0.75, 0.9)[k % 3], "priority": 1 + k % 2,
                "accelerators": 16, "state": "granted", "granted_w": 4800 + 10 * k, "counted_w": 4800 + 10 * k, "reported_w": 4700 + 10 * k,
                "planned_w": 4750 + 10 * k, "baseline_w": 5400, "rate": 0.97 - 0.002 * k, "rate_lost": 0.03 + 0.002 * k} for k in range(jobs)]
    if running:
        running[-1] |= {"state": "fixed", "reason": "the client of a rank does not know budgets", "baseline_w": running[-1]["planned_w"]}
        for member in ("granted_w", "rate", "rate_lost"):
            del running[-1][member]

    def domain(name, parent, limit_w, price=0.0, **more):
        of = [job for job in running if not parent or job["domain"] == name]
        total = {member: sum(job.get(member, 0) for job in of) for member in ("counted_w", "reported_w", "planned_w", "baseline_w")}
        granted = sum(job.get("granted_w", job["counted_w"]) for job in of)
        known = [job for job in of if "rate_lost" in job]
        return {"name": name, **({"parent": parent} if parent else {}), **({"limit_w": limit_w, "metered_limit_w": 1.3 * limit_w} if limit_w else {}), **total,
                "granted_w": granted, **({"price": price} if price else {}),
                **({"rate_lost": sum(job["rate_lost"] for job in known) / len(known)} if known else {}), **more}

    cluster.site = {"objective": "slowdown", "jobs": running,
                    "domains": [domain("hall", None, 60_000, 0.0012, metered_w=76_500), domain("row a", "hall", None), domain("row b", "hall", 31_000),
                                 *(domain(f"rack {k:03d}", "row b", 5000 + k, 0.0001 * (k % 5)) for k in range(racks))]}
    begin_s = int(now_s) // 60 * 60
    cluster.proof = [{"start_s": begin_s - 60 * k, "domain": name, "readings": 12, "limit_w": share * (70_000 if k > 60 else 60_000),
                      "metered_limit_w": 1.3 * share * (70_000 if k > 60 else 60_000), "baseline_w": share * 66_000, "metered_baseline_w": share * 86_000,
                      "planned_w": share * (65_000 if k > 60 else 58_000), "counted_w": share * (66_500 if k > 60 else 59_000),
                      "reported_w": share * (64_000 + 40 * (k % 17) if k > 60 else 57_200 + 40 * (k % 17)), "planned_of_reporting_w": share * 58_000,
                      **({"metered_w": share * (84_000 if k > 60 else 76_000)} if name == "hall" else {}), "missing_w": 0,
                      **({"over_s": 5} if k == 60 else {}), "rate_lost": 0.01 if k > 60 else 0.034,
                      "tiers": [{"least_rate": 0, "rate_lost": 0.05}, {"least_rate": 0.9, "rate_lost": 0.02}]}
                     for k in range(minutes, 0, -1) for name, share in (("hall", 1), ("row b", 0.5))]
    cluster.forecast = [{"start_s": now_s - 20 if k == 0 else now_s + 2400 * k, "domain": name, "limit_w": share * limit, "metered_limit_w": 1.3 * share * limit,
                         "expected_w": share * min(limit, 65_000), "price": 0.001, "rate_lost": 1 - min(1, limit / 66_000)}
                        for k, limit in enumerate((60_000, 45_000, 70_000)) for name, share in (("hall", 1), ("row b", 0.5))]


def populate(cluster):
    """A handful of jobs in every state."""
    old = cluster.add("bert-1.3b, yesterday's", 2)
    cluster.deploy(old)
    cluster.change(old, "job_finished", "finished", state="finished", created_s=time.time() - 90_000)
    failed = cluster.add("t5-3b", 2)
    cluster.change(failed, "characterization_failed", "characterization failed", state="failed",
                   reason="characterization failed: stage 3 has no measurement of 'backward' at 1410 MHz; everything runs at maximum clock")
    waiting = cluster.add("bloom-7.1b", 8)
    cluster.change(waiting, "rank_registered", "12 ranks registered", registered=12)
    profiling = cluster.add("wide-resnet-1.5b", 4)
    cluster.change(profiling, "profile", "profiling", state="profiling", registered=profiling.world_size,
                   profiling={"windows": 4, "iterations": 12, "uncertainty_pct": 1.34, "waiting_for": [4, 5, 7]})
    busy = cluster.add("gpt3-xl", 4)
    cluster.change(busy, "characterization_started", "characterization started", state="characterizing", registered=busy.world_size)
    live = cluster.add("gpt3-6.7b on A100, lr sweep 3", 8)
    live.factors = {"price_per_kwh": 0.25, "currency": "EUR", "carbon_g_per_kwh": 380}
    live.total = {"iterations": 12_000, "saved_j": 2.1e8, "all_max_energy_j": 1.52e9}
    cluster.deploy(live, live.plan()[2])
    cluster.straggler(live, 2, 1.12)
    cluster.straggler(live, 5, 1.3, 600)
    return live


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    shown = Cluster(sys.argv[1])
    populate(shown)
    running = Server(shown, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(running.url, flush=True)
    try:
        running.thread.join()
    except KeyboardInterrupt:
        running.close()
