#!/usr/bin/env python3
"""Measures the dashboard's page of a site in Chromium: JOBS jobs on a real server, under a site, 20 rows and 400 racks.

usage: bench/site_page.py PERSEUS [JOBS [UPDATES [PAGE.html...]]]

Each job has four ranks that have registered and hold a plan; they keep no connection. PAGE.html, of another version (what a server sends for
/), is shown in place of the page in PERSEUS; several after each other, on the same server. Chromium, the server and this program share the machine. Prints
a table in Markdown for each page:

  first picture   from the request for the page until domains and jobs of the site are drawn
  quiet           updates while nothing changes: each one is a request, its answer, and what the page draws then
  falling         the same while the site's limit falls by 1 % before each update, which changes the grants of most jobs
  main thread     processor time of the page's main thread per update
  longest task    of the main thread, by the clock
  answer          bytes of an update; and, without a browser, the time of a GET /v1/site/power with all rows, and of one that asks for what
                  has changed since the last one
"""

import asyncio
import base64
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/http"), str(ROOT / "tests/browser")]
import served  # noqa: E402
from chromium import Browser  # noqa: E402
from workload import PP, profile_body  # noqa: E402

ROWS, RACKS = 20, 400
CONNECTIONS = 64
LEASE_S = 3600
DRAWN = "document.querySelector('.domain-table tbody tr') && document.querySelector('.gives-table tbody a')"
WATCH = """
  window.tasks = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask', buffered: true });
"""


async def call(stream, address, method, path, body=None):
    reader, writer = stream
    content = b"" if body is None else json.dumps(body).encode()
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
                 .encode() + content)
    head = await reader.readuntil(b"\r\n\r\n")
    answer = await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
    assert head.split(None, 2)[1] == b"200", (method, path, head, answer)
    return json.loads(answer)


async def each(address, works):
    """Runs works (functions of a connection) on a few connections."""
    host, port = address.rsplit(":", 1)
    left = iter(works)

    async def worker():
        stream = await asyncio.open_connection(host, int(port), limit=1 << 22)
        for work in left:
            await work(stream)
        stream[1].close()

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


