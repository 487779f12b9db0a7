"""What a person sees: a bar with live step lines, and findings at the end. Implements `Progress`."""

from __future__ import annotations

import re
import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from assay_agent.evidence.wording import counted
from assay_core.model.discovery import DiscoveryResult
from assay_core.model.insight import Insight, Recommendation, Severity
from assay_core.model.run import RunStep, StepType

_COLOURS = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
}
_KEY = re.compile(r"\s*\[[^\[\]]*\]\s*$")
_LINE_CHARS = 76
_TOLD_WHOLE = 10
"""Findings printed with their description; the others by name, the report holds them whole."""
_WIDTH_WITHOUT_TERMINAL = 120


def plain_purpose(text: str) -> str:
    """A purpose without the scout's trailing key."""
    return _KEY.sub("", text)


def console(*, stderr: bool = False) -> Console:
    """A console that does not wrap what a pipe reads."""
    made = Console(stderr=stderr, highlight=False)
    return (
        made if made.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDTH_WITHOUT_TERMINAL)
    )


class TerminalProgress:
    """A progress bar on standard error; on something that is no terminal, lines only."""

    def __init__(self, out: Console, *, quiet: bool) -> None:
        self._out = out
        self._quiet = quiet
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._phase = ""
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=out,
            transient=True,
            disable=quiet or not out.is_terminal,
        )
        self._task = self._bar.add_task("Starting", total=100)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def stop(self) -> None:
        """Take the bar away, so that what follows stands alone."""
        self._bar.stop()

    def phase(self, name: str, *, percent: int, detail: str) -> None:
        """A phase that tells again how far it is moves the bar alone, where there is one."""
        self._bar.update(self._task, completed=percent, description=detail)
        again, self._phase = name == self._phase, name
        if again and not self._bar.disable:
            return
        self._line(f"[dim]{self._clock()}[/dim]  [bold]{escape(detail)}[/bold]")

    def step(self, row: RunStep, *, percent: int) -> None:
        self._bar.update(self._task, completed=percent)
        self._line(f"[dim]{self._clock()}[/dim]  {step_line(row)}")

    def note(self, text: str) -> None:
        self._line(f"[dim]{self._clock()}  {escape(text)}[/dim]")

    def _line(self, markup: str) -> None:
        if not self._quiet:
            with self._lock:
                self._out.print(markup, soft_wrap=True)

    def _clock(self) -> str:
        return f"{time.monotonic() - self._started:6.1f}s"


def step_line(row: RunStep) -> str:
    """One feed row as a line of rich markup."""
    text = plain_purpose(" ".join(row.message.split()))
    text = escape(text if len(text) <= _LINE_CHARS else text[: _LINE_CHARS - 1] + "…")
    number = f"{row.step_num:>3}" if row.step_num else "   "
    if row.error is not None:
        return f"{number}  [red]✗[/red] {text or row.type}  [red]{escape(' '.join(row.error.split())[:_LINE_CHARS])}[/red]"
    match row.type:
        case StepType.QUERY:
            repaired = " [yellow]repaired[/yellow]" if row.query_fixed else ""
            return f"{number}  [green]✓[/green] {text}  [dim]{row.row_count} rows, {row.query_time_ms} ms[/dim]{repaired}"
        case StepType.INSIGHT:
            severity = Severity(row.insight_severity or "medium")
            return f"     [{_COLOURS[severity]}]● {severity}[/] {text}"
        case StepType.LOOKUP_SCHEMA:
            return f"{number}  [blue]◇[/blue] looked up {text}"
        case StepType.SEARCH_TABLES:
            return f"{number}  [blue]◇[/blue] searched tables for {text}"
        case StepType.COMPLETE_REJECTED:
            return f"{number}  [yellow]↺[/yellow] asked to go on: {text}"
        case _:
            return f"{number}  [bold]•[/bold] {text}"


def print_findings(out: Console, discovery: DiscoveryResult) -> None:
    """Insights by severity, then recommendations, each linked to its evidence."""
    summary = discovery.summary
    out.print()
    found, asked = counted(summary.total_insights, "finding"), counted(summary.queries_executed, "query")
    out.print(
        f"[bold]{found}[/bold] from {asked}, by {escape(discovery.analyst)}"
        f"  [dim]({discovery.run_type}, not validated)[/dim]"
    )
    for error in summary.errors:
        out.print(f"[red]✗ {escape(error)}[/red]")
    for limitation in summary.limitations or ():
        out.print(f"[yellow]! {escape(limitation)}[/yellow]", soft_wrap=True)
    ordered = sorted(discovery.insights, key=lambda item: (item.severity.rank, -item.risk_score))
    for insight in ordered[:_TOLD_WHOLE]:
        _print_insight(out, insight)
    if ordered[_TOLD_WHOLE:]:
        out.print()
    for insight in ordered[_TOLD_WHOLE:]:
        out.print(_title(insight), soft_wrap=True)
    if discovery.recommendations:
        out.print()
        out.print("[bold]Recommended[/bold]")
    slugs = {insight.id: insight.slug for insight in discovery.insights}
    for recommendation in discovery.recommendations:
        _print_recommendation(out, recommendation, slugs)
    out.print()


def _title(insight: Insight) -> Text:
    return Text.assemble(
        (f"● {insight.severity.upper():<8} ", _COLOURS[insight.severity]), (insight.name, "bold")
    )


def _print_insight(out: Console, insight: Insight) -> None:
    out.print()
    title = Text.assemble(
        (f"● {insight.severity.upper():<8} ", _COLOURS[insight.severity]), (insight.name, "bold")
    )
    out.print(title)
    out.print(Padding(Text(insight.description), (0, 0, 0, 11)))
    steps = ", ".join(map(str, insight.source_steps)) or "none"
    notes = [f"{insight.slug}", f"evidence: step {steps}"]
    if insight.figures_unresolved:
        notes.append(f"unresolved figures: {', '.join(insight.figures_unresolved)}")
    if insight.unchecked_numbers:
        notes.append(f"unchecked numbers: {', '.join(insight.unchecked_numbers)}")
    out.print(Padding(Text(" · ".join(notes), style="dim"), (0, 0, 0, 11)))


def _print_recommendation(out: Console, item: Recommendation, slugs: dict[str, str]) -> None:
    about = ", ".join(slugs.get(insight, insight) for insight in item.related_insight_ids)
    out.print(Text.assemble((f"P{item.priority} ", "bold"), item.title, (f"  ({about})", "dim")))
