#!/usr/bin/env python3
"""Checks the links of the repository's Markdown files, or of a built site: files and anchors exist.

usage: check_links.py [ROOT]          the Markdown files under ROOT that git does not ignore; default: this repository
       check_links.py --site FOLDER   the HTML files of FOLDER; also, that no page loads anything from another host

Links to other hosts are not followed. Prints each broken link, with its file and line, and exits with 1 if there is one.
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)|(?:href|src|srcset)=\"([^\"]+)\"")
HEADING = re.compile(r"#{1,6} +(.*)")
LOADS = {"src", "srcset"}  # attributes that a page loads; and href of <link>


class Page:
    """What a file links to, as (line, target, whether the page loads it), and the anchors that it offers."""

    def __init__(self):
        self.links, self.anchors = [], set()


def slug_of(heading: str) -> str:
    """The anchor of a heading, as GitHub names it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def read_markdown(path: pathlib.Path) -> Page:
    page, fenced = Page(), False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if fenced or line.startswith("    "):
            continue
        heading = HEADING.fullmatch(line)
        if heading:
            slug = slug_of(heading[1])
            page.anchors.add(slug if slug not in page.anchors else f"{slug}-1")
        page.anchors |= set(re.findall(r'id="([^"]+)"', line))
        page.links += [(number, link[1] or link[2], False) for link in LINK.finditer(re.sub(r"`[^`]*`", "", line))]
    return page


class HtmlReader(html.parser.HTMLParser):
    def __init__(self, page: Page):
        super().__init__()
        self.page = page

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            loads = name in LOADS or (tag == "link" and name == "href" and ("rel", "canonical") not in attributes)
            if name == "id":
                self.page.anchors.add(value)
            elif value and (loads or name == "href"):
                self.page.links.append((self.getpos()[0], value, loads))


def read_html(path: pathlib.Path) -> Page:
    page = Page()
    HtmlReader(page).feed(path.read_text())
    return page


def pages_of(root: pathlib.Path, site: bool) -> dict[pathlib.Path, Page]:
    if site:
        return {path: read_html(path) for path in root.rglob("*.html") if path.name != "404.html"}  # its links are absolute
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True)
    paths = [root / name for name in listed.stdout.split()] if listed.returncode == 0 else root.rglob("*.md")
    return {path.resolve(): read_markdown(path) for path in paths if path.exists()}


def wrong_with(path: pathlib.Path, target: str, loads: bool, pages: dict[pathlib.Path, Page], root: pathlib.Path) -> str:
    """What is wrong with a link; empty: nothing."""
    url = urllib.parse.urlsplit(target)
    if url.scheme == "data":
        return ""
    if url.scheme or url.netloc:
        return "is loaded from another host" if loads else ""
    file = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
    if not file.is_relative_to(root):
        return "is outside of the repository"
    if not file.exists():
        return "does not exist"
    if url.fragment and file in pages and urllib.parse.unquote(url.fragment) not in pages[file].anchors:
        return f"names no heading of {file.relative_to(root)}"
    return ""


def main() -> None:
    site = sys.argv[1:2] == ["--site"]
    arguments = sys.argv[2:] if site else sys.argv[1:]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    pages = pages_of(root, site)
    checked, broken = 0, 0
    for path, page in sorted(pages.items()):
        for line, target, loads in page.links:
            checked += 1
            wrong = wrong_with(path, target, loads, pages, root)
            if wrong:
                broken += 1
                print(f"{path.relative_to(root)}:{line}: the link '{target}' {wrong}")
    print(f"{checked} links in {len(pages)} files, {broken} broken")
    sys.exit(1 if broken or not checked else 0)


if __name__ == "__main__":
    main()
