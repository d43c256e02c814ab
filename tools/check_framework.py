#!/usr/bin/env python3
"""Checks that a checkout of a training framework has what the adapters in python/perseus/adapters rely on.

usage: check_framework.py --megatron DIR | --deepspeed DIR | --torch DIR | --lightning DIR ...    see --help

Input: tests/frameworks/contracts/FRAMEWORK.json: symbols, parameters, keys and names used, each with the versions that have
them. Output: a line per item, "OK", "changed" or "missing", and what the adapter does with it. Exit code 1 if one is
changed or missing, 2 if DIR is no checkout of that framework. The framework is read, never imported.
"""

import argparse
import ast
import json
import re
import sys
from pathlib import Path

CONTRACTS = Path(__file__).resolve().parents[1] / "tests" / "frameworks" / "contracts"
FRAMEWORKS = ("megatron", "deepspeed", "torch", "torchtitan", "lightning", "transformers", "accelerate", "ray")


def existing(root, item):
    return next((root / file for file in [item["file"], *item.get("or_files", [])] if (root / file).exists()), None)


def version_of(root, source):
    """The version of the checkout as numbers: (0, 12, 3)."""
    path = existing(root, source) or root / source["file"]
    text = path.read_text(encoding="utf-8")
    found = [re.search(pattern, text, re.MULTILINE) for pattern in source["patterns"]]
    if not all(found):
        raise ValueError(f"{path} names no version")
    return tuple(int(number) for match in found for number in match.group(1).split("."))


def applies(item, version):
    """Whether that version is to have the item: since <= version < before."""
    since, before = (tuple(map(int, item.get(key, default).split("."))) for key, default in (("since", "0"), ("before", "9999")))
    return since <= version < before


def definitions(tree, prefix=""):
    """{"function" or "Class.method" or "NAME" or "Class.NAME": node}"""
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[prefix + node.name] = node
        elif isinstance(node, ast.ClassDef):
            found[prefix + node.name] = node
            found.update(definitions(node, f"{prefix}{node.name}."))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found[prefix + target.id] = node
        elif isinstance(node, (ast.If, ast.Try)):
            found.update(definitions(node, prefix))
    return found


def names_used(node):
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return names | {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}


def parameters(function):
    """(names that may be given by position, names that may not)"""
    arguments = function.args
    return [each.arg for each in arguments.posonlyargs + arguments.args], [each.arg for each in arguments.kwonlyargs]


def problem(item, found):
    """(status, error) of a definition that an item requires."""
    node = found.get(item["name"])
    if node is None:
        return "missing", ""
    if any(key in item for key in ("parameters", "keywords", "positions")):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return "changed", "it is no function"
        by_position, keywords = parameters(node)
        known = by_position + keywords
        lacking = [name for name in item.get("parameters", []) if name not in known]
        if lacking and node.args.kwarg is None:
            return "changed", f"no parameter {', '.join(lacking)}; there are {', '.join(known)}"
        given_by_position = [name for name in item.get("keywords", []) if name not in keywords]
        if given_by_position:
            return "changed", f"{', '.join(given_by_position)} must be keyword-only"
        required = by_position[: len(by_position) - len(node.args.defaults)]
        if item.get("callable_without_arguments") and required:
            return "changed", f"it needs {', '.join(required)}"
        for name, position in item.get("positions", {}).items():
            if known[position : position + 1] != [name]:
                return "changed", f"parameter {position} is not {name}; they are {', '.join(known)}"
    lacking = sorted(set(item.get("uses", [])) - names_used(node))
    if lacking:
        return "changed", f"it does not use {', '.join(lacking)}"
    if "keys" in item:
        keys = {used for each in ast.walk(node) if isinstance(each, ast.Dict) for key in each.keys if key for used in names_used(key)}
        lacking = sorted(set(item["keys"]) - keys)
        if lacking:
            return "changed", f"no entry for {', '.join(lacking)}"
    return "OK", ""


def check_item(root, item):
    path = existing(root, item)
    if path is None:
        return "missing", f"no file {' or '.join([item['file'], *item.get('or_files', [])])}"
    found = definitions(ast.parse(path.read_text(encoding="utf-8")))
    if "only" in item:
        others = sorted(name for name in found if re.fullmatch(item["only"], name) and name not in item["names"])
        return ("changed", f"new: {', '.join(others)}") if others else ("OK", "")
    return problem(item, found)


def check(framework, root):
    """Prints the result of each item. Whether all are as the adapters need them."""
    contract = json.loads((CONTRACTS / f"{framework}.json").read_text(encoding="utf-8"))
    version = version_of(root, contract["version"])
    print(f"{contract['framework']} {'.'.join(map(str, version))} in {root}")
    least = tuple(map(int, contract["since"].split(".")))
    if version < least:
        print(f"missing  versions before {contract['since']} are not supported")
        return False
    fine = True
    for item in contract["items"]:
        if not applies(item, version):
            continue
        status, reason = check_item(root, item)
        fine = fine and status == "OK"
        name = item.get("name") or item["only"]
        path = existing(root, item)
        file = path.relative_to(root) if path else item["file"]
        print(f"{status:8} {file}: {name}{': ' + reason if reason else ''} ({item['for']})")
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for framework in FRAMEWORKS:
        parser.add_argument(f"--{framework}", metavar="DIR", type=Path, help=f"a checkout of {framework}")
    arguments = vars(parser.parse_args())
    given = {framework: arguments[framework] for framework in FRAMEWORKS if arguments[framework]}
    if not given:
        parser.error("name a checkout; allowed: " + ", ".join(f"--{framework} DIR" for framework in FRAMEWORKS))
    fine = True
    for framework, root in given.items():
        try:
            fine = check(framework, root) and fine
        except (OSError, ValueError) as error:
            print(f"{root} is no checkout of {framework}: {error}", file=sys.stderr)
            return 2
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
