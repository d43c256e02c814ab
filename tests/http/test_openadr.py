#!/usr/bin/env python3
"""`perseus site follow` against a utility's server that behaves, and one that does not.  usage: test_openadr.py PERSEUS

With PERSEUS_OPENADR_SPEC, the path of the OpenADR 3.1 OpenAPI file, and the program `prism` (or its path in
PERSEUS_PRISM), Prism also checks every request against the specification; without them, that part is skipped."""

import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import served
from served import Server, until
from vtn import CLIENT, SECRET, Vtn, event, stamp

PROGRAM = ""
LATER = {"of_a_later_server": [1]}  # a member that this program does not know


class Receiver:
    """In place of the server that keeps the site: a hall with rows, and every site that it got."""

    def __init__(self):
        self.got, self.statuses = [], []
        self.proof = []  # entries of the proof
        self.lists = {"jobs": [], "policies": []}
        self.site = {"name": "site", "pue": 1.25, **LATER,
                     "domains": [{"name": "row 1", **LATER}, {"name": "hall 1", "constant_w": 7.5, **LATER}]}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                if self.path.startswith("/v1/site/proof?"):
                    return self.reply(200, {"step_s": 60, "entries": outer.proof_of(self.path)})
                for name, rows in outer.lists.items():
                    if self.path.startswith(f"/v1/{name}?"):
                        return self.reply(200, {name: rows})
                self.reply(200 if self.path == "/v1/site" else 404, outer.site)

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.statuses.pop(0) if outer.statuses else 200
                if status == 200 and self.path == "/v1/site":
                    outer.site = json.loads(body)
                    outer.got.append(outer.steps())
                self.reply(status, {})

            def reply(self, status, content):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def proof_of(self, path):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        begin, end = float(query["from"][0]) // 60 * 60, float(query["until"][0])
        return [entry for entry in self.proof if begin <= entry["start_s"] < end and query["domain"] == ["hall 1"]]

    def draw(self, begin, end, **figures):
        """Minutes of the proof."""
        self.proof += [{"start_s": start, "domain": "hall 1", "readings": 12, **figures} for start in range(begin, end, 60)]

    def steps(self):
        return self.site["domains"][1].get("limits")

    def limits(self):
        return [step.get("limit_w") for step in self.got[-1]] if self.got else None

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class FollowCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.secret = pathlib.Path(self.folder.name) / "secret"
        self.secret.write_text(SECRET + "\n")
        self.vtn, self.receiver, self.process = Vtn(), Receiver(), None

    def tearDown(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process:
            self.reader.join(10)
            self.process.stdout.close()
            self.process.stderr.close()
        self.vtn.close()
        self.receiver.close()
        self.folder.cleanup()

    def arguments(self, *more, url=None):
        return [
            *(PROGRAM, "site", "follow", "--openadr", url or self.vtn.url, "--client-id", CLIENT),
            *("--client-secret-file", str(self.secret), "--server", self.receiver.url, *more),
            *(() if "--domain" in more else ("--domain", "hall 1")),
        ]

    def once(self, *more, url=None):
        return subprocess.run(self.arguments("--once", *more, url=url), capture_output=True, text=True, timeout=120)

    def follow(self, *more):
        self.process = subprocess.Popen(
            self.arguments("--poll", "1", *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()


class Follows(FollowCase):
    def test_a_limit_and_what_comes_after_it(self):
        begin = int(time.time()) + 3600
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], begin))
        self.vtn.add(event("subscription", "IMPORT_CAPACITY_SUBSCRIPTION", [900.0], duration="P9999Y"))
        before = self.receiver.site
        done = self.once("--program", "limits")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.receiver.limits(), [900e3, 500e3, 900e3])
        self.assertEqual([step.get("from_s") for step in self.receiver.steps()], [None, begin, begin + 3600])
        row, hall = before["domains"]
        self.assertEqual(self.receiver.site, {**before, "domains": [row, {**hall, "limits": self.receiver.steps()}]})

    def test_policies_of_a_later_server(self):
        self.receiver.lists = {
            "jobs": [{"id": "one", "state": "deployed"}],
            "policies": [{"job": "other", "kind": "max_slowdown", "max_slowdown": {"slowdown": 1.2, **LATER}}],
        }
        self.vtn.add(event("dear", "PRICE", [250.0], int(time.time()) + 3600, payloadDescriptors=[
            {"objectType": "EVENT_PAYLOAD_DESCRIPTOR", "payloadType": "PRICE", "units": "MWH", "currency": "EUR"}]))
        done = self.once("--price-above", "0.2", "--slowdown", "10%")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sent PRICE to 1 job:", done.stderr)

    def test_a_domain_that_is_not_there(self):
        done = self.once("--domain", "hall 2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("domain 'hall 2' is not in the server's site; allowed: row 1, hall 1", done.stderr)

    def test_changes_are_sent_as_they_come(self):
        self.follow()
        until(lambda: self.receiver.limits() == [None])
        number = self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0]))
        until(lambda: self.receiver.limits() == [500e3, None])
        self.vtn.change(number, event("limit", "IMPORT_CAPACITY_LIMIT", [400.0], duration="P9999Y"))
        until(lambda: self.receiver.limits() == [400e3])
        del self.vtn.events[number]
        until(lambda: self.receiver.limits() == [None])
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(60), 0)
        self.assertEqual(len(self.receiver.got), 4)

    def test_levels_and_alerts_have_configured_watts(self):
        self.vtn.add(event("shed", "SIMPLE", [2]))
        self.vtn.add(event("alert", "ALERT_GRID_EMERGENCY", ["The grid is under emergency conditions"], duration="PT30M"))
        done = self.once("--level", "2=600000", "--emergency", "300000", "--default-limit", "1000000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.receiver.limits(), [300e3, 600e3, 1e6])

    def test_what_cannot_be_followed_is_one_line(self):
        self.vtn.add(event("shed", "SIMPLE", [2]))
        self.vtn.add(event("price", "PRICE", [0.17]))
        self.vtn.add(event("dearer", "PRICE", [0.27]))
        self.vtn.events["bad"] = self.vtn.made("bad", "EVENT", {"intervals": 7})
        done = self.once()
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("payload SIMPLE is not followed: no watts for level 2 are configured; allowed: with --level 2=W",
                      done.stderr)
        self.assertEqual(done.stderr.count("payload PRICE is not followed"), 1)
        self.assertIn("event bad cannot be read", done.stderr)

    def test_a_server_of_openadr_3_0(self):
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        self.vtn.add(event("theirs", "IMPORT_CAPACITY_LIMIT", [600.0]))
        self.vtn.events["event-2"]["targets"] = [{"type": "GROUP", "values": ["group-1"]}]
        self.vtn.filters = False
        self.vtn.has_auth_server = False
        done = self.once()
        self.assertEqual(done.returncode, 69)
        self.assertIn("OpenADR 3.0; allowed: OpenADR 3.1, or its token endpoint with --token-url", done.stderr)
        done = self.once("--token-url", self.vtn.url + "/auth/token")
        self.assertEqual(done.returncode, 65)
        self.assertIn("event event-2 (theirs) cannot be read", done.stderr)
        self.assertIn("objects are targets of OpenADR 3.0", done.stderr)
        self.assertEqual(self.receiver.limits(), [500e3])

    def test_whole_objects_of_each_version(self):
        """Every member that a version's definition has for programs and events, null where it allows that, and its now."""
        of_3_1 = {"targets": ["group-1"], "duration": "PT2H"}
        none_of_3_1 = {"targets": None, "duration": None}
        asks = {"payloadType": "USAGE", "readingType": "DIRECT_READ", "units": "KWH", "targets": None, "aggregate": False,
                "startInterval": -1, "numIntervals": -1, "historical": True, "frequency": -1, "repeat": 1}
        asks_3_1 = {**asks, "reportIntervals": "INTERVALS"}
        program = {"programName": "limits", "intervalPeriod": {"start": stamp(0), "duration": "PT1H", "randomizeStart": "PT0S"},
                   "programDescriptions": [{"URL": "https://utility.example/limits"}], "targets": None,
                   "payloadDescriptors": [{"objectType": "EVENT_PAYLOAD_DESCRIPTOR", "payloadType": "IMPORT_CAPACITY_LIMIT",
                                           "units": "KW", "currency": None}]}
        for version, now, with_members, with_nulls, reports, attributes in [
            ("3.0.1", "0000-00-00", {"targets": None}, {"targets": None}, asks, {"programLongName": "Limits", "retailerName": "U", "country": "US"}),
            ("3.1.0", "0000-01-01T00:00:00Z", of_3_1, none_of_3_1, asks_3_1, {"attributes": [{"type": "PROGRAM_LONG_NAME", "values": ["Limits"]}]}),
            ("3.1.1", "0001-01-01T00:00:00Z", of_3_1, none_of_3_1, asks_3_1, {"attributes": [{"type": "PROGRAM_LONG_NAME", "values": ["Limits"]}]}),
        ]:
            with self.subTest(version):
                self.vtn.base = "/openadr3/" + version
                self.vtn.has_auth_server = self.vtn.filters = version != "3.0.1"
                self.vtn.objects = {"program-1": self.vtn.made("program-1", "PROGRAM", {**program, **attributes})}
                self.vtn.events, self.receiver.got = {}, []
                begin = int(time.time()) + 7200
                self.vtn.add({
                    "programID": "program-1", "eventName": "peak", "priority": 0, "reportDescriptors": [reports],
                    "payloadDescriptors": [{"objectType": "EVENT_PAYLOAD_DESCRIPTOR", "payloadType": "IMPORT_CAPACITY_LIMIT",
                                            "units": "KW", "currency": None}],
                    "intervalPeriod": {"start": stamp(begin), "duration": "PT1H", "randomizeStart": "PT0S"},
                    "intervals": [{"id": 0, "payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [500.0]}]},
                                  {"id": 7, "intervalPeriod": {"start": stamp(begin + 3600), "duration": "PT1H"},
                                   "payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [600]}]}], **with_members})
                self.vtn.add({
                    "programID": "program-1", "eventName": None, "priority": None, "reportDescriptors": None, "payloadDescriptors": None,
                    "intervalPeriod": {"start": now, "duration": "PT1H", "randomizeStart": "PT0S"},
                    "intervals": [{"id": 0, "payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [700.0]}]}], **with_nulls})
                url = self.vtn.url + self.vtn.base
                token = () if self.vtn.has_auth_server else ("--token-url", url + "/auth/token")
                done = self.once("--program", "limits", "--target", "group-1", *token, url=url)
                self.assertEqual((done.returncode, self.receiver.limits()), (0, [700e3, None, 500e3, 600e3, None]), done.stderr)
                self.assertEqual([step.get("from_s") for step in self.receiver.steps()][2:], [begin, begin + 3600, begin + 7200])

    def test_targets_and_small_pages(self):
        self.vtn.page = 2
        for watts in range(7):
            self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0 + watts], targets=["group-1"]))
        self.assertEqual(self.once().returncode, 0)
        self.assertEqual(self.receiver.limits(), [None])
        self.assertEqual(self.once("--target", "group-1").returncode, 0)
        self.assertEqual(self.receiver.limits()[0], 500e3)

    def test_dry_run_sends_nothing(self):
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        done = self.once("--dry-run")
        self.assertEqual([step["limit_w"] for step in json.loads(done.stdout)], [500e3])
        self.assertIn("would send: 500000 W from now", done.stderr)
        self.assertEqual(self.receiver.got, [])

    def test_a_level_is_named_once(self):
        done = self.once("--dry-run", "--level", "1=5", "--level", "1=6")
        self.assertEqual(done.returncode, 64)
        self.assertIn("--level: '1=6'; allowed: each level once", done.stderr)


class Misbehaves(FollowCase):
    def test_tokens_that_expire_are_renewed(self):
        self.vtn.expires_s = 1
        self.follow()
        until(lambda: self.receiver.limits() == [None])
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        until(lambda: self.receiver.limits() == [500e3])
        self.assertGreater(len(self.vtn.tokens), 1)

    def test_a_token_that_is_revoked_is_replaced_at_once(self):
        self.follow()
        until(lambda: self.receiver.limits() == [None])
        self.vtn.tokens.clear()
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        until(lambda: self.receiver.limits() == [500e3])
        self.assertNotIn("401", "".join(self.log))

    def test_wrong_credentials(self):
        self.secret.write_text("wrong\n")
        done = self.once()
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("invalid_client", done.stderr)
        self.assertNotIn("wrong", done.stderr)
        self.assertEqual(self.receiver.got, [])

    def test_faults_change_no_limit(self):
        number = self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        self.follow()
        until(lambda: self.receiver.limits() == [500e3])
        faults = [
            lambda handler: handler.reply(500, {"status": 500, "detail": "database"}),
            lambda handler: handler.reply(429, {"status": 429}),
            lambda handler: handler.reply(200, None, '[{"id": "event-1", "intervals": ['),
            lambda handler: handler.reply(200, {"not": "a list"}),
            lambda handler: handler.connection.close(),
        ]
        for count, fault in enumerate(faults, 1):
            self.vtn.faults.append(fault)
            until(lambda: sum("answered again" in line for line in self.log) == count)
        # An empty list, though the event is there: its own call finds it.
        self.vtn.faults.extend([lambda handler: handler.reply(200, list(self.vtn.objects.values())),
                                lambda handler: handler.reply(200, []), lambda handler: handler.reply(200, [])])
        until(lambda: not self.vtn.faults)
        calls = len(self.vtn.calls)
        until(lambda: ("GET", f"/events/{number}") in self.vtn.calls)
        until(lambda: len(self.vtn.calls) > calls + 4)
        self.assertEqual([steps[0]["limit_w"] for steps in self.receiver.got], [500e3])

    def test_retry_after_is_honored(self):
        self.follow()
        until(lambda: self.receiver.limits() == [None])
        number = self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        for count, status in enumerate((429, 503), 1):
            refused = []

            def refuse(handler, status=status, refused=refused):
                refused.append(time.monotonic())
                handler.reply(status, {"status": status}, headers=[("Retry-After", "4")])
            self.vtn.faults.append(refuse)
            until(lambda: sum("answered again" in line for line in self.log) == count)
            # Without it the first retry comes after a second, of --poll 1; three quarters of that with luck.
            self.assertGreaterEqual(time.monotonic() - refused[0], 4)
        del self.vtn.events[number]

    def test_plain_http_to_another_machine_is_refused(self):
        done = self.once(url="http://192.0.2.1")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("allowed: https", done.stderr)

    def test_a_token_endpoint_without_tls_elsewhere_is_refused(self):
        self.vtn.public_url = "http://192.0.2.1"
        done = self.once()
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("readable on the network", done.stderr)

    def test_a_program_that_is_not_there(self):
        done = self.once("--program", "other")
        self.assertEqual(done.returncode, 69)
        self.assertIn("program 'other' is not there; allowed: one of the 1 that this client may read: limits", done.stderr)


def asks(payload, **others):
    return {"payloadType": payload, **others}


class Reports(FollowCase):
    """Two half hours that ended a while ago, the second one metered."""

    def setUp(self):
        super().setUp()
        self.begin = int(time.time()) // 60 * 60 - 7200
        self.receiver.site.update(pue=1.25, supply_efficiency=0.8)
        # 1,000 W of accelerators planned, 500 of them of jobs that report 600: 1,100 W, 100 more than the baseline.
        plan = {"metered_baseline_w": 2e6, "baseline_w": 1000, "planned_w": 1000, "planned_of_reporting_w": 500,
                "reported_w": 600}
        self.receiver.draw(self.begin, self.begin + 1800, **plan)
        self.receiver.draw(self.begin + 1800, self.begin + 3600, metered_w=4e6, **plan)

    def ask(self, *descriptors, start=None, intervals=2, **others):
        return self.vtn.add(event("hours", "PRICE", [0.1], start or self.begin, "PT30M", reportDescriptors=descriptors,
                                  **{"intervals": [{"id": 7 + k, "payloads": []} for k in range(intervals)], **others}))

    def made(self):
        return [report for report in self.vtn.reports.values()]

    def values(self, report):
        return [[payload["values"][0] for payload in interval["payloads"]]
                for interval in report["resources"][0]["intervals"]]

    def test_usage_and_demand(self):
        number = self.ask(asks("USAGE", units="KWH"), asks("DEMAND", units="MW", readingType="MEAN"),
                          asks("STORAGE_CHARGE_LEVEL"), asks("USAGE", historical=False), asks("USAGE", repeat="often"))
        done = self.once("--no-reports")
        self.assertEqual((done.returncode, self.made()), (0, []), done.stderr)
        done = self.once()
        self.assertEqual(done.returncode, 0, done.stderr)
        usage, demand = self.made()
        self.assertEqual((usage["eventID"], usage["clientName"]), (number, CLIENT))
        self.assertEqual(usage["resources"][0]["resourceName"], "hall 1")
        self.assertEqual(usage["payloadDescriptors"], [
            {"objectType": "REPORT_PAYLOAD_DESCRIPTOR", "payloadType": "USAGE", "readingType": "ESTIMATED", "units": "KWH"}])
        self.assertEqual([interval["id"] for interval in usage["resources"][0]["intervals"]], [7, 8])
        # 1.25 / 0.8 of the 100 W are at the meter.
        self.assertEqual(self.values(usage), [[1000.07812, "ESTIMATED"], [2000, "OK"]])
        self.assertEqual(self.values(demand), [[2.00015625, "ESTIMATED"], [4, "OK"]])
        for reason in ("payload STORAGE_CHARGE_LEVEL; allowed: USAGE, DEMAND", "it is about the future",
                       "reportDescriptors[4].repeat"):
            self.assertIn(reason, done.stderr)

    def test_a_restart_reports_nothing_twice(self):
        self.ask(asks("USAGE", frequency=1, numIntervals=1, repeat=-1))
        for _ in range(2):
            self.assertEqual(self.once("--client-name", "ven 7").returncode, 0)
        # Only the last due one, as OpenADR wants it for the past.
        [report] = self.made()
        self.assertEqual(report["clientName"], "ven 7")
        self.assertEqual(self.values(report), [[2000, "OK"]])
        self.assertEqual(len([call for call in self.vtn.calls if call[0] != "GET" and "/reports" in call[1]]), 1)

    def test_an_event_that_has_changed_is_reported_again(self):
        number = self.ask(asks("USAGE"))
        self.assertEqual(self.once().returncode, 0)
        self.vtn.events[number]["intervals"][0]["id"] = 3
        self.assertEqual(self.once().returncode, 0)
        [report] = self.made()
        self.assertEqual([interval["id"] for interval in report["resources"][0]["intervals"]], [3, 8])

    def test_refusals_stop_no_limit(self):
        self.ask(asks("USAGE"))
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        refusals = {
            "403 Forbidden: no": [lambda handler: handler.reply(403, {"title": "no"})],
            "409 Conflict: twice": [lambda handler: self.vtn.give_list(handler, [], {}),
                                    lambda handler: handler.reply(409, {"title": "twice"})],
            "GET /reports:1:": [lambda handler: handler.reply(200, None, "[{")],
        }
        for text, faults in refusals.items():
            self.vtn.report_faults = faults
            done = self.once()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count(text), 1)
            self.assertEqual(self.receiver.limits(), [500e3])
        self.assertEqual(self.made(), [])

    def test_without_the_scope_limits_are_followed(self):
        self.vtn.refused_scopes = {"write_reports"}
        self.ask(asks("USAGE"))
        self.follow()
        until(lambda: any("not granted: write_reports" in line for line in self.log))
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        until(lambda: self.receiver.limits() == [500e3])
        until(lambda: sum(call[1].startswith("/events?") for call in self.vtn.calls) > 12)
        self.assertEqual(sum("not granted" in line for line in self.log), 1)

    def test_each_token_has_the_scope_that_was_asked_for(self):
        self.vtn.refused_scopes = {"read_targets", "write_reports"}
        self.ask(asks("USAGE"))
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        done = self.once("--scope", "read_all", "--report-scope", "report_all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.receiver.limits(), [500e3])
        self.assertNotIn("not granted", done.stderr)

    def test_powers_that_are_not_known_are_missing(self):
        self.receiver.proof.clear()
        self.ask(asks("USAGE"))
        done = self.once()
        self.assertIn("without any power: the server has none of that time", done.stderr)
        [report] = self.made()
        self.assertEqual(self.values(report), [["MISSING"], ["MISSING"]])


class Registers(FollowCase):
    def names(self):
        return ([row["venName"] for row in self.vtn.registered["/vens"]],
                [(row["resourceName"], row["venID"]) for row in self.vtn.registered["/resources"]])

    def test_once(self):
        for _ in range(2):
            done = self.once("--ven", "data center 7")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.names(), (["data center 7"], [("hall 1", "VEN-0")]))

    def test_a_conflict_is_like_finding_it(self):
        self.vtn.registration_faults = ["409"]
        done = self.once("--ven", "data center 7")
        self.assertEqual(self.names(), (["data center 7"], [("hall 1", "VEN-0")]), done.stderr)

    def test_refusals_stop_no_limit(self):
        self.vtn.registration_faults = [lambda handler: handler.reply(403, {"title": "no"})] * 3
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        self.follow("--ven", "data center 7")
        until(lambda: self.receiver.limits() == [500e3])
        until(lambda: self.names() == (["data center 7"], [("hall 1", "VEN-0")]))
        until(lambda: any("registered" in line for line in self.log))
        self.assertEqual(sum("POST /vens: 403 Forbidden: no" in line for line in self.log), 1)


class Certificates:
    """A certification authority, and certificates that it issues."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name
        self.ca = self.folder / f"{name}.pem"
        self.openssl("req", "-x509", "-nodes", "-days", "2", "-keyout", self.folder / f"{name}.key", "-out", self.ca,
                     "-subj", f"/CN={name}", "-newkey", "rsa:2048")

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    def server(self, name):
        """The context of a server whose certificate has that subject alternative name, such as IP:127.0.0.1."""
        key, asked, made, names = (self.folder / f"server.{part}" for part in ("key", "csr", "pem", "names"))
        names.write_text(f"subjectAltName={name}\n")
        self.openssl("req", "-nodes", "-newkey", "rsa:2048", "-keyout", key, "-out", asked, "-subj", "/CN=vtn")
        self.openssl("x509", "-req", "-in", asked, "-CA", self.ca, "-CAkey", self.folder / f"{self.name}.key", "-days", "2",
                     "-CAcreateserial", "-extfile", names, "-out", made)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made, key)
        return context


@unittest.skipUnless(shutil.which("openssl"), "needs openssl, to make certificates")
class Tls(FollowCase):
    """Over https the client's secret goes only to the server whose name the certificate has."""

    def serve(self, name):
        self.authority = Certificates(self.folder.name, "utility")
        self.vtn.close()
        self.vtn = Vtn(tls=self.authority.server(name))
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))

    def refused(self, *more, url=None):
        done = self.once(*more, url=url)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("certificate", done.stderr)
        self.assertEqual((self.vtn.calls, self.receiver.got), ([], []))

    def test_a_server_of_the_authority_is_followed(self):
        self.serve("IP:127.0.0.1")
        done = self.once("--openadr-ca", str(self.authority.ca))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.receiver.limits(), [500e3])

    def test_another_name_is_refused(self):
        self.serve("DNS:vtn.example")
        self.refused("--openadr-ca", str(self.authority.ca))
        self.refused("--openadr-ca", str(self.authority.ca), url=self.vtn.url.replace("127.0.0.1", "localhost"))

    def test_an_unknown_authority_is_refused(self):
        self.serve("IP:127.0.0.1")
        self.refused()
        self.refused("--openadr-ca", str(Certificates(self.folder.name, "other").ca))

    def test_a_token_endpoint_of_another_authority_is_refused(self):
        self.serve("IP:127.0.0.1")
        other = Vtn(tls=Certificates(self.folder.name, "other").server("IP:127.0.0.1"))
        self.addCleanup(other.close)
        self.vtn.public_url = other.url
        done = self.once("--openadr-ca", str(self.authority.ca))
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("certificate", done.stderr)
        self.assertEqual(other.calls, [])


class OnARealServer(FollowCase):
    def setUp(self):
        super().setUp()
        self.real = Server(self.folder.name + "/data")
        self.receiver.close()
        self.receiver.url = self.real.url
        self.assertEqual(self.real.ask("PUT", "/v1/site", {"domains": [{"name": "hall 1"}]})[0], 200)

    def tearDown(self):
        self.real.stop(signal.SIGKILL)
        super().tearDown()


class UnreadAlert(OnARealServer):
    """What cannot be read."""

    def alerts(self):
        return self.real.ask("GET", "/v1/alerts")[1]["alerts"]

    def test_an_alert_until_it_can_be_read(self):
        good = event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y")
        number = self.vtn.add(good)
        self.follow()
        until(lambda: any("sent: 500000 W" in line for line in self.log))
        self.vtn.change(number, event("limit", "IMPORT_CAPACITY_LIMIT", ["off"], duration="P9999Y"))
        [alert] = until(self.alerts, 60)
        self.assertEqual((alert["alert"], alert["domain"]), ("limits_unread", "hall 1"))
        self.assertEqual(alert["text"], f"event {number} (limit): payload IMPORT_CAPACITY_LIMIT is not followed: a value is "
                                        "not a number; allowed: numbers; the least limit that was known holds")
        hall = self.real.ask("GET", "/v1/site")[1]["domains"][0]
        self.assertEqual([step["limit_w"] for step in hall["limits"]], [500e3])
        self.vtn.change(number, good)
        until(lambda: "limits_unread" not in self.real.ask("GET", "/v1/site")[1]["domains"][0], 60)


class Signals(OnARealServer):
    """Prices and emissions."""

    def setUp(self):
        super().setUp()
        self.jobs = [self.real.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 1, "tp": 1}, "labels": {"team": team}})[1]["job"]
                     for team in ("a", "a", "b")]
        self.hour = int(time.time()) + 3600

    def policies(self):
        rows = self.real.ask("GET", "/v1/policies")[1]["policies"]
        return {row["job"]: row["max_slowdown"] for row in rows if row["kind"] == "max_slowdown"}

    def price(self, name, value, start):
        return self.vtn.add(event(name, "PRICE", [value], start, payloadDescriptors=[
            {"objectType": "EVENT_PAYLOAD_DESCRIPTOR", "payloadType": "PRICE", "units": "MWH", "currency": "EUR"}]))

    def test_prices_become_the_signal_of_jobs(self):
        others = {"slowdown": 1.2, "threshold": 3, "signal": [{"from_s": 5, "value": 1}], "unit": "EUR/MWh"}
        path = f"/v1/jobs/{self.jobs[0]}/policies/max_slowdown"
        self.assertEqual(self.real.ask("PUT", path, others)[0], 200)
        arguments = ("--price-above", "0.2", "--slowdown", "10%", "--selector", "team=a")
        self.assertEqual(self.once(*arguments).returncode, 0)
        self.assertEqual(list(self.policies()), self.jobs[:1])  # there are no prices yet
        self.price("dear", 250.0, self.hour)
        self.price("cheap", -40.0, self.hour + 3600)
        done = self.once(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sent PRICE to 1 job:", done.stderr)
        self.assertNotIn("not followed", done.stderr)
        policies = self.policies()
        self.assertEqual(set(policies), set(self.jobs[:2]))
        self.assertEqual(policies[self.jobs[0]]["unit"], "EUR/MWh")  # an operator's
        ours = policies[self.jobs[1]]
        self.assertEqual((ours["slowdown"], ours["threshold"]), (1.1, 0.2))
        self.assertEqual([sample["value"] for sample in ours["signal"]], [0.2, 0.25, -0.04, 0.2])
        self.assertEqual([sample["from_s"] for sample in ours["signal"][1:]], [self.hour, self.hour + 3600, self.hour + 7200])
        self.assertNotIn("sent PRICE", self.once(*arguments).stderr)  # nothing has changed

    def test_emissions_and_new_jobs(self):
        number = self.vtn.add(event("dirty", "GHG", [420.0], duration="P9999Y", payloadDescriptors=None))
        self.follow("--ghg-above", "300", "--slowdown", "5%")
        until(lambda: set(self.policies()) == set(self.jobs))
        self.jobs.append(self.real.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 1, "tp": 1}})[1]["job"])
        until(lambda: set(self.policies()) == set(self.jobs))
        self.vtn.change(number, event("dirty", "GHG", ["much"], payloadDescriptors=None))
        until(lambda: all(policy["signal"][-1]["value"] == 300 for policy in self.policies().values()))
        until(lambda: any("payload GHG is not followed: a value is not a number" in line for line in self.log))

    def test_which_options_go_together(self):
        for more, text in ((("--price-above", "1"), "--slowdown"), (("--price-above", "1", "--ghg-above", "1", "--slowdown", "1%"), "excludes")):
            done = self.once(*more)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(text, done.stderr)


