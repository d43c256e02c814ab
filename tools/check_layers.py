#!/usr/bin/env python3
"""Checks the modules: which includes which, that a namespace is its module, and that names are unique.

A module is a folder of src/ with a perseus_module() line in CMakeLists.txt: `base`, or GROUP/NAME. The checks:
- every #include names the module itself or one that its line lists; a line lists only modules above it;
- the modules of a group stand together, so that no group depends on one below it;
- code of the module NAME is in namespace perseus::NAME (base: perseus);
- no two headers have one file name, and no two types one name, in src/, apps/ and include/.

usage: check_layers.py [ROOT]   prints file:line of each violation; exit 1 if there is one
"""

import pathlib
import re
import sys


def declared_modules(cmake_lists: pathlib.Path) -> dict[str, set[str]]:
    """Folder below src -> names of the modules that it may include, in the order of the perseus_module() lines."""
    text = re.sub(r"#.*", "", cmake_lists.read_text())
    calls = re.findall(r"^\s*perseus_module\(([^)]*)\)", text, re.MULTILINE)
    return {words[0]: set(words[1:]) for words in (call.split() for call in calls)}


def name_of(folder: str) -> str:
    return folder.rpartition("/")[2]


def violations_of_order(modules: dict[str, set[str]]):
    known: list[str] = []
    groups: list[str] = []
    for folder, others in modules.items():
        for other in sorted(others - set(known)):
            yield f"CMakeLists.txt: module '{folder}' lists '{other}', which is not declared above it"
        known.append(name_of(folder))
        group = folder.partition("/")[0]
        if group in groups[:-1]:
            yield f"CMakeLists.txt: module '{folder}' is not beside the other modules of '{group}'"
        if groups[-1:] != [group]:
            groups.append(group)


def violations(root: pathlib.Path):
    modules = declared_modules(root / "CMakeLists.txt")
    if not modules:
        yield f"{root / 'CMakeLists.txt'}: no perseus_module() line"
    yield from violations_of_order(modules)
    folder_of = {name_of(folder): folder for folder in modules}
    for source in sorted((root / "src").rglob("*")):
        if source.suffix not in {".h", ".cpp"}:
            continue
        here = source.relative_to(root)
        folder = source.parent.relative_to(root / "src").as_posix()
        if folder not in modules:
            yield f"{here}:1: '{folder}' is not declared: add a perseus_module({folder} ...) line"
            continue
        allowed = {folder} | {folder_of.get(name, name) for name in modules[folder]}
        for number, line in enumerate(source.read_text().splitlines(), 1):
            if include := re.match(r'\s*#\s*include\s*"([^"]*)"', line):
                if include[1].rpartition("/")[0] not in allowed:
                    yield (
                        f'{here}:{number}: #include "{include[1]}": module \'{folder}\' may include '
                        f"{', '.join(sorted(allowed))}"
                    )
            elif (space := re.match(r"(?:inline )?namespace perseus((?:::\w+)*) \{", line)) and defines(source, number):
                own = "" if folder == "base" else "::" + name_of(folder)
                if space[1] != own and (not own or not space[1].startswith(own + "::")):
                    yield f"{here}:{number}: namespace perseus{space[1]}: code of '{folder}' is in perseus{own}"


def defines(source: pathlib.Path, opened: int) -> bool:
    """Does the namespace that opens at that line hold anything but forward declarations of types?"""
    for line in source.read_text().splitlines()[opened:]:
        if re.match(r"\}(  // namespace.*)?$", line):
            return False
        if line.strip() and not re.match(r"//|(class|struct|enum class|namespace) \w+( : [\w:]+)?;", line):
            return True
    return False


def types_of(header: pathlib.Path):
    """Name and line of each type that is defined outside of functions and other types."""
    for number, line in enumerate(header.read_text().splitlines(), 1):
        if defined := re.match(r"(?:class|struct|enum class|enum) (\w+)\b(?!::)[^;]*\{", line):
            yield defined[1], number


def namesakes(root: pathlib.Path):
    headers = [*(root / "src").rglob("*.h"), *(root / "apps").rglob("*.h"), *(root / "include").rglob("*.hpp")]
    files: dict[str, pathlib.Path] = {}
    types: dict[str, str] = {}
    for header in sorted(headers):
        here = header.relative_to(root)
        if (other := files.setdefault(header.name, here)) != here:
            yield f"{here}:1: {other} has the same file name"
        for name, number in types_of(header):
            if (first := types.setdefault(name, f"{here}:{number}")) != f"{here}:{number}":
                yield f"{here}:{number}: type {name} is another type in {first}"
    for source in sorted([*(root / "src").rglob("*.cpp"), *(root / "apps").rglob("*.cpp")]):
        for name, number in types_of(source):
            if first := types.get(name):
                yield f"{source.relative_to(root)}:{number}: type {name} is another type in {first}"


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = [*violations(root), *namesakes(root)]
    print("\n".join(found) if found else "layers: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
