#!/usr/bin/env python3
"""Builds the documentation into a static site: README.md, everything in docs/, and what these link to.

usage: build_site.py [FOLDER]    default: build/site, which is replaced

The navigation is docs/README.md: its headings and the rows of its tables; pages of the three APIs are made and added. The site loads nothing from another host. Its search
needs a web server, such as 'python3 -m http.server -d build/site'. Exits with 77 where mkdocs or its theme is missing.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_links  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MKDOCS = ["/usr/bin/mkdocs", "/usr/bin/python3"]  # Debian's, with Debian's Python
THEME = "/usr/share/mkdocs/themes/material"
MADE = {  # pages that are not in the repository, by audience: what prints them
    "Use": {"docs/api_python.md": ["render_library_api.py", "python"], "docs/api_c.md": ["render_library_api.py", "c"]},
    "Operate": {"docs/api.md": ["render_api.py"]},
}
ITEM = re.compile(r"[-*] |\d+\. ")
CONFIG = """
site_name: Perseus
site_description: Removes energy bloat from large-model training
docs_dir: pages
use_directory_urls: false
theme:
  name: material
  font: false
  icon: {logo: material/lightning-bolt}
  features: [navigation.tabs, navigation.top, search.highlight, search.share]
  palette:
    - {media: "(prefers-color-scheme: light)", scheme: default, primary: teal,
       toggle: {icon: material/weather-night, name: Dark}}
    - {media: "(prefers-color-scheme: dark)", scheme: slate, primary: teal,
       toggle: {icon: material/weather-sunny, name: Light}}
plugins: [search]
markdown_extensions:
  - tables
  - attr_list
  - md_in_html
  - pymdownx.superfences
  - pymdownx.highlight: {use_pygments: true}
  - toc: {permalink: true, slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}}
"""


def staged(page: pathlib.Path, known: dict[pathlib.Path, None]) -> None:
    """Adds the page to the known files, and what it links to."""
    if page in known or not page.is_relative_to(ROOT) or not page.is_file():
        return
    known[page] = None
    if page.suffix == ".md":
        for _, target, _ in check_links.read_markdown(page).links:
            staged((page.parent / target.split("#")[0]).resolve(), known)


def normalized(text: str) -> str:
    """Markdown as GitHub reads it, for a reader that needs a blank line after headings and before lists."""
    lines, fenced = [], False
    for line in text.splitlines():
        before = lines[-1] if lines else ""
        item = ITEM.match(line) and before.strip() and not before.startswith("  ") and not ITEM.match(before)
        if not fenced and (item or re.match(r"#+ ", before)):
            lines.append("")
        fenced ^= line.startswith("```")
        lines.append(line)
    return "\n".join(lines) + "\n"


def title_of(text: str) -> str:
    return next(line[2:] for line in text.splitlines() if line.startswith("# ")).replace("`", "")


def made(audience: str) -> dict[str, str]:
    """The text of each page that is made for the audience."""
    def printed(tool: str, *arguments: str) -> str:
        return subprocess.run([sys.executable, ROOT / "tools" / tool, *arguments], check=True, capture_output=True, text=True).stdout

    return {page: printed(*command) for page, command in MADE.get(audience, {}).items()}


def navigation(pages_made: dict[str, str]) -> list:
    """The pages by audience, as docs/README.md lists them; its decisions one by one."""
    entries = [{"Perseus": "README.md"}, {"All pages": "docs/README.md"}]
    for section in (ROOT / "docs/README.md").read_text().split("\n## ")[1:]:
        pages = []
        for target in re.findall(r"^\| \[[^\]]+\]\(([^)]+\.md)\)", section, re.M):
            path = (ROOT / "docs" / target).resolve()
            pages.append({title_of(path.read_text()): str(path.relative_to(ROOT))})
            if path.parent.name == "decisions":
                each = [{title_of(p.read_text()): str(p.relative_to(ROOT))} for p in sorted(path.parent.glob("0*.md"))]
                pages[-1:] = [{"Decisions": [str(path.relative_to(ROOT)), *each]}]
        audience = section.split("\n")[0].split(":")[0]
        for page, text in made(audience).items():
            pages_made[page] = text
            pages.append({title_of(text): page})
        entries.append({audience: pages})
    return entries


def build(folder: pathlib.Path) -> int:
    known = {}
    staged(ROOT / "README.md", known)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        staged(page, known)
    with tempfile.TemporaryDirectory(prefix="perseus-site-") as scratch:
        for page in known:
            copy = pathlib.Path(scratch, "pages", page.relative_to(ROOT))
            copy.parent.mkdir(parents=True, exist_ok=True)
            if page.suffix == ".md":
                copy.write_text(normalized(page.read_text()))
            else:
                shutil.copy(page, copy)
        pages_made = {}
        config = pathlib.Path(scratch, "mkdocs.yml")
        config.write_text(CONFIG + "nav: " + json.dumps(navigation(pages_made)) + "\n")
        for page, text in pages_made.items():
            pathlib.Path(scratch, "pages", page).write_text(normalized(text))
        return subprocess.run([MKDOCS[1], MKDOCS[0], "build", "--strict", "--quiet", "-f", config, "-d", folder]).returncode


def main() -> None:
    missing = [path for path in (*MKDOCS, THEME) if not pathlib.Path(path).exists()]
    if missing:
        print(f"build_site.py: skipped, {missing[0]} does not exist; install the Debian packages mkdocs and mkdocs-material")
        sys.exit(77)
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
    sys.exit(build(folder))


if __name__ == "__main__":
    main()
