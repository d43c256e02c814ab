#!/usr/bin/env python3
"""A real `perseus serve` under untrusted input: random calls from docs/openapi.json, and mutated bytes on raw
sockets.

usage: test_strangers.py PERSEUS [SECONDS [SEED]]; default: PERSEUS_STRANGERS_SECONDS or 20 s, and seed 2026.

The test classes share the time. The same seed sends the same kinds of requests; the interleaving of several
connections depends on the machine. Every failure prints the request and the answer.
"""

import http.client
import json
import os
import pathlib
import random
import re
import socket
import sys
import threading
import time
import unittest
import urllib.parse

import served
from openapi_calls import CallGenerator
from http_bytes import Malformed, Mutator, read_answers, read_requests
from served import PROFILE, ROOT, ServedCase, Server, until
from test_relay import Relay

try:
    import jsonschema
except ImportError:
    jsonschema = None

API = json.loads((ROOT / "docs/openapi.json").read_text())
SECONDS, SEED = 20.0, 2026
LONGEST_ANSWER_S = float(os.environ.get("PERSEUS_STRANGERS_ANSWER_S", "10"))
MOST_JOBS, MOST_TOKENS = 60, 30
PARTS = 3  # test classes that share the time
SMALL_BODY = 64 << 10  # bytes: Api::kSmallBody
LEAST_CASES = 20  # of a thread, where the machine stood still for its share of the time: some complete, some invalid


def resident_mb(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)[1]) / 1024


def profile_body():
    return {"profile_csv": PROFILE.read_text(), "pipeline": {"schedule": "1f1b", "microbatches": 4, "blocking_power_w": 90}}


def not_a_number(text):
    raise ValueError(f"{text} is not JSON")


def finite(text):
    number = float(text)
    return number if abs(number) < float("inf") else not_a_number(text)


def strict_json(content):
    return json.loads(content.decode("utf-8"), parse_constant=not_a_number, parse_float=finite)


class Failures:
    """Keeps the first failure of each kind."""

    def __init__(self):
        self.lock = threading.Lock()
        self.first = {}
        self.count = 0

    def add(self, kind, detail):
        with self.lock:
            self.count += 1
            self.first.setdefault(kind, detail)

    def check(self, case):
        text = "\n".join(f"{kind}\n    {detail}" for kind, detail in self.first.items())
        case.assertEqual(self.count, 0, f"{self.count} failures, the first of each kind:\n{text}")


class StrangersCase(ServedCase):
    def setUp(self):
        super().setUp()
        self.failures = Failures()

    def run_threads(self, work, count):
        """Runs work(number, until) on threads for this class's share of the time; checks the server's memory."""
        until = time.monotonic() + SECONDS / PARTS
        half = until - SECONDS / PARTS / 2

        def guarded(number):
            try:
                work(number, until)
            except Exception as problem:  # the thread's end must be reported
                self.failures.add(f"thread {number} ended: {type(problem).__name__}", repr(problem))

        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        while time.monotonic() < half and any(thread.is_alive() for thread in threads):
            time.sleep(0.05)
        self.assertIsNone(self.server.process.poll(), "the server has ended")
        at_half = resident_mb(self.server.process)
        for thread in threads:
            thread.join()
        self.assertIsNone(self.server.process.poll(), "the server has ended: " + "".join(self.server.log[-20:]))
        after = resident_mb(self.server.process)
        print(f"resident: {at_half:.0f} MB at half time, {after:.0f} MB at the end", flush=True)
        if after >= 1.5 * at_half + 50:
            self.failures.add("memory grows", f"{at_half:.0f} MB at half time, {after:.0f} MB at the end")


class Actor:
    """A caller with a token: the role matrix and the job's owner determine its rights."""

    def __init__(self, name, role, token=None, sees=None):
        self.name, self.role, self.token, self.sees = name, role, token, sees

    def may(self, wanted):
        if wanted is None:
            return True
        return self.role in {"read-only": {"infrastructure", "job", "read-only"}, "job": {"infrastructure", "job"},
                             "infrastructure": {"infrastructure"}}[wanted]


