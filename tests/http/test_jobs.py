#!/usr/bin/env python3
"""Jobs on a real `perseus serve`: cost of profiling, histories over restarts, ranks that set no clocks.

usage: test_jobs.py PERSEUS [unittest's arguments]
"""

import http.client
import json
import signal
import sys
import tempfile
import threading
import unittest
import urllib.parse

import postgres
import served
from served import PROFILE, ServedCase, Server, until
from training import BLOCKING_W, Training

ONLINE = {"profile_online": True,
          "pipeline": {"schedule": "1f1b", "microbatches": 6, "blocking_power_w": BLOCKING_W}}


class JobCase(ServedCase):
    def restart_server(self, how=signal.SIGKILL):
        self.server.stop(how)
        self.server = Server(self.data)

    def push(self):
        self.server.cli("profile", "push", "sample", str(PROFILE), "--schedule", "1f1b", "--microbatches", "6",
                        "--blocking-power", str(BLOCKING_W))

    def job(self, dp=1, **request):
        status, job = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": dp, "pp": 4, "tp": 1}, **request})
        self.assertEqual(status, 200, job)
        return job["job"]


class Profiling(JobCase):
    def check_cost(self, training, view):
        """The server's account of profiling equals the iterations that the ranks reported."""
        phase = training.times[: len(training.times)]
        highest_s = training.highest_s()
        windows = [time for time, in_window in zip(training.times, training.kinds) if in_window]
        cost = view["profiling"]["cost"]
        self.assertEqual(view["profiling"]["iterations"], len(windows))
        self.assertLessEqual(len(windows), cost["iterations"])
        self.assertLessEqual(cost["iterations"], len(phase))
        extra_s = sum(time - highest_s for time in windows)
        self.assertAlmostEqual(cost["time_s"], training.reported_extra_s(), delta=1e-6)
        # Noise of 0.3 % in the shortest iteration at the highest clock counts in each window.
        self.assertAlmostEqual(cost["time_s"], extra_s, delta=0.02 * highest_s * len(windows))
        self.assertAlmostEqual(cost["worst_slowdown_pct"], 100 * (max(windows) / highest_s - 1), delta=2)
        return 100 * extra_s / highest_s / cost["iterations"]

    def test_its_budget_holds_and_its_cost_is_reported(self):
        job = self.job(facts={"model": "m"}, **ONLINE)
        training = Training(self.server, job)
        training.register()
        self.assertEqual(training.view()["state"], "profiling")
        view = training.run_until(("deployed", "failed"))
        self.assertEqual(view["state"], "deployed", view)
        mean_pct = self.check_cost(training, view)
        self.assertLessEqual(mean_pct, 5.5)
        self.assertLessEqual(max(training.times) / training.highest_s(), 1.31)
        cost = view["profiling"]["cost"]
        self.assertIn("earned_back_after_iterations", cost)
        shown = self.server.cli("job", "show", job).stdout
        for words in (r"energy: -?[\d,.]+ J", r"time: -?[\d.]+ m?s", r"earned_back_after_iterations: \d", r"mean_slowdown: -?[\d.]+ %",
                      r"now: 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"):
            self.assertRegex(shown, words)
        self.assertNotRegex(shown, r"\dE[+-]?\d|_s: |_j: |_pct: ")
        # The iterations so far were measured or ran at the highest clock.
        self.assertEqual(view["savings"]["total"]["iterations"], 0)

        # The plan, measured, is as fast as the highest clocks and needs less energy.
        training.run(6)
        self.assertLessEqual(training.times[-1], 1.01 * training.highest_s())
        # A few noisy iterations may not tell what the plan saves: then there is no measured figure yet.
        for _ in range(10):
            if "measured_all_max" in (saved := training.view()["savings"]):
                break
            training.run(6)
        self.assertLess(saved["measured"]["energy_j"], saved["measured_all_max"]["energy_j"])

        # Another run of the model, with more pipelines and microbatches, finds the profile.
        again = self.job(dp=2, profile_online=True, facts={"model": "m"},
                         pipeline={**ONLINE["pipeline"], "microbatches": 8})
        known = Training(self.server, again, dp=2, microbatches=8)
        known.register()
        view = known.run_until(("deployed", "failed"))
        self.assertEqual((view["state"], view["facts"]["profile"]), ("deployed", "known from an earlier run"))
        # The server used it after five iterations at the highest clock, and stores these with it.
        self.assertEqual((view["profile_trial"]["state"], view["profile_trial"]["learned_by"]), ("confirmed", job))
        self.assertEqual((view["profiling"]["windows"], view["profiling"]["iterations"]), (1, 5))
        until(lambda: self.server.ask("GET", "/v1/learned_profiles")[1]["profiles"][0]["confirmed"] == 1)
        other = self.job(profile_online=True, facts={"model": "other"}, pipeline=ONLINE["pipeline"])
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{other}")[1]["state"], "registered")
        log = [line for line in self.server.log if job in line and "profile_known" in line or "known" in line]
        self.assertTrue(any(" J" in line and "slower" in line for line in log), self.server.log)

    def test_a_job_sets_its_own_budget(self):
        training = Training(self.server, self.job(profiling_slowdown_pct=2, profiling_worst_slowdown_pct=10, **ONLINE))
        training.register()
        view = training.run_until(("deployed", "failed"))
        self.assertEqual(view["state"], "deployed", view)
        self.assertLessEqual(self.check_cost(training, view), 2.2)
        self.assertLessEqual(max(training.times) / training.highest_s(), 1.11)

    def test_gpus_under_a_power_cap_finish_too(self):
        training = Training(self.server, self.job(**ONLINE), cap_mhz=1230)
        training.register()
        view = training.run_until(("deployed", "failed"))
        self.assertEqual(view["state"], "deployed", view)
        training.run(4)
        self.assertLessEqual(training.times[-1], 1.01 * training.highest_s())


