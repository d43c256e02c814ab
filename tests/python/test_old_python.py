"""The package runs on Python 3.8, the oldest that pyproject.toml allows: its syntax, and what it takes from the standard
library and from builtins. later() lists what came later; a name that is missing in its tables is not found.

Python 3.8 to 3.13 also run it, if they are on PATH as python3.8 and so on; each that is not is printed."""

import ast
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python"
OLDEST = (3, 8)

# name: the version that brought it
MODULES = {"zoneinfo": (3, 9), "graphlib": (3, 9), "tomllib": (3, 11), "annotationlib": (3, 14)}
FUNCTIONS = {
    "functools.cache": (3, 9), "ast.unparse": (3, 9), "math.lcm": (3, 9), "math.nextafter": (3, 9), "random.randbytes": (3, 9),
    "asyncio.to_thread": (3, 9), "os.waitstatus_to_exitcode": (3, 9), "os.pidfd_open": (3, 9), "types.GenericAlias": (3, 9),
    "importlib.resources.files": (3, 9), "itertools.pairwise": (3, 10), "contextlib.aclosing": (3, 10),
    "inspect.get_annotations": (3, 10),
    "sys.stdlib_module_names": (3, 10), "sys.orig_argv": (3, 10), "types.NoneType": (3, 10), "types.UnionType": (3, 10),
    "threading.gettrace": (3, 10), "bisect.key": (3, 10), "contextlib.chdir": (3, 11), "hashlib.file_digest": (3, 11),
    "operator.call": (3, 11), "enum.StrEnum": (3, 11), "datetime.UTC": (3, 11), "sys.exception": (3, 11), "math.cbrt": (3, 11),
    "itertools.batched": (3, 12), "math.sumprod": (3, 12), "sys.monitoring": (3, 12), "calendar.Month": (3, 12),
    "copy.replace": (3, 13), "os.process_cpu_count": (3, 13), "warnings.deprecated": (3, 13), "queue.ShutDown": (3, 13),
    "typing.ParamSpec": (3, 10), "typing.TypeAlias": (3, 10), "typing.Self": (3, 11), "typing.assert_never": (3, 11),
    "typing.override": (3, 12), "typing.Annotated": (3, 9),
}  # fmt: skip
METHODS = {  # of objects whose type the syntax does not tell; the names are used for nothing else in the package
    "removeprefix": (3, 9), "removesuffix": (3, 9), "is_relative_to": (3, 9), "with_stem": (3, 9), "readlink": (3, 9),
    "bit_count": (3, 10), "hardlink_to": (3, 10), "add_note": (3, 11), "walk_up": (3, 12),
}  # fmt: skip
BUILTINS = {"aiter": (3, 10), "anext": (3, 10), "ExceptionGroup": (3, 11), "BaseExceptionGroup": (3, 11)}
KEYWORDS = {"strict": (3, 10), "slots": (3, 10), "kw_only": (3, 10), "root_dir": (3, 10), "delete_on_close": (3, 12)}
GENERICS = {"list", "dict", "set", "frozenset", "tuple", "type"}  # list[int]: 3.9


def later(source):
    """What of that source Python 3.8 does not have: lines of text."""
    try:
        tree = ast.parse(source, feature_version=OLDEST)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    modules = {}  # the name here: the module
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update({alias.asname or alias.name: alias.name for alias in node.names})
    found = []

    def check(node, table, name):
        if table.get(name, OLDEST) > OLDEST:
            found.append(f"line {node.lineno}: {name} came with Python {'.'.join(map(str, table[name]))}")

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                check(node, MODULES, alias.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module:
            check(node, MODULES, node.module.split(".")[0])
            for alias in node.names:
                check(node, FUNCTIONS, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Attribute):
            check(node, METHODS, node.attr)
            owner = ast.unparse(node.value)
            check(node, FUNCTIONS, f"{modules.get(owner, owner)}.{node.attr}")
        elif isinstance(node, ast.Name):
            check(node, BUILTINS, node.id)
        elif isinstance(node, ast.keyword):
            # Python 3.8 takes these names where they are a function's own
            if node.arg in KEYWORDS:
                check(node.value, KEYWORDS, node.arg)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in GENERICS:
            found.append(f"line {node.lineno}: {node.value.id}[...] came with Python 3.9")
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.BitOr):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
            for side in sides:
                dictionary = isinstance(side, (ast.Dict, ast.DictComp)) or ast.unparse(side).startswith(("dict(", "vars("))
                a_type = ast.unparse(side) in (*GENERICS, "None", "int", "str", "float", "bool", "bytes")
                if dictionary or a_type:
                    found.append(f"line {node.lineno}: {ast.unparse(node)}: | of dicts or types came with Python 3.9 or 3.10")
    return found


# Imports the package, and does what a training process does.
PROGRAM = """
import importlib, os, pathlib, perseus
for file in pathlib.Path(perseus.__file__).parent.glob("**/*.py"):
    name = ".".join(file.relative_to(pathlib.Path(perseus.__file__).parent.parent).with_suffix("").parts)
    if name not in ("perseus.adapters.lightning", "perseus.adapters.transformers"):  # they import their frameworks
        importlib.import_module(name)
from perseus import client
started = client.start(device="none", schedule="1f1b", microbatches=2)
assert started.active, started.reason
client.on_step_begin()
client.on_instruction_begin("forward")
client.on_instruction_end("forward")
client.on_step_end()
started.statistics(), started.status()
child = os.fork()
if child == 0:
    assert client.current() is None
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.stop()
"""


class OldPython(unittest.TestCase):
    def test_the_package_declares_it(self):
        declared = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (PACKAGE / "pyproject.toml").read_text())
        self.assertEqual(tuple(map(int, declared.groups())), OLDEST)

    def test_the_package_has_nothing_newer(self):
        files = sorted([*PACKAGE.glob("perseus/**/*.py"), PACKAGE / "setup.py"])
        self.assertGreater(len(files), 10)
        for file in files:
            with self.subTest(file.relative_to(PACKAGE)):
                self.assertEqual(later(file.read_text(encoding="utf-8")), [])

    @unittest.skipUnless(os.environ.get("PERSEUS_LIBRARY"), "PERSEUS_LIBRARY is not set: run by ctest -L python")
    def test_these_versions_run_it(self):
        for minor in range(8, 14):
            python = shutil.which(f"python3.{minor}")
            if python is None or subprocess.run([python, "-c", ""], capture_output=True).returncode != 0:
                print(f"python3.{minor} is not here", file=sys.stderr)
                continue
            with self.subTest(python):
                environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
                command = [python, "-B", "-W", "error", "-c", PROGRAM]
                ran = subprocess.run(command, env=environment, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_newer_syntax_is_found(self):
        for source in (
            "match x:\n  case 1: pass",
            "with (open('a') as a, open('b') as b): pass",
            "try: pass\nexcept* ValueError: pass",
            "def f[T](x: T): pass",
            "type X = int",
            "x: list[int] = []",
            "def f(x: int | None): pass",
            "x = {} | other",
            "x |= {1: 2}",
            "name.removeprefix('a')",
            "import tomllib",
            "from functools import cache",
            "import functools as f\nf.cache",
            "zip(a, b, strict=True)",
            "raise ExceptionGroup('', [])",
        ):
            with self.subTest(source):
                self.assertNotEqual(later(source), [])
        for source in ("x = flags | 4", "f(*a, **b)", "if (n := 3) > 2: pass", "def f(a, /): pass", "f'{a=}'"):
            self.assertEqual(later(source), [])


if __name__ == "__main__":
    unittest.main()
