#!/usr/bin/env python3
"""Checks that the C and C++ examples of the Markdown files compile, and that the Python examples parse.

A comment above the example declares the names that are the reader's: <!-- given: int rank; void run_forward(); -->. The body
of a C or C++ example becomes a function's, its #include lines come first. Pages that tools make are left out: their blocks are
signatures.

usage: check_snippets.py COMPILER [ROOT]   prints file:line of each example that is wrong; exit 1 if there is one
"""

import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"(?:<!-- given: (?P<given>[^\n]*) -->\n)?```(?P<language>cpp|c|python)\n(?P<text>.*?)^```", re.S | re.M)


def compiled(compiler: str, root: pathlib.Path, language: str, given: str, text: str) -> str:
    """The compiler's messages; empty: it takes the example."""
    lines = text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = [line for line in lines if not line.startswith("#include")]
    source = "\n".join([*includes, given, "void example();", "void example() {", *body, "}", ""])
    of = ["-x", "c++", "-std=c++20"] if language == "cpp" else ["-x", "c", "-std=c11"]
    done = subprocess.run([compiler, *of, "-fsyntax-only", "-Wall", "-I", root / "include", "-"], input=source,
                          capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""


def parsed(name: str, text: str) -> str:
    try:
        compile(text, name, "exec")
        return ""
    except SyntaxError as error:
        return f"{error}\n"


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    compiler = sys.argv[1]
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parent.parent).resolve()
    pages = sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])
    checked, wrong = 0, 0
    for page in pages:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            checked += 1
            if block["language"] == "python":
                message = parsed(page.name, block["text"])
            else:
                message = compiled(compiler, root, block["language"], block["given"] or "", block["text"])
            if message:
                wrong += 1
                print(f"{page.relative_to(root)}:{text.count(chr(10), 0, block.start()) + 1}: the example is wrong\n{message}", end="")
    print(f"{checked} examples in {len(pages)} pages, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
