#!/usr/bin/env python3
"""Man pages and completion contain every command and option of --help, and the tools that read them accept them.

usage: test_manual.py PERSEUS CLOCKD MANUAL-FOLDER [unittest's arguments]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PERSEUS = CLOCKD = ""
MANUAL = pathlib.Path()
CLOCKD_PAGE = ROOT / "packaging/man/perseus-clockd.8"


def run(*command, **named):
    return subprocess.run(command, capture_output=True, text=True, **named)


def commands_under(*path):
    """Each command as its path, with the options of its --help."""
    help_text = run(PERSEUS, *path, "--help").stdout
    found = {path: set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]*)", help_text, re.M))}
    listed = help_text.partition("Subcommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  ([a-z][a-z-]*)", listed, re.M):
        found.update(commands_under(*path, name))
    return found


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = commands_under()
        assert len(cls.commands) > 25 and sum(map(len, cls.commands.values())) > 150, cls.commands

    def test_pages_contain_every_option(self):
        for path, options in self.commands.items():
            page = (MANUAL / ("-".join(["perseus", *path[:1]]) + ".1")).read_text().replace("\\-", "-")
            self.assertIn(" ".join(["perseus", *path]), page)
            for option in options:
                self.assertIn(f"\\fB{option}\\fR", page, path)

    def test_completion_contains_every_command_and_option(self):
        scripts = {name: (MANUAL / name).read_text() for name in ("perseus.bash", "_perseus", "perseus.fish")}
        for path, options in self.commands.items():
            name = " ".join(["perseus", *path])
            for file, text in scripts.items():
                self.assertRegex(text, rf"""["']{name}["']""", file)
            bash = re.search(rf'^    "{name}"\)\n(?:      case .*\n)?      choices="(.*)"', scripts["perseus.bash"], re.M)
            self.assertLessEqual(options, set(bash[1].split()), name)
            fish = "".join(line for line in scripts["perseus.fish"].splitlines(True) if f"_is '{name}'\"" in line)
            zsh = re.search(rf'^    "{name}"\)\n(.*?);;', scripts["_perseus"], re.M | re.S)[1]
            for option in options:
                self.assertIn(f" -l {option[2:]} ", fish, name)
                self.assertIn(f"        {option}:", zsh, name)

    def test_bash_completes(self):
        def completed(*words):
            script = (f"source '{MANUAL}/perseus.bash'; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
                      "_perseus; echo \"${COMPREPLY[@]}\"")
            return run("bash", "-c", script).stdout.split()
        self.assertEqual(completed("perseus", "rela"), ["relay"])
        self.assertEqual(completed("perseus", "job", "li"), ["list"])
        self.assertEqual(completed("perseus", "plan", "x.csv", "--microbatches"), ["--microbatches"])
        self.assertEqual(completed("perseus", "plan", "--out", "''"), [])  # a file name, by readline

    def test_shells_read_the_scripts(self):
        for shell, name in (("bash", "perseus.bash"), ("zsh", "_perseus"), ("fish", "perseus.fish")):
            if shutil.which(shell):
                done = run(shell, "-n", str(MANUAL / name))
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_the_page_of_the_daemon_is_that_of_its_help(self):
        page = CLOCKD_PAGE.read_text().replace("\\-", "-")
        options = set(re.findall(r"--[a-z]+", run(CLOCKD, "--help").stdout))
        self.assertEqual(set(re.findall(r"--[a-z]+", page)), options)
        self.assertIn(run(CLOCKD, "--version").stdout.split()[1], page.splitlines()[0])

    def test_readers_of_pages_have_no_complaint(self):
        pages = [str(path) for path in [*MANUAL.glob("*.1"), CLOCKD_PAGE]]
        self.assertGreater(len(pages), 15)
        for tool in (["groff", "-man", "-ww", "-z", "-Kutf8"], ["mandoc", "-Tlint", "-Wwarning"]):
            if shutil.which(tool[0]):
                for page in pages:
                    done = run(*tool, page)
                    self.assertEqual(done.stdout + done.stderr, "", page)


if __name__ == "__main__":
    PERSEUS, CLOCKD, MANUAL = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
