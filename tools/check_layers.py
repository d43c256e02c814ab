#!/usr/bin/env python3
"""Checks who knows whom: every #include in src/<room> names the room itself or one that its perseus_room() line lists; and
that no two headers give one name to two types, which no compiler sees and the linker takes for the same.

usage: check_layers.py [ROOT]   prints file:line of each violation; exit 1 if there is one
"""

import pathlib
import re
import sys


def declared_rooms(cmake_lists: pathlib.Path) -> dict[str, set[str]]:
    """Room -> the rooms it may know, from the perseus_room(name other...) lines."""
    text = re.sub(r"#.*", "", cmake_lists.read_text())
    calls = re.findall(r"^\s*perseus_room\(([^)]*)\)", text, re.MULTILINE)
    return {words[0]: set(words[1:]) for words in (call.split() for call in calls)}


def violations(root: pathlib.Path):
    rooms = declared_rooms(root / "CMakeLists.txt")
    if not rooms:
        yield f"{root / 'CMakeLists.txt'}: no perseus_room() line"
    known = []
    for room, others in rooms.items():
        for other in others - set(known):
            yield f"CMakeLists.txt: room '{room}' knows '{other}', which is not declared above it"
        known.append(room)
    for source in sorted((root / "src").rglob("*")):
        if source.suffix not in {".h", ".cpp"}:
            continue
        room = source.relative_to(root / "src").parts[0]
        if room not in rooms:
            yield f"{source.relative_to(root)}:1: '{room}' is not declared: add a perseus_room({room} ...) line"
            continue
        allowed = rooms[room] | {room}
        for number, line in enumerate(source.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*"([^"]*)"', line)
            if not include:
                continue
            target = include[1].split("/")[0]
            if target not in allowed:
                yield (
                    f'{source.relative_to(root)}:{number}: #include "{include[1]}": room \'{room}\' may include '
                    f"{', '.join(sorted(allowed))}"
                )


def types_of(header: pathlib.Path):
    """Namespace, name and line of each type that is defined outside of functions and other types."""
    namespaces: list[str] = []
    for number, line in enumerate(header.read_text().splitlines(), 1):
        if opened := re.match(r"(?:inline )?namespace ([\w:]+) \{", line):
            namespaces.append(opened[1])
        elif re.match(r"\}\s*// namespace", line):
            namespaces.pop()
        elif defined := re.match(r"(?:class|struct|enum class|enum) (\w+)\b[^;]*\{", line):
            yield "::".join(namespaces), defined[1], number


def namesakes(root: pathlib.Path):
    first: dict[tuple[str, str], str] = {}
    for header in sorted([*(root / "src").rglob("*.h"), *(root / "apps").rglob("*.h")]):
        for namespace, name, number in types_of(header):
            here = f"{header.relative_to(root)}:{number}"
            if (other := first.setdefault((namespace, name), here)) != here:
                yield f"{here}: {namespace}::{name} is another type in {other}"


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = [*violations(root), *namesakes(root)]
    print("\n".join(found) if found else "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
