#!/usr/bin/env python3
"""Reads include/perseus/perseus.h: functions with their number of arguments, structs' fields, constants.

As a program: prints them as the macro calls that print_layout.cpp includes.
usage: header.py HEADER
"""

import re
import sys
from pathlib import Path


class Header:
    def __init__(self, path):
        text = re.sub(r"/\*.*?\*/", " ", Path(path).read_text(), flags=re.S)
        self.functions = {}
        for name, arguments in re.findall(r"PERSEUS_API [^;(]*?(perseus_\w+)\s*\((.*?)\)\s*;", text, flags=re.S):
            self.functions[name] = _count(arguments)
        self.structs = {}
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (perseus_\w+);", text, flags=re.S):
            self.structs[name] = [field for line in body.split(";") for field in _fields(line)]
        self.constants = re.findall(r"\b(PERSEUS_[A-Z_]+) =", text)
        self.constants += re.findall(r"#define (PERSEUS_ABI_VERSION)", text)


def _count(arguments):
    """Commas outside of brackets, as callbacks have arguments of their own."""
    depth, count = 0, 0
    if arguments.strip() in ("", "void"):
        return 0
    for character in arguments:
        depth += (character == "(") - (character == ")")
        count += character == "," and depth == 0
    return count + 1


def _fields(declaration):
    function = re.search(r"\(\*\s*(\w+)\)\s*\(", declaration)
    if function:
        return [function.group(1)]
    first, *others = declaration.split(",")
    names = [first.split()[-1:]] + [[other] for other in others]
    return [name.strip(" *\n") for group in names for name in group if name.strip()]


if __name__ == "__main__":
    header = Header(sys.argv[1])
    for struct, fields in header.structs.items():
        print(f"STRUCT({struct})", *(f"FIELD({struct}, {field})" for field in fields), sep="\n")
    print(*(f"CONSTANT({name})" for name in header.constants), sep="\n")
