"""Every public function with what people pass by mistake: training goes on, one line says what is wrong; PERSEUS_STRICT=1
raises for options."""

import os
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

from recording import RecordedTest
from stand_ins import pipelining

from perseus import client, measure
from perseus.adapters import deepspeed, megatron, plain, torch_pipelining

sys.path.insert(0, str(Path(__file__).parent / "stand_ins"))
STRICT = mock.patch.dict(os.environ, PERSEUS_STRICT="1")


class Unfriendly:
    """Whatever is done with it raises."""

    def __getattribute__(self, name):
        raise RuntimeError("leave me alone")

    def __repr__(self):
        raise RuntimeError("leave me alone")

    __str__ = __eq__ = __index__ = __fspath__ = __float__ = __repr__
    __hash__ = None


WRONG = (None, "http://host:7787", -7, 1.5, [], object(), int, len, Unfriendly())


def schedule_of_2():
    stage = pipelining.PipelineStage(0, 2, 0, 2)
    return pipelining.Schedule1F1B(stage, 4, lambda *_: 0)


class Objects(RecordedTest):
    def test_of_no_framework_are_named(self):
        for adapter in (plain, torch_pipelining, megatron, deepspeed):
            for wrong in (None, 7, "http://host:7787", Unfriendly(), int):
                with self.subTest(f"{adapter.__name__} {type(wrong).__name__}"):
                    if wrong is None and adapter in (megatron, deepspeed):
                        continue  # their own default
                    client._said.clear()
                    with self.assertLogs("perseus", "WARNING") as logged:
                        self.assertIsNone(adapter.install(wrong))
                    self.assertEqual(len(logged.output), 1)
                    self.assertIn("cannot be followed, nothing is measured or planned", logged.output[0])
                    with self.assertNoLogs("perseus"):
                        adapter.uninstall(wrong)
        measure.loop(None)
        self.assertIn("nothing was measured", measure.report())

    def test_that_cannot_be_printed_or_compared(self):
        calls = [client.set_speed, client.begin, client.end, client.on_instruction_begin, client.on_step_begin]
        for running in (False, True):
            for wrong in WRONG:
                for call in calls:
                    call(wrong)
                    call(*(("train", wrong) if call is client.on_step_begin else ("forward", wrong, wrong)))
                client.step_table(wrong, wrong)
            client.start()
        self.assertTrue(client.current().active)


class Clocks(RecordedTest):
    """Of the program, or its stream."""

    def test_that_are_none(self):
        started = client.start()
        for wrong in (None, 7, lambda: 1.5, lambda: 1 // 0):
            client._said.clear()
            with self.assertLogs("perseus", "WARNING") as logged, mock.patch("sys.unraisablehook") as ignored:
                started.time_with(wrong)  # the library calls it
            ignored.assert_not_called()
            self.assertEqual(len(logged.output), 1)
            self.assertIn("time_with(): ignored: ", logged.output[0])
        for wrong in (1.5, "stream", object()):
            client._said.clear()
            with self.assertLogs("perseus", "WARNING") as logged:
                self.assertFalse(started.time_with_cuda(wrong))
            self.assertIn("time_with_cuda(): ignored: ", logged.output[0])


class Options(RecordedTest):
    def refused(self, call, message):
        """One line names it, and nothing raises; with PERSEUS_STRICT=1 the same raises."""
        self.restart()
        with self.assertLogs("perseus", "ERROR") as logged:
            call()
        self.assertEqual(len(logged.output), 1)
        self.assertIn(message, logged.output[0])
        self.restart()
        with STRICT, self.assertRaisesRegex((TypeError, ValueError), message):
            call()
        self.assertIsNone(client.current())

    def test_a_server_that_is_no_url(self):
        names = "host:7787", "ftp://host", "http://", "http://:7787", "http://host:port", "http://::1", "http://ho st"
        for server in (*names, "http://host:99999"):
            with self.subTest(server):
                self.refused(lambda: client.start(server=server), f"option server: '{server}' is no URL; allowed: http://")
        for server in ("", "http://host", "https://host:7787/perseus/", "http://[::1]:7787", "http://user:token@host"):
            with STRICT:
                self.assertTrue(client.start(server=server, job="j").active)
            client.stop()

    def test_no_token_of_a_url_is_printed(self):
        self.refused(lambda: client.start(server="http://user:secret@host:port"), "'http://host:port' is no URL")
        self.refused(lambda: client.start(server="http://u:secret@a:1,http://u:secret@b:x"), "'http://a:1,http://b:x' is no URL")

    def test_a_server_of_the_environment_that_is_no_url(self):
        with mock.patch.dict(os.environ, PERSEUS_SERVER="host:7787"):
            with self.assertLogs("perseus", "WARNING") as logged:
                self.assertTrue(client.start().active)
            self.assertIn("PERSEUS_SERVER is 'host:7787', ignored", logged.output[0])
            with STRICT, self.assertRaises(ValueError):
                client.stop()
                client.start()

    def test_of_install_are_named_at_once(self):
        for install in (
            lambda **options: plain.install(Model(), **options),
            lambda **options: torch_pipelining.install(schedule_of_2(), **options),
            megatron.install,
            deepspeed.install,
        ):
            self.refused(lambda: install(sever="x"), "unknown option: sever")
            self.refused(lambda: install(microbatches="many"), "option microbatches: 'many' is no whole number")
            self.refused(lambda: install(server="host"), "is no URL")
            self.refused(lambda: install(tp_degree=0), "0 is below 1")

    def test_arguments_of_install_that_do_not_fit(self):
        schedule = schedule_of_2()
        for install in (torch_pipelining.install, plain.install):
            self.refused(install, "missing a required argument")
        self.refused(lambda: torch_pipelining.install(schedule, schedule), "too many positional arguments")
        self.refused(lambda: plain.install(Model(), model="gpt"), "multiple values for argument 'model'")
        self.refused(lambda: measure.loop(Model(), start=4), "multiple values for argument 'start'")

    def test_the_option_schedule_is_no_schedule(self):
        schedule = schedule_of_2()
        torch_pipelining.install(schedule, schedule="gpipe")
        schedule.step()
        self.assertEqual(self.options()["schedule"], "gpipe")

    def test_of_install_that_only_the_first_step_shows(self):
        def step():
            schedule = schedule_of_2()
            torch_pipelining.install(schedule, dp_degree=3, rank=7)
            schedule.step()

        self.refused(step, "rank: 7 is not below dp_degree x pp_degree x tp_degree, 6")

    def test_as_text_count(self):
        schedule = schedule_of_2()
        torch_pipelining.install(schedule, tp_degree="1", dp_degree="3", pp_degree=None)
        schedule.step()
        self.assertEqual(self.options()["degrees"], "3 2 1")


class Model:
    """As plain.py needs it before torch 2.1."""

    def register_forward_pre_hook(self, hook):
        return types.SimpleNamespace(remove=lambda: None)

    register_forward_hook = register_forward_pre_hook


if __name__ == "__main__":
    unittest.main()
