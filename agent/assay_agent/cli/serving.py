"""`assay scout serve`: the rule-based analyst behind the OpenAI protocol."""

from __future__ import annotations

import argparse

from assay_agent.cli.terminal import console
from assay_core.errors import ConfigError


def serve_scout(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from assay_agent.scout.server import serve

    if not 0 <= arguments.port <= 65_535:
        raise ConfigError(f"--port must be from 0 to 65535, not {arguments.port}")
    console(stderr=True).print(
        f"scout on http://{arguments.host}:{arguments.port}/v1, end with Ctrl-C", markup=False
    )
    serve(arguments.host, arguments.port)
    return 0
