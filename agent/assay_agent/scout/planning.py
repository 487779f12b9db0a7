"""The scout's next action: look tables up, profile them, then ask the best question that is left. Pure.

Works in chapters: a batch of tables is looked up, profiled and questioned before the next one. A lookup that was folded out of the
conversation is done again. The same statement is never asked twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay_agent.exploration.actions import Action, Finish, Lookup, Query
from assay_agent.scout.questions import Question, profile_questions, read_profiles, table_questions
from assay_agent.scout.roles import Roles, roles_of
from assay_agent.scout.situation import Listed, Situation, Table
from assay_agent.scout.sql_text import Sql

_CHAPTER_TABLES, _CHAPTER_COLUMNS = 10, 120
_QUESTIONS_PER_TABLE = 26
_QUESTIONS_PER_LATER_TABLE = 8


def next_action(situation: Situation) -> Action:
    """What to do now."""
    for chapter in chapters(situation):
        refs = [listed.ref for listed in chapter]
        known = [situation.tables[ref] for ref in refs if ref in situation.tables]
        unseen = [ref for ref in refs if ref not in situation.tables]
        first_time = [ref for ref in unseen if ref not in situation.looked_up]
        if first_time:
            return Lookup(refs=tuple(unseen), rationale="columns of the next tables, the largest first")
        question = _next_question(situation, known, chapter_is_first=chapter is chapters(situation)[0])
        if question is not None:
            return Query(
                sql=question.sql,
                purpose=question.told,
                rationale=f"{question.purpose}: next by what it may show",
            )
        if unseen and not known and _unfinished(situation, refs):
            return Lookup(refs=tuple(unseen), rationale="these columns are no longer in view")
    return Finish(
        summary="every table in reach was profiled and questioned", rationale="nothing worth asking is left"
    )


def chapters(situation: Situation) -> list[list[Listed]]:
    """Tables in batches, the largest first."""
    ordered = sorted(situation.listed, key=lambda listed: (-listed.rows, listed.ref))
    made: list[list[Listed]] = []
    columns = 0
    for listed in ordered:
        if not made or len(made[-1]) >= _CHAPTER_TABLES or columns + listed.columns > _CHAPTER_COLUMNS:
            made.append([])
            columns = 0
        made[-1].append(listed)
        columns += listed.columns
    return made


def _next_question(
    situation: Situation, tables: Sequence[Table], *, chapter_is_first: bool
) -> Question | None:
    sql = Sql(situation.dialect)
    profiles = [question for table in tables for question in profile_questions(table, sql)]
    for question in profiles:
        if question.key not in situation.asked:
            return question
    profiled: list[tuple[Table, Roles]] = []
    for table in tables:
        read = read_profiles(table, situation.results)
        if read is not None:
            profiled.append((table, roles_of(table, read[1], read[0])))
    largest = max((roles.rows for _, roles in profiled), default=0)
    candidates: list[tuple[float, Question]] = []
    for table, roles in profiled:
        room = (
            _QUESTIONS_PER_TABLE
            if roles.rows >= largest * 0.2 and chapter_is_first
            else _QUESTIONS_PER_LATER_TABLE
        )
        # Small tables are side tables: their questions wait behind those of the large ones.
        handicap = 0.0 if roles.rows >= largest * 0.2 else 2.5
        candidates += [
            (question.priority + handicap, question)
            for question in table_questions(table, roles, profiled, sql)[:room]
        ]
    candidates.sort(key=lambda item: (item[0], item[1].key))
    return next((question for _, question in candidates if question.key not in situation.asked), None)


def _unfinished(situation: Situation, refs: Sequence[str]) -> bool:
    """Whether a chapter out of view was left before it was profiled."""
    return not any(key.startswith(f"profile:{ref}:") for ref in refs for key in situation.asked)