class CountsAfterRestarts(JobCase):
    """An orderly restart of the server changes no figure."""

    def test_the_log_follows_a_job(self):
        self.push()
        job = self.job(profile="sample", name="a job", facts={"accelerator": "GPU of the sample"})
        training = Training(self.server, job)
        training.register()
        self.assertTrue(training.poll(0, wait_s=60))
        training.run(20)
        training.ask("POST", "/finish")
        self.server.stop()
        self.server.reader.join(10)
        lines = [json.loads(line)["message"] for line in self.server.log if f"job {job}:" in line]
        self.assertEqual(lines[0], f"job {job}: registered as 'a job': 4 ranks (dp 1, pp 4, tp 1) on GPU of the sample; "
                         "1f1b, 6 microbatches; profile known: sample")
        planned = next(line for line in lines if ": plan 1 " in line)  # facts learned meanwhile may come before
        self.assertRegex(planned, r": plan 1 from iteration \d+: point \d+ of \d+; est\. [\d.]+ s and [\d,.]+ J an "
                         r"iteration, plan saves [\d.]+ % est\.; no straggler")
        self.assertRegex(lines[-1], r": finished; \d+ iterations saved [\d,.]+ J, ")

    def history(self, job, step="minute", server=None):
        status, history = (server or self.server).ask("GET", f"/v1/jobs/{job}/history?step={step}")
        self.assertEqual(status, 200, history)
        return history["buckets"]

    def test_an_orderly_restart_keeps_the_history(self):
        self.push()
        job = self.job(profile="sample")
        training = Training(self.server, job)
        training.register()
        self.assertTrue(training.poll(0, wait_s=60))
        self.assertEqual(self.history(job), [], "nothing was reported")
        training.run(20)
        self.restart_server(signal.SIGTERM)
        training.server = self.server
        training.run(5)
        for step in ("minute", "hour", "day"):
            buckets = self.history(job, step)
            self.assertEqual(sum(bucket["iterations"] for bucket in buckets), 25)
            self.assertTrue(any(bucket.get("planned_time_s", 0) > 0 for bucket in buckets), buckets)
            status, cluster = self.server.ask("GET", f"/v1/history?step={step}")
            self.assertEqual(status, 200, cluster)
            self.assertEqual(sum(bucket["iterations"] for bucket in cluster["buckets"]), 25)
            planned = sum(bucket["planned_iterations"] for bucket in buckets)  # all of them with energies
            self.assertGreater(planned, 0)
            self.assertEqual(sum(bucket["compared_iterations"] for bucket in cluster["buckets"]), planned)
            self.assertAlmostEqual(sum(bucket["planned_energy_j"] for bucket in cluster["buckets"]),
                                   sum(bucket["planned_iterations"] * bucket.get("planned_energy_j", 0) for bucket in buckets), 3)
        table = self.server.cli("job", "history", job, "--step", "day", "-o", "csv").stdout.splitlines()
        self.assertEqual(table[0].split(",")[:3], ["start_s", "iterations", "iteration_time_s"])
        self.assertEqual(sum(int(line.split(",")[1]) for line in table[1:]), 25)
        for query in ("step=week", "limit=0", "limit=2001", "from=x", "to=1e300", "since=1"):
            self.assertEqual(self.server.ask("GET", f"/v1/jobs/{job}/history?{query}")[0], 400, query)
            self.assertEqual(self.server.ask("GET", f"/v1/history?{query}")[0], 400, query)
        self.assertEqual(self.server.ask("GET", "/v1/jobs/absent/history")[0], 404)

    def test_a_restart_amid_an_iteration_counts_it_once(self):
        self.push()
        training = Training(self.server, self.job(profile="sample"))
        training.register()
        self.assertTrue(training.poll(0, wait_s=60))
        until(lambda: training.now[0] is not None or training.run(report=False))
        version, iteration = training.now[0]["version"], training.iteration
        energy_j = training.view()["savings"]["per_iteration"]["energy_j"] / 4  # far from it, nothing is counted

        def report(rank):
            training.ask("POST", "/iterations", {"rank": rank, "plan_version": version, "last_iteration": iteration,
                                                 "iteration_time_s": [1.0], "iteration_energy_j": [energy_j]})

        for rank in (0, 1):
            report(rank)
        for stops in range(2):
            self.restart_server(signal.SIGTERM)
            training.server = self.server
            report(1)  # a retry: the answer was lost
            self.assertEqual(training.view()["savings"]["total"]["iterations"], 0)
            report(2 + stops)
        until(lambda: training.view()["savings"]["total"]["iterations"] == 1)  # the server reads the estimate from the store


