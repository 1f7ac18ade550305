"""The parts of the site that are made from the code: directives for pages in Markdown.

``{system} spo_join``     drawing, facts, idea and parameters of a topology
``{about} topologies.X``  what a module says of itself
``{figures} spo``         the figures of a paper that can be run, and where results differ from it
``{not-compared} spo``    what the paper states and no figure tests
``{assumptions}``         what virtual time assumes
``{keys} NetworkConfig``  the keys of a section of a scenario file
``{commands}``            the commands of the command line
``{grammar}``             the query language as railroad pictures
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path
from typing import Any

import railroad
from docutils import nodes
from lark import Lark, Token, Tree
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

import joinsim
from joins.queries import parser
from joinsim.cli import app
from scenarios import scenario_files
from scenarios.formatting import TextTable
from scenarios.report.picture import COLOURS
from scenarios.report.topology_drawing import draw_plain
from scenarios.study.reproduction import untested_statements
from scenarios.study.study import load_study
from topologies import find_topology
from topologies.assumptions import ASSUMPTIONS
from topologies.parameters import allowed_words, describe, written

Parts = Iterator[str | nodes.Node]
"""Markdown and nodes, which take a directive's place."""


def directive(parts: Callable[..., Parts]) -> type[SphinxDirective]:
    """Return the directive whose arguments *parts* takes."""

    class Generated(SphinxDirective):
        required_arguments = len(signature(parts).parameters)
        final_argument_whitespace = True

        def run(self) -> list[nodes.Node]:
            """Return the nodes of all parts, in order."""
            found: list[nodes.Node] = []
            for part in parts(*self.arguments):
                if isinstance(part, str):
                    found += self.parse_text_to_nodes(part, allow_section_headings=True)
                else:
                    found.append(part)
            return found

    return Generated


def html(text: str) -> nodes.Node:
    """Return a node of HTML as it is."""
    return nodes.raw("", text, format="html")


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return TextTable(columns=tuple(header), rows=rows).markdown() + "\n"


def markdown(docstring: str) -> str:
    """Return a docstring's prose in Markdown: drawings after ``::`` become code blocks."""
    text = re.sub(r"``([^`]+)``", r"`\1`", docstring)
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if inside and line.strip() and not line.startswith("    "):
            inside = False
            lines += ["```", ""]
        lines.append(line[4:] if inside else line)
        if not inside and line.rstrip().endswith("::"):
            lines[-1] = line.rstrip()[:-1]
            lines += ["", "```none"]
            inside = True
    if inside:
        lines.append("```")
    return re.sub(r"```none\n\n+", "```none\n", "\n".join(lines))


def system(name: str) -> Parts:
    """Yield a topology: drawing, facts, idea, parameters."""
    topology = find_topology(name)
    kind = type(topology)
    file = f"{kind.__module__.replace('.', '/')}.py"
    exact = "exact by default" if topology.exact else "not exact"
    yield f"*{topology.paper}*. `--topology {name}`, {exact}; `{file}`.\n"
    picture = draw_plain(joinsim.show(name), f"The actors of {name}")
    width = picture.split('width="', 1)[1].split('"', 1)[0]
    yield html(f'<div class="picture" style="--drawn:{width}px">{picture}</div>')
    module = sys.modules[kind.__module__].__doc__ or ""
    owners = {one for one in vars(sys.modules[kind.__module__]).values() if _is_own(one)}
    yield markdown(module if len(owners) == 1 else getdoc(kind) or "")
    rows = [
        [f"`{one.name}`", f"`{one.default}`", one.allowed, _sentence(one.meaning)]
        for one in describe(topology)
    ]
    if rows:
        yield table(["parameter", "default", "allowed", "meaning"], rows)
    else:
        yield "It has no parameters.\n"


def about(name: str) -> Parts:
    """Yield what a module says of itself."""
    yield markdown(import_module(name).__doc__ or "")


def _is_own(value: Any) -> bool:
    """Return whether *value* is the class of a topology with a name."""
    return isinstance(value, type) and issubclass(value, joinsim.Topology) and "name" in vars(value)


def _sentence(text: str) -> str:
    return text.replace("<", "&lt;").replace("`", "")


def figures(paper: str) -> Parts:
    """Yield the scenarios of a paper, and the claims that do not hold here, with the reason."""
    rows, differ = [], []
    for name in scenario_files.catalog():
        if not name.startswith(f"{paper}-"):
            continue
        study = load_study(name)
        config = study.base if study else scenario_files.load(name)
        claims = study.section.claims if study else ()
        rows.append([f"`{name}`", config.figure or "", str(len(claims) or ""), config.title])
        differ += [
            [config.figure or f"`{name}`", _sentence(claim.text), _sentence(claim.why)]
            for claim in claims
            if claim.why
        ]
    yield table(["scenario", "figure", "claims", "what it shows"], rows)
    if differ:
        text = f"{len(differ)} claims that do not hold here at some scale, and why"
        yield from _folded(text, table(["figure", "the paper", "why not here"], differ))


def not_compared(paper: str) -> Parts:
    """Yield what a paper states that no figure tests."""
    rows = [
        [one.where, _sentence(one.text), _sentence(one.why)] for one in untested_statements(paper)
    ]
    text = f"{len(rows)} statements of the paper that no figure tests"
    yield from _folded(text, table(["where", "statement", "why not"], rows))


def _folded(summary: str, text: str) -> Parts:
    """Yield a *text* in Markdown of which only the *summary* is seen at first."""
    yield html(f'<details class="more"><summary>{summary}</summary>')
    yield text
    yield html("</details>")


