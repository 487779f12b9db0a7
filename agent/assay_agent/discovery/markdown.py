"""Split a Markdown description into its plain reading and, where it is formatted, the Markdown itself. Pure."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_FORMATTED = {
    "strong_open", "em_open", "bullet_list_open", "ordered_list_open", "heading_open", "table_open", "code_inline",
    "fence", "blockquote_open", "link_open", "s_open",
}  # fmt: skip
_BLOCK_END = {"paragraph_close", "heading_close", "tr_close", "list_item_close"}


def split_markdown(text: str) -> tuple[str, str | None]:
    """(plain text, Markdown or None when there is no formatting in it)."""
    source = text.strip()
    tokens = _PARSER.parse(source)
    flat = [inner for token in tokens for inner in (token, *(token.children or []))]
    formatted = any(token.type in _FORMATTED for token in flat)
    plain = _plain(tokens)
    return plain, source if formatted or "\n\n" in source else None


def _plain(tokens: list[Token]) -> str:
    lines: list[str] = [""]
    for token in tokens:
        if token.type == "inline":
            lines[-1] += "".join(_inline(child) for child in token.children or [])
        elif token.type in ("fence", "code_block"):
            lines += [token.content.rstrip(), ""]
        elif token.type in ("td_close", "th_close"):
            lines[-1] += "  "
        elif token.type in _BLOCK_END:
            lines.append("")
    joined = "\n".join(" ".join(line.split()) for line in lines)
    return re.sub(r"\n{2,}", "\n", joined).strip()


def _inline(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline") else ""
