"""The prompts of each shipped pack as a model sees them, reviewed as prose, one file for each category.

The rules that the engine adds to every area are in `golden/analysis.md` and are left out here. To accept a change:
`ASSAY_GOLDEN=write make test`, then read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay_agent.ports import CompletionRequest
from assay_agent.settings import AgentSettings
from assay_core.store.client import Store
from tests.integration.test_pack_samples import CASES, opened, script
from tests.prompts.test_prompts import compare, settled

_RESULTS = re.compile(r'\[\{"step".*?\n\n\nTask: analysis\n.*', re.DOTALL)
_ADVICE = re.compile(r"\n\[\n \{.*?\n\]\n", re.DOTALL)


@pytest.mark.parametrize(("pack", "category"), CASES)
def test_prompts_of_a_category(store: Store, tmp_path: Path, pack: str, category: str) -> None:
    bench = opened(store, tmp_path, pack, domain=pack, category=category, profile={"about": "A test"})
    replies, _ = script(pack, category)
    with bench.resources:
        model = bench.script(replies, repeat_last=True)
        settings = AgentSettings.load().model_copy(update={"assay_enable_system_test": True})
        assert bench.go(bench.new_run(), "--max-steps", "40", settings=settings) == 0
    system = next(request for request in model.requests if request.layer == "exploration").messages[0].content
    base = system.split("\n\n## ", 1)[0]
    parts = [f"<!-- exploration, system -->\n\n{system}"]
    areas = {_area(request): request for request in model.requests if request.layer == "analysis"}
    parts += [
        f"<!-- analysis, area {area} -->\n\n{_RESULTS.sub('(results and rules)', _alone(request, base))}"
        for area, request in sorted(areas.items())
    ]
    advice = next(request for request in model.requests if request.layer == "recommendations")
    text = _alone(advice, base).split("\n\n\nTask: recommendations")[0]
    parts.append("<!-- recommendations -->\n\n" + _ADVICE.sub("\n(findings)\n", text))
    compare(f"pack_{pack}_{category}", settled("\n\n".join(parts)) + "\n")


def _area(request: CompletionRequest) -> str:
    found = re.search(r"^Area: (\S+)$", request.messages[0].content, re.MULTILINE)
    assert found is not None
    return found.group(1)


def _alone(request: CompletionRequest, base: str) -> str:
    """A prompt without the base context, which stands in front of every one."""
    text = request.messages[0].content
    assert text.startswith(base)
    return text.removeprefix(base).lstrip("\n")