@unittest.skipUnless(postgres.programs(), "no PostgreSQL")
class CountsAfterRestartsOnPostgres(CountsAfterRestarts):
    def test_histories_of_a_server_and_its_standby_add_up(self):
        self.push()
        job = self.job(profile="sample")
        training = Training(self.server, job)
        training.register()
        self.assertTrue(training.poll(0, wait_s=60))
        training.run(10)
        other = Server(self.data, stands_by=True)
        try:
            self.server.stop(signal.SIGTERM)
            training.server = other
            until(lambda: other.ask("GET", "/readyz")[0] == 200)
            training.run(7)
            self.assertEqual(sum(bucket["iterations"] for bucket in self.history(job, server=other)), 17)
        finally:
            other.stop(signal.SIGTERM)
        self.server = Server(self.data)
        self.assertEqual(sum(bucket["iterations"] for bucket in self.history(job)), 17)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.database = postgres.Postgres()
        self.data = self.database.url
        self.server = Server(self.data)

    def tearDown(self):
        super().tearDown()
        self.database.close()


class Control(JobCase):
    def test_the_list_says_that_a_plan_is_maximum_clock(self):
        self.push()
        other = Training(self.server, self.job(profile="sample"))
        other.register()
        self.assertTrue(other.poll(0, wait_s=60))
        training = Training(self.server, self.job(**ONLINE))
        training.register(control="advice", control_reason="so it is")
        training.run_until({"deployed"})
        rows = {row["id"]: row for row in self.server.ask("GET", "/v1/jobs")[1]["jobs"]}
        ids = [one.path.rsplit("/", 1)[1] for one in (other, training)]
        self.assertEqual([(rows[job]["state"], rows[job].get("maximum_clock", False)) for job in ids], [("deployed", False), ("deployed", True)])
        table = self.server.cli("job", "list", "-o", "wide").stdout.splitlines()
        states = {line.split()[0]: "deployed, maximum clock" in line for line in table[1:]}
        self.assertEqual([states[job] for job in ids], [False, True])


class Restarts(JobCase):
    def test_while_a_job_is_profiled(self):
        training = Training(self.server, self.job(**ONLINE))
        training.register()
        training.run(8)
        self.assertEqual(training.view()["state"], "profiling")
        training.restart(epoch=2)
        view = training.run_until(("deployed", "failed"))
        self.assertEqual(view["state"], "deployed", view)
        self.assertLess(view["profiling"]["cost"]["iterations"], len(training.times) + 1)