def prism():
    program = os.environ.get("PERSEUS_PRISM") or shutil.which("prism")
    spec = os.environ.get("PERSEUS_OPENADR_SPEC", "")
    return (program, spec) if program and os.path.exists(spec) else None


@unittest.skipUnless(prism(), "needs prism, and the OpenADR 3.1 OpenAPI file in PERSEUS_OPENADR_SPEC")
class Specification(FollowCase):
    """Prism answers 4xx to a request, and reports an answer, that the specification does not allow."""

    def served(self, *words, errors=("--errors",)):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program, spec = prism()
        process = subprocess.Popen([program, *words[:1], spec, *words[1:], "--port", str(port), *errors],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.prism_log = []
        threading.Thread(target=lambda: self.prism_log.extend(process.stdout), daemon=True).start()
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        until(lambda: any("Prism is listening" in line for line in self.prism_log), 60)
        return f"http://127.0.0.1:{port}"

    def test_a_mock_takes_every_request(self):
        url = self.served("mock")
        done = self.once("--token-url", url + "/auth/token", "--target", "group-1", url=url)
        self.assertEqual(done.returncode, 0, done.stderr + "".join(self.prism_log))
        self.assertEqual(len(self.receiver.got), 1)
        self.assertNotIn("Request did not pass", "".join(self.prism_log))

    def test_a_mock_takes_the_registration(self):
        # Not with --errors: no answer can be right by the specification, which wants two values of its objectType.
        url = self.served("mock", errors=())
        done = self.once("--token-url", url + "/auth/token", "--ven", "new", url=url)
        log = "".join(self.prism_log)
        self.assertIn("registered", done.stderr + log)
        for call in ("get /vens", "post /vens", "get /resources", "post /resources"):
            self.assertIn(call, log)
        self.assertNotIn("Violation: request", log)

    def test_a_proxy_finds_nothing_wrong(self):
        url = self.served("proxy", self.vtn.url)
        self.vtn.public_url = url
        self.vtn.add(event("limit", "IMPORT_CAPACITY_LIMIT", [500.0], duration="P9999Y"))
        begin = int(time.time()) // 60 * 60 - 7200
        self.vtn.add(event("usage", "PRICE", [0.1], begin, reportDescriptors=[{"payloadType": "USAGE"}]))
        self.receiver.draw(begin, begin + 3600, metered_w=2e6)
        done = self.once("--program", "limits", url=url)
        self.assertEqual(done.returncode, 0, done.stderr + "".join(self.prism_log))
        self.assertEqual(self.receiver.limits(), [500e3])
        [report] = self.vtn.reports.values()
        report["resources"][0]["intervals"][0]["id"] = 1  # so that it is replaced
        done = self.once("--program", "limits", url=url)
        self.assertEqual(report["reportName"], self.vtn.reports["report-1"]["reportName"])
        self.assertIn(("PUT", "/reports/report-1"), self.vtn.calls)
        self.assertNotIn("did not pass", "".join(self.prism_log))


if __name__ == "__main__":
    PROGRAM = served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