class RandomCalls(StrangersCase):
    def setUp(self):
        super().setUp()
        self.lock = threading.Lock()
        self.jobs = {}  # id: owner; acknowledged, and without a successful delete
        self.tokens, self.notices, self.learned, self.token_ids = [], [], [], []
        self.slowest, self.calls, self.statuses = 0.0, 0, {}
        self.validators = {}
        boss = self.make("infrastructure", self.server.first_secret())
        self.boss = Actor("boss", "infrastructure", boss)
        status, answer = self.server.ask("PUT", "/v1/profiles/sample", profile_body(), boss)
        self.assertEqual(status, 200, answer)
        for_one = self.register(boss, "bound")
        revoked, identity = self.make("job", boss, both=True)
        self.assertEqual(self.server.ask("DELETE", f"/v1/tokens/{identity}", token=boss)[0], 200)
        self.actors = [
            self.boss,
            Actor("reader", "read-only", self.make("read-only", boss)),
            Actor("team_a", "job", self.make("job", boss, team="a"), {"team_a"}),
            Actor("team_b", "job", self.make("job", boss, team="b"), {"team_b"}),
            Actor("bound", "job", self.make("job", boss, job=for_one), {"bound"}),
            Actor("anonymous", None),
            Actor("wrong", None, "perseus_00000000000000000000000000000000"),
            Actor("revoked", None, revoked),
            Actor("expired", None, self.make("job", boss, expires_in_s=1e-3)),
        ]
        for actor in self.actors[2:4]:
            job = self.register(actor.token, actor.name)
            for rank in range(4):
                place = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "accelerator": f"GPU-{rank}"}
                status, answer = self.server.ask("POST", f"/v1/jobs/{job}/ranks", place, actor.token)
                self.assertEqual(status, 200, answer)
        until(lambda: self.server.ask("GET", "/v1/jobs", token=self.actors[-1].token)[0] != 200)  # until it has expired

    def make(self, role, by, both=False, **more):
        status, answer = self.server.ask("POST", "/v1/tokens", {"role": role, **more}, by)
        self.assertEqual(status, 200, answer)
        return (answer["token"], answer["id"]) if both else answer["token"]

    def register(self, token, owner):
        body = {"name": f"owned-by-{owner}.", "degrees": {"dp": 1, "pp": 4, "tp": 1}, "profile": "sample",
                "facts": {"model": f"owned-by-{owner}."}}
        status, answer = self.server.ask("POST", "/v1/jobs", body, token)
        self.assertEqual(status, 200, answer)
        self.jobs[answer["job"]] = owner
        return answer["job"]

    def validator(self, template, method, status):
        key = template, method, status
        if key not in self.validators:
            reply = API["paths"][template][method]["responses"][status]
            if "$ref" in reply:
                reply = API["components"]["responses"][reply["$ref"].rsplit("/", 1)[1]]
            schema = {**reply["content"]["application/json"]["schema"], "components": API["components"]}
            self.validators[key] = jsonschema.Draft202012Validator(schema)
        return self.validators[key]

    def test_random_calls(self):
        if jsonschema is None:
            print("python3-jsonschema is not installed: answers are not checked against their schemas", flush=True)
        self.run_threads(self.stranger, 4)
        print(f"{self.calls} calls, the slowest answer took {self.slowest:.2f} s; statuses {dict(sorted(self.statuses.items()))}",
              flush=True)
        began = time.monotonic()
        code = self.server.stop()
        print(f"the server took {time.monotonic() - began:.1f} s to end", flush=True)
        if code != 0:
            self.failures.add("SIGTERM", f"exit code {code}: " + "".join(self.server.log[-20:]))
        self.server = Server(self.data)
        for job in list(self.jobs):
            status, answer = self.server.ask("GET", "/v1/jobs/" + urllib.parse.quote(job), token=self.boss.token)
            if status != 200:
                self.failures.add("an acknowledged job is gone after a restart", f"{job}: {status} {answer}")
        self.assertGreater(self.statuses.get(200, 0), 0, self.statuses)
        self.failures.check(self)

    def stranger(self, number, until):
        chance = random.Random(f"{SEED} calls {number}")
        generator = CallGenerator(API, chance, profile_body)
        connection = None
        while time.monotonic() < until:
            if connection is None or chance.random() < 0.05:
                if connection:
                    connection.close()
                connection = http.client.HTTPConnection(self.server.address, timeout=LONGEST_ANSWER_S)
            actor = chance.choices(self.actors, [10, 1, 4, 4, 2, 0.6, 0.2, 0.2, 0.2])[0]
            with self.lock:
                generator.jobs = list(self.jobs)
                own = [job for job, owner in self.jobs.items() if actor.sees is None or owner == actor.name]
                generator.own_jobs = own[-3:] if chance.random() < 0.6 else own
                generator.notices, generator.learned = self.notices[-20:], self.learned[-20:]
                generator.tokens = self.token_ids[:-MOST_TOKENS] or self.token_ids[:1]
            call = generator.call(f"owned-by-{actor.name}.")
            if len(generator.jobs) > MOST_JOBS and chance.random() < 0.5:
                actor, call = self.boss, generator.removal(chance.choice(generator.jobs))
            elif len(generator.tokens) > 1 and chance.random() < 0.2:
                actor, call = self.boss, generator.revocation()
            if not self.carry_out(connection, actor, call):
                connection.close()
                connection = None
        if connection:
            connection.close()

    def carry_out(self, connection, actor, call):
        """Sends the call and checks its answer. False: the connection cannot be used again."""
        about = f"{actor.name}: {call.method} {call.target[:300]} {(call.body or b'')[:600]!r}"
        headers = dict(call.headers)
        if actor.token:
            headers["Authorization"] = f"Bearer {actor.token}"
        owner = self.jobs.get(call.job)
        removes = call.method == "DELETE" and call.template == "/v1/jobs/{job}" and actor.may("job")
        began = time.monotonic()
        stream, reply = False, None
        try:
            try:
                connection.request(call.method, call.target, call.body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server may reject by the head; its answer can be read
            reply = connection.getresponse()
            stream = reply.getheader("Content-Type", "").startswith("text/event-stream")
            content = self.first_of(connection, reply) if stream else reply.read()
        except socket.timeout:
            if not call.may_wait:
                self.failures.add(f"no answer within {LONGEST_ANSWER_S} s: {call.name}", about)
            return False
        except (OSError, http.client.HTTPException) as problem:
            self.failures.add(f"no answer: {call.name}: {type(problem).__name__}", f"{about}: {problem!r}")
            return False
        finally:
            if removes and (reply is None or reply.status in (200, 404)):
                with self.lock:
                    self.jobs.pop(call.job, None)  # without an answer it may have been deleted
        if not call.may_wait:
            self.slowest = max(self.slowest, time.monotonic() - began)
        self.check_answer(actor, call, owner, reply, content, stream, f"{about}\n    -> {reply.status} {content[:500]!r}")
        return not stream and not reply.will_close

    @staticmethod
    def first_of(connection, reply):
        if connection.sock:
            connection.sock.settimeout(0.2)
        text = b""
        try:
            while len(text) < 20000 and (line := reply.readline()):
                text += line
        except socket.timeout:
            pass
        return text

    def check_answer(self, actor, call, owner, reply, content, stream, about):
        status = reply.status
        with self.lock:
            self.calls += 1
            self.statuses[status] = self.statuses.get(status, 0) + 1
        fail = lambda what: self.failures.add(f"{what}: {call.name}", about)
        if status >= 500 and status != 503:
            fail(f"status {status}")
        if status == 503 and not reply.getheader("Retry-After"):
            fail("503 without Retry-After")
        if not call.odd_path and str(status) not in call.operation["responses"]:
            fail(f"status {status} is not in openapi.json")
        self.check_roles(actor, call, owner, status, fail)
        if actor.sees is not None and status < 400:
            shown = set(re.findall(rb"owned-by-(\w+)\.", content)) - {name.encode() for name in actor.sees}
            if shown:
                fail(f"{actor.name} is shown jobs of others")
        if stream:
            return
        try:
            answer = strict_json(content)
        except ValueError as problem:
            return fail(f"the answer is not JSON ({problem})")
        if status >= 400:
            error = answer.get("error") if isinstance(answer, dict) else None
            if not (isinstance(error, dict) and set(error) == {"code", "message"} and "detail" in answer):
                fail("an error of another form")
        if jsonschema and not call.odd_path and str(status) in call.operation["responses"]:
            for problem in self.validator(call.template, call.method.lower(), str(status)).iter_errors(answer):
                fail(f"the answer does not fit its schema ({problem.message[:200]})")
        if status == 200 and call.name == "POST /v1/exchange" and actor.role == "job":
            self.check_parts(actor, call, answer, fail)
        if status == 200 and not call.odd_path:
            self.remember(actor, call, answer, fail)

    def check_roles(self, actor, call, owner, status, fail):
        if call.odd_path:
            return
        too_large = 413 if len(call.body or b"") > SMALL_BODY else None  # rejected before it is read
        if not actor.may(call.role):
            allowed = {401, 429} if actor.role is None else {403}
            if call.headers.get("Content-Type", "application/json") != "application/json":
                allowed.add(415)  # rejected before the token is checked
            if status not in allowed:
                fail(f"{actor.name} gets {status}; allowed: {sorted(allowed)}")
        elif actor.role == "job" and owner and owner != actor.name and status not in (403, 415, too_large):
            fail(f"{actor.name} gets {status} for a job of {owner}; allowed: 403")
        if actor.name == "bound" and call.name == "POST /v1/jobs" and status == 200:
            fail("a job's token registers another job")

    def check_parts(self, actor, call, answer, fail):
        """The server rejects the parts of an exchange one by one."""
        for report, part in zip(json.loads(call.body).get("reports", []), answer["reports"]):
            owner = self.jobs.get(report["job"])
            if owner and owner != actor.name and part["status"] != 403:
                fail(f"{actor.name} gets {part['status']} for a part on a job of {owner}; allowed: 403")

    def remember(self, actor, call, answer, fail):
        with self.lock:
            if call.name == "POST /v1/jobs":
                self.jobs[answer["job"]] = actor.name
            elif call.name == "POST /v1/tokens":
                self.token_ids.append(answer["id"])
            elif call.name == "DELETE /v1/tokens/{token}":
                token = urllib.parse.unquote(call.target.rsplit("/", 1)[1])
                self.token_ids = [identity for identity in self.token_ids if identity != token]
            elif "stragglers" in call.template and "notices" in answer:
                self.notices += [notice["id"] for notice in answer["notices"]]
                del self.notices[:-50]
            elif call.name == "GET /v1/learned_profiles":
                self.learned = [profile["id"] for profile in answer["profiles"]]
            elif call.name == "GET /v1/jobs" and actor.sees is not None:
                for row in answer["jobs"]:
                    if self.jobs.get(row["id"], actor.name) != actor.name:
                        fail(f"{actor.name} is listed a job of another token")


class ProtocolCase(StrangersCase):
    """Mutated bytes, then a valid request on a separate connection."""

    def setUp(self):
        super().setUp()
        self.counts = {"invalid": 0, "incomplete": 0, "complete": 0, "answers": 0}
        status, answer = self.server.ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 1, "tp": 1}})
        self.assertEqual(status, 200, answer)
        self.job = answer["job"]
        self.lock = threading.Lock()

    def fuzz(self, number, until, address):
        host, port = address.rsplit(":", 1)
        where = host, int(port)
        chance = random.Random(f"{SEED} bytes {type(self).__name__} {number}")
        mutator = Mutator(chance, address, self.job)
        case = 0
        while time.monotonic() < until or case < LEAST_CASES:
            case += 1
            sentinel = f"sentinel-{number}-{case}"
            sent, pieces = mutator.connection(sentinel)
            self.one(where, sent, pieces, sentinel, chance)
            self.good(where, f"good-{number}-{case}")

    def one(self, where, sent, pieces, sentinel, chance):
        requests, rest, methods = read_requests(sent)
        received, cut = b"", ""
        try:
            with socket.create_connection(where, timeout=LONGEST_ANSWER_S) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                        if chance.random() < 0.2:
                            time.sleep(chance.random() * 0.003)
                except OSError:
                    pass  # rejected before all was sent
                received, cut = self.read(connection, methods, len(requests), rest)
        except OSError as problem:
            self.failures.add(f"cannot connect: {type(problem).__name__}", repr(problem))
            return
        about = f"{len(requests)} requests, then {rest}; sent {sent[:1500]!r}\n    -> {received[:1500]!r}"
        try:
            answers = read_answers(received, methods, bool(cut))
        except Malformed as problem:
            self.failures.add(f"an answer is not well-formed: {problem}", about)
            return
        if cut == "timeout" and b"text/event-stream" not in received:  # a stream has no end
            self.failures.add(f"no answer, or no end of the connection, within {LONGEST_ANSWER_S} s", about)
        with self.lock:
            self.counts[rest.split(":")[0]] += 1
            self.counts["answers"] += len(answers)
        self.check(requests, rest, answers, sentinel, cut, about)

    @staticmethod
    def read(connection, methods, count, rest):
        """Returns all bytes until the server closes; this side ends streams. Second: "", "reset" or "timeout"."""
        received, ended = b"", rest == "complete"
        connection.settimeout(LONGEST_ANSWER_S if ended else 0.3)
        while True:
            if not ended and rest.startswith("incomplete"):
                try:
                    if len(read_answers(received, methods, True)) >= count:
                        connection.settimeout(0.05)
                except Malformed:
                    pass
            try:
                more = connection.recv(1 << 16)
            except socket.timeout:
                if ended:
                    return received, "timeout"
                ended = True
                connection.settimeout(LONGEST_ANSWER_S)
                try:
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    return received, "reset"
                continue
            except OSError:
                return received, "reset"
            if not more:
                return received, ""
            received += more

    def check(self, requests, rest, answers, sentinel, cut, about):
        fail = lambda what: self.failures.add(what, about)
        most = len(requests) + (rest != "complete")
        if len(answers) > most:
            fail("more answers than requests")
        for answer in answers:
            if answer.status >= 500 and answer.status != 503:
                fail(f"status {answer.status}")
            if answer.status >= 400 and answer.body:
                try:
                    if set(strict_json(answer.body)) - {"detail", "error"}:
                        fail("an error of another form")
                except ValueError:
                    fail("an error that is not JSON")
        for at, answer in enumerate(answers):
            is_sentinel = at < len(requests) and sentinel.encode() in requests[at].target
            if sentinel.encode() in answer.body and not is_sentinel and answer.status == 404:
                fail("bytes of one request are answered as another")
        if any(answer.closes for answer in answers[:-1]):
            fail("an answer after one with Connection: close")
        if cut or (answers and answers[-1].closes and len(answers) < len(requests)):
            return
        if rest == "complete" and len(answers) != len(requests):
            fail("a request without an answer")

    def good(self, where, name):
        for target, status, part in [(f"/v1/jobs/{self.job}", 200, self.job), (f"/v1/jobs/{name}", 404, name)]:
            connection = http.client.HTTPConnection(*where, timeout=LONGEST_ANSWER_S)
            try:
                connection.request("GET", target)
                reply = connection.getresponse()
                content = reply.read().decode()
                if reply.status != status or part not in content:
                    self.failures.add("a good request is answered wrongly", f"{target}: {reply.status} {content[:500]}")
            except (OSError, http.client.HTTPException, UnicodeDecodeError) as problem:
                self.failures.add("a good request is not answered", f"{target}: {problem!r}")
            finally:
                connection.close()

    def finish(self):
        print(f"connections by what their bytes are: {self.counts}", flush=True)
        self.assertGreater(self.counts["complete"], 0)
        self.assertGreater(self.counts["invalid"], 0)
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{self.job}")[0], 200)
        self.assertEqual(self.server.stop(), 0)
        self.failures.check(self)


