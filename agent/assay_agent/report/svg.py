"""Charts as inline SVG: no script, colours by CSS class, every text escaped. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from assay_agent.report.chart import Chart

_WIDTH = 720
_ROW, _BAR = 24, 16
_LABEL_CHARS = 26
_LINE_HEIGHT, _PAD = 200, 44
_CHAR = 7.5
_FIRST = re.compile(r"\d{4}-\d\d-01")


def draw(chart: Chart) -> Markup:
    """The chart as an SVG element that scales to its column."""
    return _bars(chart) if chart.kind == "bar" else _line(chart)


def number(value: float) -> str:
    """A short reading of a number: 1,234 · 12.3 · 0.0123 · 4.5M."""
    size = abs(value)
    for limit, factor, letter in ((1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e5, 1e3, "K")):
        if size >= limit:
            return f"{value / factor:,.1f}{letter}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:,.1f}" if size >= 10 else f"{value:.3g}"


def _reading(chart: Chart, value: float) -> str:
    return f"{value:.1%}" if chart.percent else number(value)


def _svg(height: float, about: str, body: Sequence[Markup]) -> Markup:
    head = Markup('<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{about}">')
    return head.format(w=_WIDTH, h=round(height), about=about) + Markup("").join(body) + Markup("</svg>")


def _about(chart: Chart) -> str:
    return f"{chart.value_name} by {chart.label_name}, {len(chart.values)} values from step {chart.step}"


def _bars(chart: Chart) -> Markup:
    left, right = 190.0, 74.0
    low, high = min(0.0, *chart.values), max(0.0, *chart.values)
    span = (high - low) or 1.0
    room = _WIDTH - left - right
    zero = left + room * (0 - low) / span
    body: list[Markup] = []
    for index, (label, value) in enumerate(zip(chart.labels, chart.values, strict=True)):
        top = index * _ROW + 4
        at = left + room * (value - low) / span
        start, width = min(zero, at), max(abs(at - zero), 1.0)
        text_x = left - 10
        body.append(
            Markup(
                '<text class="label" x="{lx}" y="{ty}" text-anchor="end">{label}</text>'
                '<rect class="bar{mark}" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" rx="2">'
                "<title>{full}: {value}</title></rect>"
                '<text class="value" x="{vx:.1f}" y="{ty}">{value}</text>'
            ).format(
                lx=text_x,
                ty=top + _BAR - 4,
                label=_short(label),
                mark=" marked" if index in chart.marked else "",
                x=start,
                y=top,
                w=width,
                h=_BAR,
                full=label,
                value=_reading(chart, value),
                vx=max(at, zero) + 6,
            )
        )
    return _svg(len(chart.values) * _ROW + 8, _about(chart), body)


def _line(chart: Chart) -> Markup:
    low, high = min(chart.values), max(chart.values)
    if low > 0 and low < high * 0.5:
        low = 0.0
    span = (high - low) or 1.0
    step = (_WIDTH - _PAD * 2) / max(len(chart.values) - 1, 1)
    floor = _LINE_HEIGHT - 28.0
    points = [
        (_PAD + index * step, floor - (floor - 18) * (value - low) / span)
        for index, value in enumerate(chart.values)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"{_PAD:.1f},{floor:.1f} {path} {points[-1][0]:.1f},{floor:.1f}"
    body = [
        Markup('<polygon class="area" points="{}"/><polyline class="line" points="{}"/>').format(area, path),
        Markup('<text class="value" x="4" y="22">{}</text><text class="value" x="4" y="{}">{}</text>').format(
            _reading(chart, high), floor, _reading(chart, low)
        ),
    ]
    extremes = {chart.values.index(max(chart.values)), chart.values.index(min(chart.values))}
    labels = _common_tail_cut(chart.labels)
    shown = _ticks(len(points), longest=max(len(_short(label, chars=12)) for label in labels))
    for index, (x, y) in enumerate(points):
        cited = index in chart.marked
        if cited or index in extremes or len(points) <= 31:
            body.append(
                Markup(
                    '<circle class="dot{m}" cx="{x:.1f}" cy="{y:.1f}" r="{r}">'
                    "<title>{l}: {v}</title></circle>"
                ).format(
                    m=" marked" if cited else "",
                    x=x,
                    y=y,
                    r=5 if cited else 3,
                    l=chart.labels[index],
                    v=_reading(chart, chart.values[index]),
                )
            )
        if index in shown:
            body.append(
                Markup('<text class="label" x="{x:.1f}" y="{y}" text-anchor="middle">{l}</text>').format(
                    x=x, y=_LINE_HEIGHT - 8, l=_short(labels[index], chars=12)
                )
            )
    return _svg(_LINE_HEIGHT, _about(chart), body)


def _ticks(count: int, *, longest: int) -> set[int]:
    """Evenly spaced labels, as many as fit beside each other."""
    fit = max(2, int((_WIDTH - _PAD * 2) / (longest * _CHAR + 10)))
    return set(range(0, count, max(1, -(-count // fit))))


def _common_tail_cut(labels: Sequence[str]) -> list[str]:
    """Dates that all stand on the first of a month read as months."""
    return (
        [label[:7] for label in labels] if all(_FIRST.fullmatch(label) for label in labels) else list(labels)
    )


def _short(text: str, *, chars: int = _LABEL_CHARS) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
