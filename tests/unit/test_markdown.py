"""Descriptions are kept plain, and formatted where they are."""

from __future__ import annotations

import pytest

from assay_agent.discovery.markdown import split_markdown


@pytest.mark.parametrize(
    ("text", "plain", "formatted"),
    [
        ("Just a sentence.", "Just a sentence.", False),
        ("**Bold** takeaway.", "Bold takeaway.", True),
        ("One.\n\n- a\n- b", "One.\na\nb", True),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a b\n1 2", True),
        ("# Head\ntext `code`", "Head\ntext code", True),
        ("5 < 6 & <b>x</b>", "5 < 6 & <b>x</b>", False),
        ("a\nb", "a b", False),
        ("", "", False),
    ],
)
def test_split_keeps_plain_text_and_markdown(text: str, plain: str, formatted: bool) -> None:
    found, markdown = split_markdown(text)
    assert found == plain
    assert (markdown is not None) is formatted
