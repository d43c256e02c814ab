"""perseus.visible_log: where the client's messages appear in programs that configure logging differently, or not at all."""

import os
import subprocess
import sys
import unittest

START = """
from perseus import client
client.start(rank=RANK, dp_degree=4)
client.log.log(logging.INFO, "a plan")
client.stop()
"""


class Visible(unittest.TestCase):
    def printed(self, before="", rank=0, after="", **environment):
        program = "import logging\n" + before + START.replace("RANK", str(rank)) + after
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
        )
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        return run.stderr.splitlines()

    WARNING = "from a thread: \xe9 \ufffd"  # of the recording library
    THE_LIBRARY_S = "perseus: warning: " + WARNING

    def test_without_any_configuration(self):
        self.assertEqual(self.printed(), ["perseus: started", self.THE_LIBRARY_S, "perseus: a plan"])

    def test_other_ranks_print_only_warnings(self):
        self.assertEqual(self.printed(rank=2), [self.THE_LIBRARY_S])
        self.assertEqual(len(self.printed(rank=2, PERSEUS_LOG="info")), 3)

    def test_the_variable(self):
        self.assertEqual(self.printed(PERSEUS_LOG="warning"), [self.THE_LIBRARY_S])
        self.assertEqual(self.printed(PERSEUS_LOG="off"), [])
        lines = self.printed(PERSEUS_LOG="loud")
        self.assertEqual(lines[0], "perseus: warning: PERSEUS_LOG is 'loud', ignored; allowed: off, warning, info")
        self.assertEqual(len(lines), 4)

    def test_a_root_logger_at_warning_prints_it_in_its_own_format(self):
        """As Megatron's and, with a handler of its own, torchtitan's."""
        for before in (
            "logging.basicConfig(format='root %(levelname)s %(message)s')\n",
            "logging.basicConfig(format='root %(levelname)s %(message)s', level=logging.INFO)\n",
        ):
            self.assertEqual(self.printed(before), ["root INFO started", "root WARNING " + self.WARNING, "root INFO a plan"])

    def test_a_handler_that_takes_only_warnings(self):
        before = "logging.basicConfig(format='root %(message)s')\nlogging.getLogger().handlers[0].setLevel(logging.WARNING)\n"
        self.assertEqual(self.printed(before), ["perseus: started", "root " + self.WARNING, "perseus: a plan"])

    def test_a_level_of_the_program_counts(self):
        self.assertEqual(self.printed("logging.getLogger('perseus').setLevel(logging.WARNING)\n"), [self.THE_LIBRARY_S])

    def test_logging_configured_after_the_start_repeats_no_line(self):
        after = "logging.basicConfig(format='root %(message)s')\nclient.log.info('another plan')\n"
        self.assertEqual(self.printed(after=after)[3:], ["root another plan"])

    def test_a_configuration_that_disables_other_loggers(self):
        before = "import perseus.client, logging.config\nlogging.config.dictConfig({'version': 1})\n"
        self.assertEqual(len(self.printed(before)), 3)

    def test_a_closed_standard_error_stops_nothing(self):
        self.assertEqual(self.printed("import sys\nsys.stderr = None\n"), [])


if __name__ == "__main__":
    unittest.main()