def start_jobs(server, jobs):
    address = server.address
    tiers = (0, 0.5, 0.75, 0.9)

    def job(number):
        async def start(stream):
            name = f"run-{number:04d}"
            made = await call(stream, address, "POST", "/v1/jobs", {
                "name": name, "degrees": {"dp": 1, "pp": PP, "tp": 1}, "profile": "sample", "least_rate": tiers[number % len(tiers)],
                "domain": f"rack {number % RACKS:03d}"})
            for rank in range(PP):
                await call(stream, address, "POST", f"/v1/jobs/{made['job']}/ranks", {
                    "rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "epoch": 1, "host": name, "keeps_budgets": True})
            ids.append(made["job"])
        return start

    def hold(job_id, rank):
        async def follow(stream):
            have = have_of.get((job_id, rank), 0)
            plan = await call(stream, address, "GET", f"/v1/jobs/{job_id}/ranks/{rank}/plan?have={have}&epoch=1&wait_s={0 if have else 60}")
            have_of[job_id, rank] = plan.get("version", have)
        return follow

    ids, have_of = [], {}
    asyncio.run(each(address, [job(number) for number in range(jobs)]))

    def confirm():
        asyncio.run(each(address, [hold(job_id, rank) for job_id in ids for rank in range(PP)]))

    return confirm


def set_limits(server, watts):
    """The site's limit, twice its part for a row and four times for a rack, of which some bind."""
    domains = [{"name": "site", "limits": [{"limit_w": watts}]}]
    domains += [{"name": f"row {row:02d}", "parent": "site", "limits": [{"limit_w": (0.95 + 0.01 * row) * watts / ROWS}]} for row in range(ROWS)]
    domains += [{"name": f"rack {rack:03d}", "parent": f"row {rack % ROWS:02d}", "limits": [{"limit_w": (0.95 + 0.001 * rack) * watts / RACKS}]}
                for rack in range(RACKS)]
    body = {"dwell_s": 1, "lease_s": LEASE_S, "domains": domains}
    while True:
        status, answer = server.ask("PUT", "/v1/site", body)
        if status != 503:  # the store is busy with the grants of the last fall
            break
        time.sleep(1)
    assert status == 200, answer


def power(server):
    status, answer = server.ask("GET", "/v1/site/power")
    assert status == 200, answer
    return answer


class Page:
    def __init__(self, url, file):
        self.url = url
        self.browser = Browser()
        self.browser.look()
        self.browser.call("Performance.enable", timeDomain="threadTicks")
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.page = file and base64.b64encode(pathlib.Path(file).read_bytes()).decode()
        if self.page:
            self.browser.call("Fetch.enable", patterns=[{"urlPattern": url, "requestStage": "Request"}])

    def open(self):
        """Time until the site is drawn."""
        browser = self.browser
        browser.events.clear()
        began = time.monotonic()
        if self.page:
            browser.next_id += 1  # navigate does not answer before the request is fulfilled
            self.send("Page.navigate", url=f"{self.url}#/site")
            paused = browser.wait_for("Fetch.requestPaused")["params"]["requestId"]
            browser.call("Fetch.fulfillRequest", requestId=paused, responseCode=200, body=self.page,
                         responseHeaders=[{"name": "content-type", "value": "text/html; charset=utf-8"}])
        else:
            browser.call("Page.navigate", url=f"{self.url}#/site")
        browser.wait_until(DRAWN)
        return time.monotonic() - began

    def send(self, method, **params):
        message = {"id": self.browser.next_id, "method": method, "params": params, "sessionId": self.browser.session}
        os.write(self.browser.commands, json.dumps(message).encode() + b"\0")

    def metrics(self):
        return {one["name"]: one["value"] for one in self.browser.call("Performance.getMetrics")["metrics"]}

    def answers(self):
        """Bytes of each finished answer of GET /v1/site/power since the last call."""
        asked = {event["params"]["requestId"] for event in self.browser.events if event.get("method") == "Network.requestWillBeSent"
                 and "/v1/site/power" in event["params"]["request"]["url"]}
        done = [event["params"] for event in self.browser.events if event.get("method") == "Network.loadingFinished"]
        return [one["encodedDataLength"] for one in done if one["requestId"] in asked]

    def updates(self, wanted, change=lambda: None):
        """Main-thread time per update, the longest task, both in ms, and bytes of an answer."""
        browser = self.browser
        browser.run("tasks.length = 0")
        browser.events.clear()
        before = self.metrics()
        seen = 0
        while seen < wanted:
            change()
            while len(self.answers()) == seen:
                time.sleep(0.2)  # without frames that only the measurement asks for
                browser.run("0")
            seen = len(self.answers())
        time.sleep(0.5)
        after = self.metrics()
        thread_ms = 1000 * (after["TaskDuration"] - before["TaskDuration"]) / seen
        return thread_ms, browser.run("Math.max(0, ...tasks)"), statistics.median(self.answers())


def table(rows):
    for number, row in enumerate(rows):
        print("| " + " | ".join(row) + " |")
        if number == 0:
            print("|" + " --- |" * len(row))


def get_ms(server, path, times=5):
    taken = []
    for _ in range(times):
        began = time.monotonic()
        assert server.ask("GET", path, raw=True)[0] == 200
        taken.append(1000 * (time.monotonic() - began))
    return statistics.median(taken)


def measure(server, file, wanted, title, fall):
    page = Page(server.url.rstrip("/") + "/", file)
    try:
        first_s = page.open()
        task = page.browser.run("Math.max(0, ...tasks)")
        quiet = page.updates(wanted)
        falling = page.updates(wanted, fall)
    finally:
        page.browser.close()
    table([[title, "first picture", "quiet", "falling"],
           ["first picture", f"{first_s:.2f} s", "", ""],
           ["main thread per update", "", *(f"{of[0]:.0f} ms" for of in (quiet, falling))],
           ["longest task", *(f"{ms:.0f} ms" if ms > 50 else "below 50 ms" for ms in (task, quiet[1], falling[1]))],
           ["answer of an update", "", *(f"{of[2] / 1000:,.1f} kB" for of in (quiet, falling))]])


def run(server, jobs, wanted, files):
    assert server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0] == 200
    began = time.monotonic()
    confirm = start_jobs(server, jobs)
    confirm()
    set_limits(server, 1e9)
    most = power(server)["domains"][0]["counted_w"]
    limit = 0.9 * most
    set_limits(server, limit)
    for _ in range(3):
        time.sleep(2)
        confirm()
    shown = power(server)
    granted = sum(job["state"] == "granted" for job in shown["jobs"])
    print(f"{granted:,} of {jobs:,} jobs have a grant after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    def fall():
        nonlocal limit
        limit *= 0.99
        set_limits(server, limit)

    title = f"{jobs:,} jobs, {1 + ROWS + RACKS} domains"
    for file in files or [None]:
        measure(server, file, wanted, title + (f", {pathlib.Path(file).name}" if file else ""), fall)
        print(flush=True)
    version = server.ask("GET", "/v1/site/power?since=")[1].get("version", "")
    print(f"GET /v1/site/power: {get_ms(server, '/v1/site/power'):.0f} ms with all rows, "
          f"{get_ms(server, '/v1/site/power?since=' + version):.0f} ms for what has changed")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    served.PROGRAM = sys.argv[1]
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    wanted = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    with tempfile.TemporaryDirectory() as folder:
        server = served.Server(folder)
        try:
            run(server, jobs, wanted, sys.argv[4:])
        finally:
            server.stop()


if __name__ == "__main__":
    main()
