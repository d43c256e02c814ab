#!/usr/bin/env python3
"""Prints docs/api_c.md from include/perseus/perseus.h, or docs/api_python.md from the doc strings of python/perseus.

usage: render_library_api.py c|python
"""

import ast
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = "include/perseus/perseus.h"
MODULES = [  # what a training program imports
    "client", "measure", "adapters.torch_pipelining", "adapters.megatron", "adapters.deepspeed", "adapters.lightning",
    "adapters.transformers", "adapters.plain", "options"]
BLOCK = re.compile(r"(/\*.*?\*/)|(#define PERSEUS_ABI[^\n]*|^(?:PERSEUS_API|typedef|enum)[^;{]*(?:\{.*?\}[^;]*)?;)", re.S | re.M)


def text_of(comment: str) -> str:
    """A C comment without its stars; a blank line stays a paragraph."""
    lines = comment.removeprefix("/*").removesuffix("*/").splitlines()
    return "\n".join(line.strip().removeprefix("*").strip() for line in lines).strip()


def name_of(declaration: str) -> str:
    """The function, struct or enum that a declaration declares."""
    function = re.search(r"(perseus_\w+)\(", declaration) if declaration.startswith("PERSEUS_API") else None
    return function[1] if function else re.search(r"(?:enum|struct|#define)\s+(\w+)", declaration)[1]


def print_c() -> None:
    source = (ROOT / HEADER).read_text()
    print(f"# The C API\n\n<!-- Made from {HEADER} by tools/render_library_api.py; change that. -->\n")
    print(f"`#include <perseus/perseus.h>` ([the header](../{HEADER})), link with `-lperseus`. For C++, "
          "[perseus.hpp](../include/perseus/perseus.hpp) wraps it in classes. [The client](client.md) describes its behavior.\n")
    comment, first = "", True
    for block in BLOCK.finditer(source):
        if block[1]:
            comment = text_of(block[1])
            if first:
                print(comment)
            first, comment = False, "" if first else comment
        else:
            declaration = block[2].replace("PERSEUS_API ", "", 1)
            print(f"\n## {name_of(block[2])}\n")
            if comment:
                print(comment + "\n")
            print(f"```c\n{declaration}\n```")
            comment = ""


def signature(function: ast.FunctionDef, owner: str = "") -> str:
    arguments = ast.unparse(function.args)
    if owner:
        arguments = re.sub(r"^self(, )?", "", arguments)
    return f"{owner}{function.name}({arguments})"


def is_property(function: ast.FunctionDef) -> bool:
    return any(getattr(decorator, "id", "") == "property" for decorator in function.decorator_list)


def print_doc(node: ast.AST) -> None:
    """The doc string: an indented part after a blank line is code, a line "Errors: ..." with what is indented below it an item."""
    text = ast.get_docstring(node) or ""
    text = re.sub(r"^(Input|Output|Errors|Cost|Threads): *(.*(?:\n {4}.*)*)", lambda item:
                  f"- **{item[1]}:** " + re.sub(r"\n +", "\n  ", item[2]), text, flags=re.M)
    text = re.sub(r"(?<=\n\n)((?: {4}.*(?:\n|$)|\n(?= {4}))+)", lambda code:
                  "```python\n" + textwrap.dedent(code[0]).rstrip("\n") + "\n```\n", text)
    if text:
        print("\n" + text)


def print_module(name: str) -> None:
    tree = ast.parse((ROOT / "python/perseus" / (name.replace(".", "/") + ".py")).read_text())
    print(f"\n## perseus.{name}")
    print_doc(tree)
    for node in tree.body:
        if getattr(node, "name", "_").startswith("_") or name == "options":
            continue
        if isinstance(node, ast.FunctionDef):
            print(f"\n### {name}.{node.name}\n\n```python\n{signature(node)}\n```")
            print_doc(node)
        elif isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef)]
            built = [signature(m, "").replace("__init__", node.name).replace("self, ", "", 1) for m in methods
                     if m.name == "__init__"] or [node.name]
            print(f"\n### {name}.{node.name}\n\n```python\n{built[0]}\n```")
            print_doc(node)
            public = [m for m in methods if not m.name.startswith("_") and ast.get_docstring(m)]
            if public:
                print("\n| member | |\n| --- | --- |")
            for method in public:
                shown = method.name if is_property(method) else signature(method, ".").removeprefix(".")
                print(f"| `{shown}` | {' '.join(ast.get_docstring(method).split())} |")


def print_python() -> None:
    print("# The Python API\n\n<!-- Made from the doc strings of python/perseus by tools/render_library_api.py; change those. -->\n")
    print("[Adapters](adapters.md) has the lines for each framework, [the client](client.md) its behavior. "
          "Options of `start()` and `install()` are the members of [perseus_options](api_c.md#perseus_options).")
    for name in MODULES:
        print_module(name)


if __name__ == "__main__":
    printers = {"c": print_c, "python": print_python}
    if len(sys.argv) != 2 or sys.argv[1] not in printers:
        sys.exit(__doc__)
    printers[sys.argv[1]]()
