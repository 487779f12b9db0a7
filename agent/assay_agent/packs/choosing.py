"""What one run takes from a pack: its category, its areas by priority, its templates. Pure.

`wiring` calls it; a project's own prompts win over the pack's.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay_agent.context import Templates
from assay_core.errors import ConfigError
from assay_core.model.pack import Area, DomainPack
from assay_core.model.project import Project


def category_of(pack: DomainPack, project: Project) -> str:
    """The project's category, which the pack must have; left empty it is the pack's only one."""
    known = [category.id for category in pack.categories]
    if project.category in known:
        return project.category
    if not project.category and len(known) == 1:
        return known[0]
    if not project.category:
        raise ConfigError(f"category is missing; pack {pack.slug} has {', '.join(known)}")
    raise ConfigError(f"category {project.category!r} is not one of pack {pack.slug}'s: {', '.join(known)}")


def selected_areas(pack: DomainPack, project: Project, wanted: Sequence[str]) -> tuple[Area, ...]:
    """Areas of this run by priority: the pack's base and category areas, the project's overrides, then the selection."""
    areas = {area.id: area for area in pack.analysis_areas.base}
    areas |= {area.id: area for area in pack.analysis_areas.categories.get(category_of(pack, project), [])}
    for area_id, override in (project.prompts.analysis_areas if project.prompts else {}).items():
        if not override.enabled:
            areas.pop(area_id, None)
            continue
        kept = areas.get(area_id)
        fields = override.model_dump(exclude={"is_base", "is_custom", "enabled"}, exclude_defaults=True)
        areas[area_id] = Area.model_validate({**(kept.model_dump() if kept else {}), **fields, "id": area_id})
    unknown = sorted(set(wanted) - set(areas))
    if unknown:
        raise ConfigError(
            f"--areas: {', '.join(unknown)} unknown; pack {pack.slug} has {', '.join(sorted(areas))}"
        )
    chosen = [area for area in areas.values() if not wanted or area.id in wanted]
    if not chosen:
        raise ConfigError(f"no analysis area is enabled; pack {pack.slug} has {', '.join(sorted(areas))}")
    return tuple(sorted(chosen, key=lambda area: (area.priority, area.id)))


def templates(pack: DomainPack, project: Project) -> Templates:
    """The three texts of a run."""
    own = project.prompts
    context = pack.prompts.categories.get(category_of(pack, project))
    exploration = pack.prompts.base.exploration
    if context and context.exploration_context:
        exploration = f"{exploration}\n\n{context.exploration_context}"
    return Templates(
        base_context=(own and own.base_context) or pack.prompts.base.base_context,
        exploration=(own and own.exploration) or exploration,
        recommendations=(own and own.recommendations) or pack.prompts.base.recommendations,
    )
