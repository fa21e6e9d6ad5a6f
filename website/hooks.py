"""What MkDocs is told beside mkdocs.yml: pages that are made from the program and of notebooks, links that leave docs/,
and the navigation without what is not there.

The pages in docs/ are also read in the repository. So their links to other files of the repository (``../examples``,
``../CONTRIBUTING.md``) stay as they are, and each such file gets a page of the site: texts as they are, everything else
as code. MkDocs then checks all links alike.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
sys.path.insert(0, str(HERE))

import notebooks  # noqa: E402

from reference import PAGES  # noqa: E402

TEXTS = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Texts at the root of the repository, and the pages that stand for them. (The README is docs/index.md in brief.)"""
NOTEBOOKS = {f"notebooks/{one.stem}.md": one for one in notebooks.SOURCES}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)((?:#[^)\s]*)?)(?=\))")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml"}


def target(link: str, folder: str) -> str | None:
    """The file of the repository that a link in a text of ``folder`` means; None where it is one of docs/."""
    path = posixpath.normpath(posixpath.join(folder, link))
    return None if path.startswith("docs/") else path


def source_page(path: str) -> str:
    """The page that shows a file or folder of the repository."""
    return f"files/{path.rstrip('/')}.md"


def shown(path: str) -> str:
    """A file as a page, or the files of a folder one below the other."""
    place = REPOSITORY / path
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    parts = [f"# {path}\n"]
    for one in files:
        name = one.relative_to(REPOSITORY).as_posix()
        if one.suffix == ".pyc" or one.stat().st_size > 50_000:
            continue
        text = one.read_text(encoding="utf-8")
        heading = f"## {name}\n\n" if place.is_dir() else ""
        parts.append(f"{heading}````{LANGUAGES.get(one.suffix, 'text')}\n{text.rstrip()}\n````\n")
    return "\n".join(parts)


def relinked(markdown: str, folder: str) -> str:
    """A text of ``folder`` with links that hold on a page of the site's root."""

    def of(found: re.Match[str]) -> str:
        link, anchor = found.groups()
        path = target(link, folder)
        if path is None:
            inside = posixpath.relpath(posixpath.join(folder, link), "docs")
            return (f"{inside.removesuffix('.ipynb')}.md" if inside.endswith(".ipynb") else inside) + anchor
        return TEXTS.get(path, source_page(path)) + anchor

    return LINK.sub(of, markdown)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation pages that are not there (yet)."""
    there = {one.relative_to(config.docs_dir).as_posix() for one in Path(config.docs_dir).rglob("*.md")}
    there |= set(PAGES) | set(TEXTS.values()) | set(NOTEBOOKS)
    config.nav = [kept for one in config.nav or [] if (kept := pruned(one, there))]
    return config


def pruned(entry: Any, there: set[str]) -> Any:
    """An entry of the navigation with only pages that are there; None where nothing is left."""
    if isinstance(entry, dict):
        [(title, below)] = entry.items()
        kept = pruned(below, there)
        return {title: kept} if kept else None
    if isinstance(entry, list):
        return [kept for one in entry if (kept := pruned(one, there))]
    return entry if entry in there else None


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made: from the program, of texts at the root, and of files that pages link to."""
    made = {name: make() for name, make in PAGES.items()}
    made |= {name: notebooks.page(source) for name, source in NOTEBOOKS.items()}
    for text, page in TEXTS.items():
        if page != "index.md":
            made[page] = relinked((REPOSITORY / text).read_text(encoding="utf-8"), "")
    texts = {one.src_uri: one.content_string for one in files.documentation_pages()}
    linked = {path for one in texts.values() for link, _ in LINK.findall(one) if (path := target(link, "docs"))}
    linked |= {
        path
        for text in TEXTS
        for link, _ in LINK.findall((REPOSITORY / text).read_text(encoding="utf-8"))
        if (path := target(link, ""))
    }
    for path in sorted(linked - set(TEXTS)):
        if (REPOSITORY / path).exists():  # else MkDocs says that there is no such page
            made[source_page(path)] = "---\nsearch: {exclude: true}\n---\n" + shown(path)
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    css = File.generated(config, "site.css", abs_src_path=str(HERE / "site.css"))
    files.append(css)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links that leave docs/ lead to the pages of those files."""
    if page.file.generated_by:
        return markdown
    return relinked(markdown, "docs")