class RegisteringTwice(JobCase):
    """Registers a job with a key; the answer is lost, and the client sends the request again."""

    BODY = {"degrees": {"dp": 1, "pp": 4, "tp": 1}, "name": "once"}

    def register(self, key, body=None, token=None):
        return self.server.ask("POST", "/v1/jobs", body or self.BODY, token, headers={"Idempotency-Key": key})

    def jobs(self):
        return [job["id"] for job in self.server.ask("GET", "/v1/jobs")[1]["jobs"]]

    def test_it_is_one_job_also_after_a_crash(self):
        key = '"8e03978e-40d5-43dd-bc93-6894a57f9324"'
        status, first = self.register(key)
        self.assertEqual(status, 200, first)
        self.assertEqual(self.register(key), (200, first))
        self.assertEqual(self.register(key.strip('"')), (200, first))
        self.restart_server()
        self.assertEqual(self.register(key), (200, first))
        self.server.cli("job", "finish", first["job"])
        self.assertEqual(self.register(key), (200, {"job": first["job"], "state": "finished"}))
        self.assertEqual(self.jobs(), [first["job"]])
        status, refused = self.register(key, {**self.BODY, "name": "twice"})
        self.assertEqual((status, refused["error"]["code"]), (422, "invalid_input"), refused)
        self.assertIn(first["job"], refused["detail"])
        self.server.cli("job", "delete", first["job"])
        self.assertEqual(self.register(key)[0], 200, "the key is as new")

    def test_at_the_same_moment(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.register("at-the-same-moment"))) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.jobs()), 1)
        self.assertEqual({(status, answer["job"]) for status, answer in answers}, {(200, self.jobs()[0])})

    def test_the_last_job_that_a_token_may_have(self):
        self.server.stop()
        self.server = Server(self.data, "--max-live-jobs-per-token", "1")
        token = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, self.server.first_secret())[1]["token"]
        status, first = self.register("the-key-of-the-last-one", token=token)
        self.assertEqual(status, 200, first)
        self.assertEqual(self.register("the-key-of-the-last-one", token=token), (200, first))
        self.assertEqual(self.register("the-key-of-another-one", token=token)[0], 413)

    def test_keys_that_can_be_guessed_are_refused(self):
        for key in ("1", "x" * 15, "x" * 129, "with a space in it", '"' + "x" * 15 + '"'):
            status, answer = self.register(key)
            self.assertEqual(status, 400, answer)
            self.assertIn("allowed: 16 to 128 visible ASCII characters", answer["detail"])
        self.assertEqual(self.jobs(), [])


class ExistingClients(JobCase):
    """Ranks of clients that send one request and wait while the server is killed."""

    RANK = {"dp_rank": 0, "tp_rank": 0, "pipe_schedule": ["forward", "backward"], "power_state_range": [1410, 1200]}

    def wait_for_schedule(self, job, rank=0):
        """Returns the answer, or the exception of the client's HTTP library, once there is one."""
        answers = []

        def ask():
            try:
                answers.append(self.server.ask("GET", f"/schedule/{job}?rank={rank}"))
            except (OSError, http.client.HTTPException) as problem:
                answers.append(problem)

        thread = threading.Thread(target=ask)
        thread.start()
        return thread, answers

    def waiting(self, job):
        return self.server.ask("GET", f"/v1/jobs/{job}")[1]["ranks"]["waiting"]

    def test_the_next_call_after_a_crash_is_answered(self):
        status, job = self.server.ask(
            "POST", "/register_job",
            {"job_id": "", "pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2, "framework": "Megatron",
             "model_name": "new", "partition_method": "param", "microbatch_size": 4, "num_microbatches": 1})
        self.assertEqual(status, 200, job)
        self.server.ask("POST", "/register_rank", {"job_id": job, "rank": 0, "pp_rank": 0, **self.RANK})
        job = urllib.parse.quote(job)
        for how in (signal.SIGKILL, signal.SIGTERM):
            thread, answers = self.wait_for_schedule(job)
            until(lambda: self.waiting(job) == 1)
            self.restart_server(how)
            thread.join(60)
            if how == signal.SIGTERM:
                self.assertEqual(answers[0][0], 503, answers)
                self.assertIn("the server is stopping: try again", answers[0][1]["detail"])
            else:
                self.assertIsInstance(answers[0], Exception, "its connection ends, so it does not wait for ever")
        # The rank that sends its request again waits for the others, and gets its answer when they have registered.
        thread, answers = self.wait_for_schedule(job)
        until(lambda: self.waiting(job) == 1)
        self.server.ask("POST", "/register_rank",
                        {"job_id": urllib.parse.unquote(job), "rank": 1, "pp_rank": 1, **self.RANK})
        thread.join(60)
        self.assertEqual(answers, [(200, {"rank": 0, "power_states": [1410, 1410]})])

    def test_a_server_without_its_data_knows_no_job(self):
        self.push()
        zeus = {"job_id": "", "pp_degree": 4, "dp_degree": 1, "tp_degree": 1, "world_size": 4, "job_metadata": "sample"}
        job = urllib.parse.quote(self.server.ask("POST", "/register_job", zeus)[1])
        self.server.stop(signal.SIGKILL)
        self.server = Server(self.data + "2")
        for call in (("GET", f"/schedule/{job}?rank=0"),
                     ("POST", f"/register_rank/{job}", {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0,
                                                        "available_frequencies": [1410]})):
            status, answer = self.server.ask(*call)
            self.assertEqual(status, 404, answer)
            self.assertIn("no job", answer["detail"])


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
