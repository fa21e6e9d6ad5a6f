"""The table of all settings, made from the docstrings in :mod:`slacktide.config`."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from itertools import pairwise

from slacktide import config
from slacktide.config import LONGEST, TUNED_LIMIT, Config, preset
from slacktide.conversion import Kind
from slacktide.settings import SECTIONS, section_type, types_of


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``published`` is its value in the papers' preset, ``allowed`` its type, choices or range."""

    key: str
    default: object
    published: object
    allowed: str
    meaning: str


def describe() -> list[Setting]:
    """Every setting, in the order of the sections."""
    recommended, published = Config(), preset("published")
    rows = []
    for section in SECTIONS:
        meanings = _meanings(section_type(section))
        for key, kind in types_of(section).items():
            name = f"{section}.{key}"
            rows.append(
                Setting(
                    name,
                    getattr(getattr(recommended, section), key),
                    getattr(getattr(published, section), key),
                    _allowed(Kind.of(kind)),
                    meanings.get(key, ""),
                )
            )
    return rows


HEAD = ("| setting | default | allowed | meaning |", "|---|---|---|---|")
INTRODUCTION = """# Settings

Written by `slacktide settings --markdown` from the docstrings in `src/slacktide/config.py`; do not edit.

A value comes from the preset, then from the file given with `--config` (YAML, TOML or JSON by its suffix), then from
`--set SECTION.KEY=VALUE`; the last one wins. What is unknown or out of range is refused, with the nearest right name.
Presets are `recommended` (the default), `published` (the papers'), and `published-tuned`: the papers' with the [best
overhead limit](validation.md#a-tuned-baseline) that we found (`policy.overhead_limit` = @LIMIT@). The `manifest.json`
of results is a settings file, too. A *duration* is seconds, up to 8,589,934,592, or such as `10m`, `1h30m` and `2d`
(units w, d, h, m, s, the longest first); a share is a number, or such as `90%`.

```yaml
policy:
  name: qos-driven
  patience: 30
qos:
  startup: always
classes:              # replaces all three default classes
  - {name: gold, slo: 1.0, rank: 1}
  - {name: batch, slo: 0.6, rank: 2, margin: 20, overhead_limit: 0.5, tiers: [{boundary: 0.99, bonus: 0.1}]}
```

A class may say over which time its availability is promised ([which one](windows.md)):

```yaml
classes:
  - {name: gold, slo: 0.999, rank: 1, window: {rolling: 30d}}   # the last 30 days, at any instant
  - {name: silver, slo: 0.95, rank: 2, window: {calendar: 1M, time_zone: Europe/Berlin}}
  - {name: bronze, slo: 0.5, rank: 3, window: lifetime}         # as without window
```

| of `window` | default | allowed | meaning |
|---|---|---|---|
| `rolling` | | a duration from 1m to 400d | the window is the last so many seconds |
| `calendar` | | a number of d, w, M, Q or Y, such as `1M` | windows follow one another |
| `budget` | `whole` | `whole`, `accrued` | what may be lost: a share of the whole window, or of as much of it as the \
request has lived |
| `time_zone` | `UTC` | an IANA name | of a calendar |
| `start` | | a local date and time | when one of the calendar's windows begins |

A request that lives much shorter than its window wants `lifetime`, or `budget: accrued` \
([windows.md](windows.md#which-budget)). A promise of 1 has no budget: after a loss it is broken until the loss has \
left the window.

A class may also say how long its instances are expected to take to start (`alpha: 3m`, up to 1h, in place of \
`qos.alpha`: [metric.md](metric.md#alpha-of-a-class)), and limit the disruptions of its workloads \
([limits.md](limits.md))."""


def page() -> str:
    """docs/settings.md."""
    lines = [INTRODUCTION.replace("@LIMIT@", f"{TUNED_LIMIT:g}")]
    section = ""
    for row in describe():
        if row.key.partition(".")[0] != section:
            section = row.key.partition(".")[0]
            summary = " ".join((inspect.getdoc(section_type(section)) or "").split())
            lines += ["", f"## {section}", "", summary, "", *HEAD]
        default = f"`{shown(row.default)}`"
        if row.published != row.default:
            default += f" (published: `{shown(row.published)}`)"
        allowed = row.allowed.replace(f"from 0 to {LONGEST:,.0f}", "").replace(f", at most {LONGEST:,.0f}", "")
        allowed = allowed.replace("seconds or duration", "duration").replace("share, from 0 to 1", "share")
        allowed = allowed.rstrip(", ").replace(", ,", ",")
        lines.append(f"| `{row.key}` | {default} | {allowed} | {row.meaning} |")
    return "\n".join(lines) + "\n"


def shown(value: object) -> str:
    """A value as it is written in a settings file."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _allowed(kind: Kind) -> str:
    words = ", ".join(f"`{one}`" for one in kind.choices)
    if not words:
        word = {str: "text", bool: "true or false", int: "whole number", float: "number"}[kind.plain]
        word = {"duration": "seconds or duration,", "share": "share,"}.get(kind.written, word)
        words = f"{word} {kind.bounds}".strip(" ,")
    return f"{words}, or none" if kind.optional else words


def _meanings(section: type) -> dict[str, str]:
    """The docstring below each field, on one line."""
    tree = ast.parse(inspect.getsource(config))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == section.__name__)
    found = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(meaning))):
                    found[field.target.id] = " ".join(meaning.split()).replace("``", "`")
                case _:
                    continue
    return found