def assumptions() -> Parts:
    """Yield what virtual time assumes."""
    rows = [[one.name, _sentence(one.text), _sentence(one.source)] for one in ASSUMPTIONS]
    yield table(["about", "assumed", "source"], rows)


def keys(section: str) -> Parts:
    """Yield the keys of a section of scenario files; ``RunConfig`` is the file itself."""
    schema = _schema() if section == "RunConfig" else _schema()["$defs"][section]
    rows = []
    for name, value in schema["properties"].items():
        written_in = (value, *value.get("anyOf", ()))
        default = next((one["default"] for one in written_in if "default" in one), None)
        shown = (
            f"`{written(default, value)}`"
            if default != "" and isinstance(default, (str, int, float))
            else ""
        )
        rows.append([f"`{name}`", _kind(value), shown, _sentence(value.get("description", ""))])
    yield table(["key", "value", "default", "meaning"], rows)


_schema = cache(joinsim.schema)


def _kind(value: dict[str, Any]) -> str:
    """Describe the values that a key may have."""
    if "$ref" in value:
        name = value["$ref"].split("/")[-1]
        return "" if name == "Word" else f"a section ({name})"
    if value.get("type") == "array":
        items = value.get("items", {})
        return f"a list of {_kind(items)}" if items.get("$ref") else "a list"
    if "anyOf" in value or "oneOf" in value:
        kinds = [_kind(one) for one in value.get("anyOf") or value["oneOf"]]
        named = dict.fromkeys(kind for kind in kinds if kind)
        return "; or ".join(named) if len(named) < 4 else "a section"
    if value.get("type") == "null":
        return ""
    if value.get("enum") and len(value["enum"]) > 12:
        return "a scenario's name"
    return allowed_words(value)


def grammar() -> Parts:
    """Yield the grammar of queries as railroad pictures, a rule each; of a pattern its text."""
    lark = Lark.open_from_package("lark", "lark.lark", ("grammars",), parser="lalr")
    for rule in lark.parse(parser.GRAMMAR + "\n").children:
        if rule.data not in ("rule", "token"):
            continue
        name = str(rule.children[0]).lstrip("?!")
        pattern = list(rule.scan_values(lambda leaf: leaf and leaf.type == "REGEXP"))
        if pattern:
            yield f"**{name}** `{pattern[0]}`\n"
            continue
        drawn: list[str] = []
        railroad.Diagram(_draw(rule.children[-1])).writeSvg(drawn.append)
        yield f"**{name}**\n"
        yield html(f'<div class="picture">{"".join(drawn)}</div>')


_REPEATS = {"+": railroad.OneOrMore, "*": railroad.ZeroOrMore, "?": railroad.Optional}


def _draw(tree: Tree[Token] | Token) -> railroad.DiagramItem:
    """Return a part of a rule as a part of a picture."""
    if isinstance(tree, Token):
        return railroad.Terminal(str(tree))
    parts = [part for part in tree.children if part is not None]
    match str(tree.data):
        case "expansions":
            return railroad.Choice(0, *map(_draw, parts))
        case "expansion":
            return railroad.Sequence(*map(_draw, parts))
        case "expr" if len(parts) > 1:
            return _REPEATS[str(parts[1])](_draw(parts[0]))
        case "maybe":
            return railroad.Optional(_draw(parts[0]))
        case "literal":
            text = str(parts[0])
            return railroad.Terminal(text.rstrip("i").strip('"') if text[0] == '"' else text)
        case "name":
            return railroad.NonTerminal(str(parts[0]))
        case _:
            return _draw(parts[0])


def commands() -> Parts:
    """Yield a table of all commands, those of groups too, with what each does."""
    yield table(["command", "what it does"], list(_command_rows(get_command(app), "joinsim")))


def _command_rows(command: Any, name: str) -> Iterator[list[str]]:
    for word, one in sorted(getattr(command, "commands", {}).items()):
        if hasattr(one, "commands"):
            yield from _command_rows(one, f"{name} {word}")
        else:
            does = " ".join((one.help or "").split("\n\n")[0].split())
            yield [f"`{name} {word}`", _sentence(does)]


def write_theme(site: Sphinx, error: Exception | None) -> None:
    """Give the pictures their colours by name, in both themes, as a style sheet of the site.

    It is written last: Sphinx's own copying of static files would replace it.
    """
    if error is not None:
        return
    light, dark = (
        "".join(f"--{name}:{pair[at]};" for name, pair in COLOURS.items()) for at in (0, 1)
    )
    text = (
        f"body{{{light}}}\n"
        f'body[data-theme="dark"]{{{dark}}}\n'
        f'@media (prefers-color-scheme:dark){{body:not([data-theme="light"]){{{dark}}}}}\n'
    )
    folder = Path(site.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "colours.css").write_text(text, encoding="utf-8")


def name_aliases(*about: Any) -> tuple[str | None, str | None]:
    """Return a signature in which aliases of types have their names, within unions too."""
    signature, returned = about[-2:]
    if signature is not None:
        signature = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature)
    return signature, returned


def setup(site: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    for parts in (system, about, figures, not_compared, assumptions, keys, grammar, commands):
        site.add_directive(parts.__name__.replace("_", "-"), directive(parts))
    site.add_css_file("colours.css")
    site.connect("autodoc-process-signature", name_aliases)
    site.connect("build-finished", write_theme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