class RawBytes(ProtocolCase):
    def test_raw_bytes(self):
        self.run_threads(lambda number, until: self.fuzz(number, until, self.server.address), 3)
        self.finish()


class RawBytesThroughARelay(ProtocolCase):
    def setUp(self):
        super().setUp()
        self.relay = Relay(self.server.url)

    def tearDown(self):
        if self.relay.process.poll() is None:
            self.relay.process.kill()
            self.relay.process.communicate()
        super().tearDown()

    def test_raw_bytes_through_a_relay(self):
        self.run_threads(lambda number, until: self.fuzz(number, until, self.relay.address), 3)
        self.assertIsNone(self.relay.process.poll(), "the relay has ended")
        self.finish()
        connection = http.client.HTTPConnection(self.relay.address, timeout=LONGEST_ANSWER_S)
        connection.request("GET", f"/v1/jobs/{self.job}")
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.getheader("Retry-After")), (503, "1"), "the server has ended")
        reply.read()
        connection.close()
        self.assertEqual(self.relay.stop(), 0)


if __name__ == "__main__":
    served.PROGRAM = os.path.abspath(sys.argv.pop(1))
    given = [sys.argv.pop(1) for _ in sys.argv[1:3] if re.fullmatch(r"[0-9.]+", sys.argv[1])]
    SECONDS = float(given[0] if given else os.environ.get("PERSEUS_STRANGERS_SECONDS", SECONDS))
    SEED = int(given[1]) if len(given) > 1 else SEED
    unittest.main(verbosity=2)
