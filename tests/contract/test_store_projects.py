"""Projects, feedback and the schema cache; and that deleting a project leaves nothing of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from assay_core.model.feedback import Feedback
from assay_core.model.project import AreaOverride, ProjectPrompts
from assay_core.model.run import RunStatus
from assay_core.store import names
from assay_core.store.client import Store
from assay_core.store.memory import Lesson
from assay_core.store.projects import tell_last_run
from assay_core.store.schema import IndexProgress
from tests.builders import (
    NOON,
    a_cached_table,
    a_checkpoint,
    a_discovery,
    a_feed_row,
    a_fenced_run,
    a_project,
    a_run,
    a_standalone_insight,
    an_area,
)


def told(store: Store, status: str, *, at: datetime = NOON, attempt: int = 1) -> None:
    tell_last_run(store.database, "project", status=status, at=at, attempt=attempt)


def last_status(store: Store) -> str | None:
    found = store.projects.get("project")
    assert found
    return found.last_run_status


def test_a_project_is_replaced_but_keeps_its_first_date_and_last_run(store: Store) -> None:
    store.projects.upsert(a_project(name="one"))
    first = store.projects.get("project")
    told(store, "completed")
    store.projects.upsert(a_project(name="two"))
    second = store.projects.get("project")
    assert first
    assert second
    assert (second.name, second.created_at, second.last_run_at) == ("two", first.created_at, NOON)


def test_names_with_dots_and_dollars_survive(store: Store) -> None:
    areas = {"a.b": AreaOverride(name="A"), "c": AreaOverride(name="C")}
    project = a_project(prompts=ProjectPrompts(analysis_areas=areas), profile={"x.y": {"$kind": 1}})
    store.projects.upsert(project)
    found = store.projects.get("project")
    assert found
    assert found.prompts == project.prompts
    assert found.profile == {"x.y": {"＄kind": 1}}


def test_an_older_end_does_not_overwrite_a_newer_one(store: Store) -> None:
    store.projects.upsert(a_project())
    told(store, "completed", at=NOON)
    told(store, "failed", at=NOON - timedelta(hours=1))
    assert last_status(store) == "completed"


def test_word_of_an_older_attempt_that_comes_late_changes_nothing(store: Store) -> None:
    store.projects.upsert(a_project())
    told(store, "pending", attempt=2)
    told(store, "failed", attempt=1)
    assert last_status(store) == "pending"


def test_end_is_announced_only_over_a_running_attempt(store: Store) -> None:
    store.projects.upsert(a_project())
    run = a_run()
    told(store, "running")
    store.projects.announce_end(run, RunStatus.COMPLETED)
    assert last_status(store) == "completed"
    told(store, "cancelled")
    store.projects.announce_end(run, RunStatus.COMPLETED)
    assert last_status(store) == "cancelled"


def test_every_transition_of_a_run_is_told_to_its_project(store: Store) -> None:
    store.projects.upsert(a_project())
    fenced = a_fenced_run(store)
    seen = [last_status(store)]
    store.runs.fail_unowned(fenced.fence.run_id, attempt=1, owner="owner-1", reason="gone")
    seen.append(last_status(store))
    store.runs.resume(fenced.fence.run_id, attempt=1)
    seen.append(last_status(store))
    store.runs.request_cancel(fenced.fence.run_id)
    seen.append(last_status(store))
    assert seen == ["running", "failed", "pending", "cancelled"]


def test_object_ids_and_other_ids_are_both_projects(store: Store) -> None:
    for identifier in ("0123456789abcdef01234567", "local-1"):
        store.projects.upsert(a_project(id=identifier))
        found = store.projects.get(identifier)
        assert found
        assert found.id == identifier
    assert {project.id for project in store.projects.list()} == {"0123456789abcdef01234567", "local-1"}


def test_index_status_is_set_and_its_error_goes(store: Store) -> None:
    store.projects.upsert(a_project())
    store.projects.set_index_status("project", "failed", error="no such schema")
    store.projects.set_index_status("project", "ready")
    found = store.projects.get("project")
    assert found
    assert (found.schema_index_status, found.schema_index_error) == ("ready", None)


def test_deleting_a_project_leaves_nothing_of_it_and_all_of_the_others(store: Store) -> None:
    for project_id in ("project", "other"):
        run = a_fenced_run(store, run=a_run(project_id=project_id))
        run_id = run.fence.run_id
        store.projects.upsert(a_project(id=project_id))
        store.checkpoints.mark_step(
            run, a_checkpoint(run_id, project_id=project_id), a_feed_row(), set={}, inc={}
        )
        store.checkpoints.write_area(run, an_area(run_id, project_id=project_id))
        discovery = a_discovery(run_id=run_id, project_id=project_id)
        store.discoveries.save(
            run, discovery, exploration=[], analysis=[], validation=[], recommendation=None
        )
        insight = a_standalone_insight(discovery.id, project_id=project_id)
        store.discoveries.save_standalone(run, [insight], [])
        store.memory.remember(run, project_id, Lesson(at=NOON))
        store.schema.put([a_cached_table(project_id=project_id)])
        store.schema.report(IndexProgress(project_id=project_id, run_id=run_id, started_at=NOON))
        store.feedback.put(a_like(project_id, discovery.id))
    assert store.projects.delete("project")
    assert not store.projects.delete("project")
    left = {
        name: [row.get("project_id") for row in store.database[name].find()]
        for name in store.database.list_collection_names()
    }
    assert all("project" not in rows for rows in left.values())
    assert left[names.RUNS] == ["other"]
    assert all(len(left[name]) == 1 for name in (names.RUN_STEPS, names.CHECKPOINTS, names.AREA_CHECKPOINTS))
    assert store.memory.get("other").total_discoveries == 1


def a_like(project_id: str, discovery_id: str, **fields: object) -> Feedback:
    given = {
        "id": f"f-{project_id}", "project_id": project_id, "discovery_id": discovery_id, "rating": "like",
        "target_type": "insight", "target_id": "i", "created_at": NOON,
    }  # fmt: skip
    return Feedback.model_validate(given | fields)


def test_feedback_on_one_target_is_said_anew_not_twice(store: Store) -> None:
    store.feedback.put(a_like("project", "d"))
    store.feedback.put(a_like("project", "d", id="f2", rating="dislike", comment="no"))
    (found,) = store.feedback.of_discovery("d")
    assert (found.rating, found.comment) == ("dislike", "no")
    assert store.feedback.of_project("project") == [found]
    assert store.feedback.delete(found.id)
    assert store.feedback.of_project("project") == []


def test_the_cache_serves_one_warehouse_sorted(store: Store) -> None:
    store.schema.put(
        [a_cached_table("b.t"), a_cached_table("a.t"), a_cached_table("c.t", warehouse_hash="h2")]
    )
    store.schema.put([a_cached_table("a.t", description="again")])
    found = store.schema.tables("project", "h1")
    assert [(row.table.ref, row.description) for row in found] == [("a.t", "again"), ("b.t", "")]
    assert found[0].table.sample == a_cached_table().table.sample


def test_named_tables_and_those_of_another_warehouse_are_forgotten(store: Store) -> None:
    store.schema.put([a_cached_table(ref) for ref in ("old.t", "new.t")])
    store.schema.put([a_cached_table("x.t", warehouse_hash="h0")])
    store.schema.forget("project", "h1", [("default", "old.t"), ("default", "x.t")])
    assert [row.table.ref for row in store.schema.tables("project", "h1")] == ["new.t"]
    assert (store.schema.count("project", "h1"), store.schema.count("project", "h0")) == (1, 1)
    store.schema.forget_others("project", "h1")
    assert (store.schema.count("project", "h1"), store.schema.count("project", "h0")) == (1, 0)


def test_what_is_known_of_tables_is_read_without_them_and_touched_by_name(store: Store) -> None:
    keys = [("default", "a.t"), ("default", "b.t"), ("other", "a.t")]
    store.schema.put(
        [
            a_cached_table("a.t", structure="s1", described_by="rules", index_id="i", embedded_by="m"),
            a_cached_table("b.t", problem="locked"),
            a_cached_table("c.t", warehouse_hash="h2"),
        ]
    )
    known = store.schema.known("project", "h1")
    assert set(known.tables) == set(keys[:2])
    assert set(known.foreign) == {("default", "c.t")}
    first, second = known.tables[keys[0]], known.tables[keys[1]]
    assert (first.structure, first.described_by, first.index_id, first.embedded_by) == (
        "s1",
        "rules",
        "i",
        "m",
    )
    assert (first.row_count, first.problem, second.problem, first.cached_at) == (3, None, "locked", NOON)
    later = NOON + timedelta(hours=1)
    store.schema.touch("project", "h1", keys[:1], at=later, row_counts={keys[1]: None})
    touched, other = store.schema.rows("project", "h1", keys)
    assert (touched.cached_at, touched.table.row_count, touched.structure) == (later, 3, "s1")
    assert (other.cached_at, other.table.row_count) == (NOON, None)
    store.schema.forget_vectors("project")
    assert {found.embedded_by for found in store.schema.known("project", "h1").tables.values()} == {""}


def test_index_progress_is_current_and_its_history_stays(store: Store) -> None:
    for number, run_id in enumerate(("r1", "r2")):
        started = NOON + timedelta(hours=number)
        for done in (0, 5):
            store.schema.report(
                IndexProgress(project_id="project", run_id=run_id, tables_done=done, started_at=started)
            )
    now = store.schema.progress("project")
    assert now
    assert (now.run_id, now.tables_done) == ("r2", 5)
    assert [past.run_id for past in store.schema.history("project")] == ["r2", "r1"]
    assert store.schema.progress("nobody") is None
