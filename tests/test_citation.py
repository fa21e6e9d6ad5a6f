"""What CITATION.cff says is what the package says."""

from __future__ import annotations

import re

import yaml

from slacktide import __version__
from support.repository import REPOSITORY


def test_the_citation_is_of_this_version_and_licence() -> None:
    cited = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert cited["version"] == __version__
    assert f'license = "{cited["license"]}"' in project
    assert cited["title"] == "slacktide"


def test_the_article_has_one_doi_everywhere() -> None:
    pages = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), REPOSITORY / "CITATION.cff"]
    found = {doi for page in pages for doi in re.findall(r"10\.1186/[\w./-]*\w", page.read_text(encoding="utf-8"))}
    assert len(found) == 1
