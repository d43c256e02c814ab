#!/usr/bin/env python3
"""Checks the subjects of commits: `area: imperative summary` in at most 72 characters.

- The area is a folder of the tree by name or path (`server`, `planning/planner`), a subcommand (`plan`), a file of the root
  without the ending (`README`), or `all`; several are separated by ", ".
- The summary begins with a verb in the imperative (`add`, not `adds`, `added`, `adding` or `a`) and has no final period.

Merges and commits up to SINCE are not checked.

usage: check_commits.py [SINCE [ROOT]]   prints hash, subject and what is wrong of each; exit 1 if there is one, 77 (skipped)
                                         where the tree has no history or the history has no SINCE
"""

import pathlib
import re
import subprocess
import sys

SINCE = "c38ead649df6c414ec4eb0bb3af02a695e774cff"  # older subjects do not follow the rule
MOST_CHARACTERS = 72
NOT_A_VERB = {"a", "an", "the", "this", "that", "what", "which", "how", "why", "when", "it", "its", "some", "all", "no", "new", "more",
              "one", "two", "of", "from", "for", "in", "after", "before"}
# Verbs that end like other forms.
VERBS = {"focus", "bias", "alias", "need", "feed", "speed", "seed", "embed", "exceed", "shed", "bring", "string", "ping"}


def git(root: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)


def areas_of(files: list[str]) -> set[str]:
    areas = {"all"}
    for file in map(pathlib.PurePosixPath, files):
        folders = [folder for folder in file.parents if folder.name]
        areas.update(name for folder in folders for name in (folder.name, str(folder), str(folder).removeprefix("src/")))
        if not folders or str(file).startswith("apps/perseus/"):
            areas.add(file.stem)
    return areas


def is_imperative(word: str) -> bool:
    if word.lower() in VERBS:
        return True
    other_form = re.search(r"(ing|ed|[^s]s)$", word.lower())
    return not other_form and word.lower() not in NOT_A_VERB


def wrong_with(subject: str, areas: set[str]):
    """What is wrong, one sentence at a time."""
    if len(subject) > MOST_CHARACTERS:
        yield f"{len(subject)} characters; allowed: {MOST_CHARACTERS}"
    area, colon, summary = subject.partition(": ")
    if not colon:
        yield "no 'area: ' before the summary"
        return
    for name in area.split(", "):
        if name not in areas:
            yield f"area '{name}'; allowed: a folder of the tree, a subcommand, a file of the root without the ending, or all"
    word = (re.findall(r"[\w-]+", summary) or [""])[0]
    if not is_imperative(word):
        yield f"the summary begins with '{word}'; allowed: a verb in the imperative"
    if summary.endswith("."):
        yield "a period at the end"


def main() -> int:
    since = sys.argv[1] if len(sys.argv) > 1 else SINCE
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parent.parent
    log = git(root, "log", "--no-merges", "--format=%h %s", f"{since}..HEAD", "--")
    if log.returncode != 0 or git(root, "merge-base", "--is-ancestor", since, "HEAD").returncode != 0:
        print(f"skipped: no history that contains {since}: {log.stderr.strip()}")
        return 77
    areas = areas_of(git(root, "ls-files").stdout.splitlines())
    commits = [line.partition(" ") for line in log.stdout.splitlines()]
    found = [(name, subject, wrong) for name, _, subject in commits for wrong in wrong_with(subject, areas)]
    for name, subject, wrong in found:
        print(f"{name} '{subject}': {wrong}")
    print(f"{len(commits)} commits, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
