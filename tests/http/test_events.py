#!/usr/bin/env python3
"""Events on a real `perseus serve`: who caused them, in a job's log and in the list over all jobs.

usage: test_events.py PERSEUS [unittest's arguments]
"""

import json
import signal
import sys
import unittest
import urllib.parse

import served
from served import Server, until
from test_jobs import JobCase
from training import BLOCKING_W, Training

PIPELINE = {"schedule": "1f1b", "microbatches": 6, "blocking_power_w": BLOCKING_W}


class Events(JobCase):
    def recent(self, query="", token=None):
        status, answer = self.server.ask("GET", "/v1/events/recent" + query, token=token)
        self.assertEqual(status, 200, answer)
        return answer

    def tokens(self):
        """Tokens of an operator, of a job, and of a reader without name."""
        first = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure", "name": "olga"}, token=self.server.first_secret())[1]["token"]
        alice = self.server.ask("POST", "/v1/tokens", {"role": "job", "name": "alice"}, token=first)[1]["token"]
        nameless = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, token=first)[1]
        return first, alice, nameless

    def change(self, method, path, body, token):
        status, answer = self.server.ask(method, path, body, token=token)
        self.assertEqual(status, 200, answer)
        return answer

    def of_log(self, job, count):
        stream, events = self.server.events(job), []
        while len(events) < count:
            events.append(next(stream))
        stream.close()
        return events

    def test_without_tokens_the_author_is_a_client(self):
        self.push()
        training = Training(self.server, self.job(profile="sample", name="gpt"))
        training.register()
        self.assertTrue(training.poll(0, wait_s=60))
        by = {event["kind"]: event["by"] for event in reversed(self.of_log(training.view()["id"], 8))}  # the first of each kind
        self.assertEqual((by["job_registered"], by["profile_known"], by["characterization_started"]), ("client", "client", "server"))
        self.assertIn(by["rank_registered"], [f"rank {rank}" for rank in range(4)])
        kinds = [event["kind"] for event in self.recent()["events"]]
        self.assertNotIn("rank_registered", kinds)
        self.assertEqual(kinds[-1], "job_registered")

    def test_changes_have_the_name_of_their_token_also_after_a_restart(self):
        self.push()
        olga, alice, nameless = self.tokens()
        job = self.change("POST", "/v1/jobs", {"name": "gpt", "degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample"}, alice)["job"]
        self.change("PUT", f"/v1/jobs/{job}/policies/power_cap", {"average_w": 1000.0}, olga)
        notice = self.change("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 0, "degree": 1.2}, alice)["notices"][0]["id"]
        self.change("DELETE", f"/v1/jobs/{job}/stragglers/{notice}", None, nameless["token"])
        self.change("DELETE", f"/v1/jobs/{job}/policies/power_cap", None, olga)
        self.change("POST", f"/v1/jobs/{job}/finish", {}, alice)
        expected = {"job_registered": "alice", "profile_known": "alice", "policy_set": "olga", "straggler_notice": "alice",
                    "straggler_withdrawn": f"token {nameless['id']}", "policy_cleared": "olga", "job_finished": "alice"}

        def by():
            return {event["kind"]: event["by"] for event in self.recent(token=olga)["events"] if event["kind"] in expected}

        self.assertEqual(by(), expected)
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data)
        self.assertEqual(by(), expected)
        self.assertEqual({event["name"] for event in self.recent(token=olga)["events"]}, {"gpt"})
        self.change("DELETE", f"/v1/jobs/{job}", None, olga)
        newest = self.recent(token=olga)["events"][0]
        self.assertEqual((newest["kind"], newest["by"], newest["job"]), ("job_removed", "olga", job))

    def test_a_token_reads_events_of_its_own_jobs_only(self):
        olga, alice, _ = self.tokens()
        body = {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile_online": True, "pipeline": PIPELINE}
        self.change("POST", "/v1/jobs", {**body, "name": "operator's"}, olga)
        self.change("POST", "/v1/jobs", {**body, "name": "alice's"}, alice)
        self.assertEqual([event["name"] for event in self.recent(token=alice)["events"]], ["alice's"])
        self.assertEqual([event["name"] for event in self.recent(token=olga)["events"]], ["alice's", "operator's"])
        self.assertEqual(self.server.ask("GET", "/v1/events/recent")[0], 401)

    def test_pages_filters_mistakes_and_the_command(self):
        jobs = [self.job(name=f"run-{k}", profile_online=True, pipeline=PIPELINE) for k in range(3)]
        names, after = [], ""
        while after is not None:
            page = self.recent(f"?limit=1{after and '&after=' + urllib.parse.quote(after)}")
            names += [event["name"] for event in page["events"]]
            after = page.get("next")
        self.assertEqual(names, ["run-2", "run-1", "run-0"])
        self.assertEqual([event["job"] for event in self.recent(f"?job={jobs[1]}")["events"]], [jobs[1]])
        self.assertEqual(len(self.recent("?kind=job_registered&by=client")["events"]), 3)
        self.assertEqual(self.recent("?by=nobody")["events"], [])
        for query, wrong in (("?limit=0", "limit"), ("?limit=1001", "limit"), ("?kind=none", "kind"), ("?after=x", "after"), ("?page=1", "page")):
            status, answer = self.server.ask("GET", "/v1/events/recent" + query)
            self.assertEqual((status, wrong in answer["detail"]), (400, True), answer)
        self.assertRegex(self.server.ask("GET", "/v1/events/recent?kind=none")[1]["detail"],
                         r"^'kind' is 'none'; expected one of characterization_failed, .*, job_removed, .*limit_changed, .*policy_set, ")
        table = self.server.cli("event", "list", "--job", "run-1", "--kind", "job_registered").stdout
        self.assertRegex(table, r"AGE +JOB +NAME +BY +EVENT\n\d+ s +\S+ +run-1 +client +job of 1 x 4 x 1 ranks")
        self.assertEqual(len(json.loads(self.server.cli("event", "list", "-o", "json").stdout)["events"]), 3)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main()
