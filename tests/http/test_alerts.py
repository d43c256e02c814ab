#!/usr/bin/env python3
"""Alerts on a real `perseus serve`: what raises and resolves them, and who may read them.

usage: test_alerts.py PERSEUS [unittest's arguments]
"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import postgres
import served
from served import Server
from test_jobs import JobCase
from training import Training

FAST = ("--alert-after-s", "0.2")
NO_CONTROL = {"control": "none", "control_reason": "no permission to set clocks"}


class Receiver:
    """Receives messages; answers with the next of `statuses` and then with 200; None: not before the test's end."""

    def __init__(self, *statuses):
        self.requests, statuses, self.over = [], list(statuses), threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), json.loads(body)))
                status = statuses.pop(0) if statuses else 200
                if status is None:
                    outer.over.wait()
                self.send_response(status or 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/hook?key=private"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()

    def states(self):
        return [body["status"] for _, _, body in self.requests]


class AlertCase(JobCase):
    def start(self, *settings):
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data, *FAST, *settings)
        self.push()

    def trained(self, name):
        training = Training(self.server, self.job(profile="sample", name=name))
        training.register()
        return training

    def lose_control(self, training, epoch, rank=1, **control):
        training.ask("POST", "/ranks", training.registration(rank, epoch=epoch, **(control or NO_CONTROL)))

    def wait_for(self, get):
        end = time.monotonic() + 120
        while not (found := get()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        return found

    def alerts(self, query="", token=None):
        status, answer = self.server.ask("GET", "/v1/alerts" + query, token=token)
        self.assertEqual(status, 200, answer)
        return answer


class Alerts(AlertCase):
    def test_an_alert_is_raised_shown_and_resolved(self):
        self.start()
        training = self.trained("gpt")
        job = training.view()["id"]
        self.assertEqual(self.alerts(), {"alerts": [], "resolved": []})
        self.lose_control(training, 2)
        [alert] = self.wait_for(lambda: self.alerts()["alerts"])
        self.assertEqual({name: alert[name] for name in ("alert", "state", "job", "name", "text")},
                         {"alert": "no_permission", "state": "raised", "job": job, "name": "gpt",
                          "text": "1 of its ranks cannot set its clock: no permission to set clocks"})
        self.assertGreaterEqual(alert["raised_at_s"], alert["since_s"])
        metrics = self.server.ask("GET", "/metrics", raw=True)[1].decode()
        self.assertIn('perseus_alerts{alert="no_permission"} 1\n', metrics)
        self.assertIn('perseus_alerts{alert="over_power"} 0\n', metrics)
        table = self.server.cli("alert", "list", "--job", "gpt", "--kind", "no_permission").stdout
        self.assertRegex(table, r"ALERT +JOB +NAME +DOMAIN +REASON +RAISED\nno_permission +\S+ +gpt +- +1 of its ranks cannot")
        listed = json.loads(self.server.cli("alert", "list", "-o", "json").stdout)["alerts"]
        self.assertEqual([(one["job"], one["text"]) for one in listed], [(job, alert["text"])])
        self.lose_control(training, 3, control=None)  # another process of the rank, which sets clocks
        resolved = self.wait_for(lambda: self.alerts()["resolved"])
        self.assertEqual([one["state"] for one in resolved], ["resolved"])
        self.assertEqual(self.alerts()["alerts"], [])
        self.wait_for(lambda: any("alert no_permission resolved" in line for line in self.server.log))
        self.assertEqual(len([line for line in self.server.log if "alert no_permission raised" in line]), 1)

    def test_after_a_restart_the_alert_is_there_again_and_an_ended_job_has_none(self):
        self.start()
        training = self.trained("gpt")
        self.lose_control(training, 2)
        self.wait_for(lambda: self.alerts()["alerts"])
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data, *FAST)
        training.server = self.server
        training.view()  # the job is in memory again
        self.wait_for(lambda: self.alerts()["alerts"])
        training.ask("POST", "/finish")
        self.wait_for(lambda: not self.alerts()["alerts"])

    def test_pages_filters_and_mistakes(self):
        self.start()
        trainings = [self.trained(f"run-{k}") for k in range(3)]
        for training in trainings:
            self.lose_control(training, 2)
        self.wait_for(lambda: len(self.alerts()["alerts"]) == 3)
        names, after = [], ""
        while after is not None:
            page = self.alerts(f"?limit=1{after and '&after=' + after}")
            self.assertEqual("resolved" in page, after == "")
            names += [alert["name"] for alert in page["alerts"]]
            after = page.get("next")
        self.assertEqual(sorted(names), ["run-0", "run-1", "run-2"])
        job = trainings[1].view()["id"]
        self.assertEqual([alert["job"] for alert in self.alerts(f"?job={job}")["alerts"]], [job])
        self.assertEqual(self.alerts("?alert=over_power")["alerts"], [])
        for query, wrong in (("?limit=0", "limit"), ("?limit=1001", "limit"), ("?alert=none", "alert"), ("?after=x", "after"),
                             ("?page=1", "page")):
            status, answer = self.server.ask("GET", "/v1/alerts" + query)
            self.assertEqual((status, wrong in answer["detail"]), (400, True), answer)

    def test_a_job_s_token_reads_its_own_alerts_only(self):
        self.start()
        first = self.trained("first")
        self.lose_control(first, 2)
        self.wait_for(lambda: self.alerts()["alerts"])
        root = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, token=self.server.first_secret())[1]["token"]
        mine = self.server.ask("POST", "/v1/tokens", {"role": "job", "team": "vision"}, token=root)[1]["token"]
        reader = self.server.ask("POST", "/v1/tokens", {"role": "read-only"}, token=root)[1]["token"]
        self.assertEqual(self.server.ask("GET", "/v1/alerts")[0], 401)
        self.assertEqual(len(self.alerts(token=reader)["alerts"]), 1)
        self.assertEqual(self.alerts(token=mine), {"alerts": [], "resolved": []})
        status, job = self.server.ask("POST", "/v1/jobs", {"name": "own", "degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample"}, token=mine)
        self.assertEqual(status, 200, job)
        registration = {**first.registration(0), **NO_CONTROL}
        status, answer = self.server.ask("POST", f"/v1/jobs/{job['job']}/ranks", registration, token=mine)
        self.assertEqual(status, 200, answer)
        self.wait_for(lambda: [alert["name"] for alert in self.alerts(token=mine)["alerts"]] == ["own"])
        self.assertEqual(len(self.alerts(token=root)["alerts"]), 2)


