"""Every threshold and budget of the agent: its unit, its default, and why. Nothing is tuned in place.

The defaults are the specification's ceilings or the contracts' tighter ones. `Policy.from_environment` is
`settings.py`'s business: this module reads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPolicy:
    rows: int = 10_000
    """Rows kept of one result. More would not change a digest and costs memory."""
    cell_chars: int = 2_000
    """Characters kept of one cell; a longer one is cut and says so."""
    result_bytes: int = 16 * 1024 * 1024
    """Bytes kept of one result, roughly, over all cells."""
    timeout_s: float = 300.0
    """Seconds one statement may run."""
    repairs: int = 5
    """Model-written repairs of one failing statement."""
    identical_repair_stop: int = 2
    """Times the same statement may come back from the fixer before the step is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationPolicy:
    max_steps: int = 100
    min_steps: int = 0
    test_max_steps: int = 20
    parse_retries: int = 3
    """Nudges per step after a reply that holds no usable action; then the step, and with it the run, fails."""
    output_tokens: int = 4_096
    output_tokens_ceiling: int = 16_384
    """A truncated reply raises the output budget to this once per step."""
    lookup_tables_per_call: int = 10
    lookup_calls: int = 30
    lookup_sample_rows: int = 3
    lookup_columns: int = 50
    lookup_cell_chars: int = 60
    search_calls: int = 30
    search_top_k: int = 10
    search_top_k_max: int = 30
    result_rows_shown: int = 10
    result_cell_chars: int = 200
    result_message_chars: int = 6_000
    """Characters of one result message: 10 wide rows must not eat the conversation."""
    catalog_tokens: int = 20_000
    conversation_tokens: int = 28_000
    catalog_keywords: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestPolicy:
    inline_rows: int = 20
    head_rows: int = 5
    tail_rows: int = 5
    overflow_rows: int = 2
    top_values: int = 3
    top_distinct: int = 20
    cell_chars: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisPolicy:
    top_k: int = 24
    min_score: float = 0.30
    keyword_score: float = 0.55
    area_tokens: int = 45_000
    step_text_chars: int = 400
    """Characters of a step (purpose and statement) that are embedded; the rest of a long statement says little more."""
    breadcrumbs: int = 12
    breadcrumb_chars: int = 140
    output_tokens: int = 8_192
    parse_retries: int = 1
    threads: int = 5
    """Areas analysed at once. A model call waits on the network, so more than the cores is right."""
    insights_per_area: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendationPolicy:
    output_tokens: int = 8_192
    parse_retries: int = 1
    insights: int = 60
    """Eligible insights handed to the recommender at most, most severe first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPolicy:
    value_chars: int = 120
    """Characters of a filter's value that stand in a prompt; an id is shorter."""
    tables_named: int = 20
    """Shared tables, and tables with a column of their own, that are named in a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    discoveries: int = 5
    insights: int = 30
    recommendations: int = 15
    feedback: int = 50
    notes: int = 10
    note_relevance: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPolicy:
    duplicate_score: float = 0.95
    sample_rows: int = 5
    sample_cell_chars: int = 240
    sample_timeout_s: float = 120.0
    sample_scan_bytes: int = 1024**3
    """Bytes a source may bill for the sample of one table; one that needs more is not sampled."""
    describe_batch: int = 500
    """Tables whose columns are read in one catalogue query."""
    embed_batch: int = 64
    """Tables held with their samples at once: embedded in one call, stored in one write."""
    threads: int = 8
    """Tables sampled and described at once (BLURB_WORKERS). A model call waits on the network, so more than the cores is right."""
    failures_allowed: float = 0.05
    """Share of the tables that may fail before the index does."""
    failures_listed: int = 500
    """Failed tables that progress and history name: the allowed share of 10,000 tables."""
    failure_chars: int = 300
    touch_after_s: float = 24 * 3600.0
    """Seconds for which the row of an unchanged table is let alone: its life need not be prolonged by every index."""
    fresh_s: float = 6 * 24 * 3600.0
    """Seconds after which a run indexes again: what the cache's rows live (seven days), less `touch_after_s`."""
    report_every_s: float = 2.0
    """Seconds between two writes of the progress."""
    description_chars: int = 4_000
    output_tokens: int = 512
    output_tokens_ceiling: int = 2_048
    """A reply that could not be read is asked for once more with this budget."""
    parse_retries: int = 1
    keywords: int = 10
    keyword_chars: int = 60
    asked_columns: int = 100
    asked_rows: int = 3
    asked_cell_chars: int = 80
    asked_comment_chars: int = 500
    """What a model is shown of one table: about 4,000 tokens at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    sample_rows: int = 50
    retention_s: float = 48 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    kept_for_analysis: float = 0.4
    """Share of each budget that exploring leaves: five areas and the advice cost about two thirds of the exploring before them."""
    max_duration_s: float = 24 * 3600.0
    """0 means no limit."""
    save_duration_s: float = 600.0
    terminal_write_s: float = 30.0
    stop_grace_s: float = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    query: QueryPolicy = field(default_factory=QueryPolicy)
    exploration: ExplorationPolicy = field(default_factory=ExplorationPolicy)
    digest: DigestPolicy = field(default_factory=DigestPolicy)
    analysis: AnalysisPolicy = field(default_factory=AnalysisPolicy)
    recommendation: RecommendationPolicy = field(default_factory=RecommendationPolicy)
    recall: RecallPolicy = field(default_factory=RecallPolicy)
    tenant: TenantPolicy = field(default_factory=TenantPolicy)
    index: IndexPolicy = field(default_factory=IndexPolicy)
    checkpoint: CheckpointPolicy = field(default_factory=CheckpointPolicy)
    run: RunPolicy = field(default_factory=RunPolicy)


CHARS_PER_TOKEN = 4
TOKEN_MARGIN = 1.25


def estimate_tokens(text: str) -> int:
    """Tokens of a text, estimated high: characters / 4 × 1.25."""
    return int(len(text) / CHARS_PER_TOKEN * TOKEN_MARGIN) + 1
