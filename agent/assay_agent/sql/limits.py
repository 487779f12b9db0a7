"""What a statement may cost, said where it is paid: the run's bytes in its limits, the row cap in its text.

With the cap in the text a source sorts and sends no more rows than are kept. That works on tokens and leaves every other
character of the statement as it was: a wrong guess would change the meaning, so whatever is not clearly safe is returned
unchanged. The caller still counts rows. Pure; used by the adapters.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from assay_agent.ports import Meter, QueryLimits
from assay_agent.sql.dialects import tokenize

_ENDINGS = frozenset(
    {"limit", "offset", "fetch", "for", "into", "sample", "settings", "format", "tablesample"}
)


def metered(limits: QueryLimits, meter: Meter | None) -> QueryLimits:
    """The limits of a question of our own, lowered to the bytes that the run has left."""
    left = meter.left() if meter is not None else None
    if left is None:
        return limits
    asked = limits.scan_bytes
    return replace(limits, scan_bytes=left if asked is None else min(asked, left))


def limited(sql: str, *, dialect: str, rows: int) -> str:
    """`sql` returning at most `rows` rows: an outer LIMIT added, or a larger literal one lowered."""
    try:
        tokens = tokenize(sql, dialect=dialect)
    except SqlglotError:
        return sql
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens or tokens[0].text.lower() not in ("select", "with"):
        return sql
    outer = _outer(tokens)
    tail = [(index, token.text.lower()) for index, token in outer if token.text.lower() in _ENDINGS]
    if not tail:
        return f"{sql[: tokens[-1].end + 1]}\nLIMIT {rows}"
    if [word for _, word in tail] in (["limit"], ["limit", "offset"]):
        return _lowered(sql, tokens, tail[0][0], rows)
    return sql


def _outer(tokens: list[Token]) -> list[tuple[int, Token]]:
    depth = 0
    outer: list[tuple[int, Token]] = []
    for index, token in enumerate(tokens):
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
            depth += 1
        elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
            depth -= 1
        elif depth == 0 and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING):
            outer.append((index, token))
    return outer


def _lowered(sql: str, tokens: list[Token], limit: int, rows: int) -> str:
    if limit + 1 >= len(tokens):
        return sql
    count = tokens[limit + 1]
    following = tokens[limit + 2].text.lower() if limit + 2 < len(tokens) else "offset"
    if count.token_type is not TokenType.NUMBER or following != "offset" or not count.text.isdigit():
        return sql
    if int(count.text) <= rows:
        return sql
    return f"{sql[: count.start]}{rows}{sql[count.end + 1 :]}"
