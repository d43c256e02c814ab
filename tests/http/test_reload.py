#!/usr/bin/env python3
"""SIGHUP: log files, settings, tokens, and which of their changes a running server applies. Usage: test_reload.py
PERSEUS"""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import signal
import sqlite3
import sys
import tempfile
import time
import unittest

import served
from served import Server

BOUND_S = 120


class Reload(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.log, self.config = self.at / "perseus.log", self.at / "perseus.toml"
        self.configure()
        self.server = Server(str(self.at / "data"), "--config", str(self.config))
        end = time.monotonic() + BOUND_S
        while not any("first token" in message for message in self.messages()):  # the last line of the start
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def tearDown(self):
        self.server.stop(signal.SIGKILL)
        self.folder.cleanup()

    def configure(self, **settings):
        settings = {"log_file": str(self.log), **settings}
        self.config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))

    def messages(self):
        return [json.loads(line)["message"] for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def hang_up(self, expected):
        """Returns the log from the signal to the expected words, without job changes, which may be late."""
        before = len(self.messages())
        self.server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + BOUND_S
        while not any(expected in message for message in self.messages()[before:]):
            self.assertLess(time.monotonic(), end, self.messages())
            time.sleep(0.02)
        return [message for message in self.messages()[before:] if message != "change"]

    def test_a_named_pipe_that_nothing_reads_is_refused_and_the_log_goes_on(self):
        pipe = self.at / "pipe"
        os.mkfifo(pipe)
        self.configure(log_file=str(pipe))
        messages = self.hang_up("a named pipe that nothing reads")
        self.assertIn(str(pipe), messages[-1])
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)

    def test_a_log_whose_reader_sleeps_delays_no_request(self):
        pipe = self.at / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        self.configure(log_file=str(pipe))
        self.server.process.send_signal(signal.SIGHUP)
        for number in range(100):  # each writes one log line
            connection = http.client.HTTPConnection(self.server.address, timeout=BOUND_S)
            connection.request("PUT", f"/v1/profiles/{number}", b"{", {"Content-Type": "application/json"})
            self.assertEqual(connection.getresponse().status // 100, 4)
            connection.close()
        self.configure(workers=3)
        self.hang_up("require a restart")

    def status_of_two_megabytes(self):
        try:
            return self.server.ask("POST", "/v1/jobs", " " * (2 << 20))[0]
        except ConnectionError:  # rejected before the body was sent
            return 413

    def test_limits_change_and_settings_that_need_a_restart_are_named_and_kept(self):
        self.assertNotEqual(self.status_of_two_megabytes(), 413)
        self.configure(max_body_mb=1, listen="127.0.0.1:1", workers=3)
        messages = self.hang_up("require a restart")
        self.assertIn("settings reloaded; changed: max_body_mb", messages)
        self.assertEqual([message for message in messages if "restart" in message],
                         ["these settings require a restart and keep their values: workers"])  # --listen is a flag
        self.assertEqual(self.status_of_two_megabytes(), 413)
        self.configure()
        self.hang_up("changed: max_body_mb")
        self.assertNotEqual(self.status_of_two_megabytes(), 413)

    def test_a_wrong_file_leaves_the_settings_as_they_were(self):
        self.configure(max_body_mb=1)
        self.hang_up("settings reloaded")
        for text in ("max_body_mb = 'many'\n", "max_bdoy_mb = 3\n", "max_body_mb = \n"):
            self.config.write_text(text)
            messages = self.hang_up("settings not reloaded, all keep their values")
            self.assertEqual(len(messages), 1, messages)
            self.assertIn("perseus.toml:1", messages[0])
            self.assertEqual(self.status_of_two_megabytes(), 413)

    def test_the_log_file_is_opened_anew(self):
        old = self.log.rename(self.at / "perseus.log.1")
        self.hang_up("settings reloaded")
        length = old.stat().st_size
        self.assertGreater(length, 0)
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/p", {})[0], 422)
        self.assertTrue(any("PUT /v1/profiles/p" in line for line in self.log.read_text().splitlines()))
        self.assertEqual(old.stat().st_size, length)
        self.assertEqual(self.log.stat().st_mode & 0o077, 0)

    def test_a_log_file_that_cannot_be_opened_leaves_everything_as_it_was(self):
        nowhere = self.at / "nowhere"
        for file, why in ((nowhere / "perseus.log", f"; there is no directory {nowhere}"),
                          (self.at, " cannot be appended to: Is a directory")):
            self.configure(log_file=str(file), max_body_mb=1)
            self.assertEqual(self.hang_up("settings"), [f"settings not reloaded, all keep their values: log_file: '{file}'{why}"])
            self.assertNotEqual(self.status_of_two_megabytes(), 413)
        self.configure(max_body_mb=1)
        self.assertIn("settings reloaded; changed: max_body_mb", self.hang_up("settings reloaded"))
        self.assertEqual(self.status_of_two_megabytes(), 413)

    def test_a_server_does_not_start_without_its_log(self):
        for file, why in ((self.at / "logs" / "perseus.log", f"there is no directory {self.at / 'logs'}"),
                          (self.at, "cannot be appended to: Is a directory")):
            with self.assertRaisesRegex(RuntimeError, re.escape(f"log_file: '{file}'") + ".*" + re.escape(why)):
                Server(str(self.at / "other"), "--log-file", str(file))
        self.assertFalse((self.at / "logs").exists())

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_lost_lines_are_reported_once_on_standard_error(self):
        server = Server(str(self.at / "other"), "--log-file", "/dev/full")
        try:
            self.assertEqual(server.ask("PUT", "/v1/profiles/p", {})[0], 422)
        finally:
            server.stop()
        self.assertEqual(len(server.log), 1, server.log)
        self.assertRegex(json.loads(server.log[0])["message"],
                         "^lines of the log are lost: /dev/full: No space left on device$")

    def test_tokens_are_read_again(self):
        secret = self.server.first_secret(self.messages)
        made = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure", "name": "first"}, token=secret)[1]
        other = self.server.ask("POST", "/v1/tokens", {"role": "read-only", "name": "other"}, token=made["token"])[1]
        self.assertEqual(self.server.ask("GET", "/v1/jobs", token=other["token"])[0], 200)
        with contextlib.closing(sqlite3.connect(self.at / "data" / "perseus.db")) as database:
            database.execute("DELETE FROM tokens WHERE name = 'other'")
            database.commit()
        self.assertEqual(self.server.ask("GET", "/v1/jobs", token=other["token"])[0], 200)
        self.server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + BOUND_S
        while self.server.ask("GET", "/v1/jobs", token=other["token"])[0] != 401:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)


if __name__ == "__main__":
    served.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