class Webhook(AlertCase):
    def receiver(self, *statuses):
        receiver = Receiver(*statuses)
        self.addCleanup(receiver.close)
        return receiver

    def serve(self, *settings):
        return subprocess.run([served.PROGRAM, "serve", "--listen", "127.0.0.1:0", *settings], capture_output=True, text=True)

    def metric(self, name):
        text = self.server.ask("GET", "/metrics", raw=True)[1].decode()
        return float(re.search(rf"^perseus_alert_webhook_{name} (\S+)$", text, re.M)[1])

    def test_the_receiver_gets_the_begin_and_the_end_of_an_alert(self):
        receiver = self.receiver()
        token = pathlib.Path(self.folder.name) / "token"
        token.write_text("receiver-secret\n")
        self.start("--alert-webhook", receiver.url, "--alert-webhook-token", str(token))
        training = self.trained("gpt")
        job = training.view()["id"]
        self.lose_control(training, 2)
        self.wait_for(lambda: receiver.states() == ["firing"])
        path, headers, body = receiver.requests[0]
        self.assertEqual((path, headers["Authorization"], headers["Content-Type"]),
                         ("/hook?key=private", "Bearer receiver-secret", "application/json"))
        [alert] = body["alerts"]
        self.assertEqual((body["version"], alert["status"], alert["endsAt"]), ("4", "firing", "0001-01-01T00:00:00Z"))
        self.assertEqual(alert["labels"], {"alertname": "PerseusNoPermission", "alert": "no_permission", "training_job": job,
                                           "name": "gpt", "severity": "warning"})
        self.assertEqual(alert["annotations"]["description"],
                         "1 of its ranks cannot set its clock: no permission to set clocks")
        self.lose_control(training, 3, control=None)
        self.wait_for(lambda: receiver.states() == ["firing", "resolved"])
        end = receiver.requests[1][2]
        self.assertEqual(end["groupKey"], body["groupKey"])
        self.assertGreater(end["alerts"][0]["endsAt"], alert["startsAt"])
        self.wait_for(lambda: self.metric("sent_total") == 2)
        self.assertEqual([self.metric(name) for name in ("failed_total", "dropped_total", "waiting")], [0, 0, 0])
        self.assertFalse([line for line in self.server.log if "private" in line or "receiver-secret" in line])

    def test_a_receiver_that_does_not_answer_delays_neither_the_server_nor_its_end(self):
        receiver = self.receiver(*[None] * 50)  # a call that has waited for 10 s is repeated
        self.start("--alert-webhook", receiver.url)
        training = self.trained("gpt")
        self.lose_control(training, 2)
        self.wait_for(receiver.states)
        other = self.trained("other")
        self.assertTrue(other.poll(0, wait_s=60))  # planned meanwhile
        self.assertEqual(self.metric("sent_total"), 0)
        self.assertEqual(self.metric("waiting"), 1)
        tries = len(receiver.requests)
        self.wait_for(lambda: len(receiver.requests) > tries)  # of the answer's 10 s none is over
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        self.assertLess(time.monotonic() - began, 9.5, "it does not wait for the answer, which has 10 s")

    def test_a_receiver_that_is_configured_later_gets_the_raised_alerts(self):
        config = pathlib.Path(self.folder.name) / "perseus.toml"
        config.write_text("")
        self.start("--config", str(config))
        training = self.trained("gpt")
        self.lose_control(training, 2)
        self.wait_for(lambda: self.alerts()["alerts"])
        receiver = self.receiver()
        config.write_text(f"alert_webhook = '{receiver.url}'\n")
        self.server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: receiver.states() == ["firing"])
        self.wait_for(lambda: any("changed: alert_webhook" in line for line in self.server.log))

    def test_wrong_settings_are_refused_without_their_secrets(self):
        empty = pathlib.Path(self.folder.name) / "empty"
        empty.write_text("\n")
        for settings, why in ((("--alert-webhook", "https://any:private@host/"), "contains a user"),
                              (("--alert-webhook", "host/private"), "is not a URL"),
                              (("--alert-webhook-token", str(empty)), "does not contain a token"),
                              (("--alert-webhook-token", str(empty) + "-none"), "empty-none")):
            refused = self.serve("--data", self.folder.name + "/other", *settings)
            self.assertEqual(refused.returncode, 64, refused.stderr)
            self.assertIn(why, refused.stderr)
            self.assertNotIn("private", refused.stderr)
        self.assertFalse(os.path.exists(self.folder.name + "/other"))
        printed = self.serve("--alert-webhook", "https://host/private", "--print-config").stdout
        self.assertIn('alert_webhook = "********"', printed)

    @unittest.skipUnless(postgres.programs(), "no PostgreSQL")
    def test_a_standby_that_takes_over_sends_the_end_of_an_alert(self):
        database = postgres.Postgres()
        self.addCleanup(database.close)
        receiver = self.receiver()
        settings = (*FAST, "--alert-webhook", receiver.url)
        servers = [Server(database.url, *settings), Server(database.url, *settings, stands_by=True)]
        for server in servers:
            self.addCleanup(lambda server=server: server.process.poll() is None and server.stop(signal.SIGKILL))
        self.server.stop(signal.SIGKILL)
        self.server = servers[0]
        self.push()
        training = self.trained("gpt")
        self.lose_control(training, 2)
        self.wait_for(receiver.states)
        servers[0].stop()  # after everything that it had to send
        self.server = training.server = servers[1]
        self.wait_for(lambda: self.server.ask("GET", "/readyz")[0] == 200)
        training.view()  # it has the job in memory, and raises the alert again
        self.wait_for(lambda: self.alerts()["alerts"])
        self.lose_control(training, 3, control=None)
        self.wait_for(lambda: receiver.states()[-1] == "resolved")
        self.server.stop()
        self.assertIn(receiver.states(), (["firing", "resolved"], ["firing", "firing", "resolved"]), "again if it still held")


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main()
