"""The scout's next action: look tables up, profile them, test how they join, then question one table after the other. Pure.

Works in chapters: a batch of tables is looked up, profiled, and finished before the next one. A table is finished before the next
of its chapter is begun, so that a question to a later one says that the earlier ones are done. What has been folded out of the
conversation and is still needed is looked up and profiled again. The same statement is never asked twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay_agent.exploration.actions import Action, Finish, Lookup, Query
from assay_agent.policy import ExplorationPolicy
from assay_agent.scout.keys import folded, parts_of
from assay_agent.scout.questions.joins import join_questions, namings
from assay_agent.scout.questions.profiles import profile_questions, read_profiles
from assay_agent.scout.questions.question import Question
from assay_agent.scout.questions.table import table_questions
from assay_agent.scout.roles import Profile, Roles, roles_of
from assay_agent.scout.situation import Listed, Situation, Table
from assay_agent.scout.sql_text import Sql

_CHAPTER_TABLES, _CHAPTER_COLUMNS, _LOOKUP_TABLES = 12, 130, 10
_SHARE_OF_LARGEST = 0.45
_LEAST_QUESTIONS = 4
_MANY_TABLES = 8
"""Tables from which breadth goes before depth: a step for each of them, times what the budget allows."""
_PROFILE_ROUNDS = 4
_SHOWN_COLUMNS = ExplorationPolicy().lookup_columns
_FIRST_FAMILIES = ("profile", "orphan")


def next_action(situation: Situation) -> Action:
    """What to do now."""
    for chapter in chapters(situation):
        action = _in_chapter(situation, [listed.ref for listed in chapter])
        if action is not None:
            return action
    unseen = _unseen_columns(situation)
    summary = "every table in reach was profiled and questioned"
    if unseen:
        summary = f"the tables in reach were questioned, {unseen:,} columns were not looked at"
    return Finish(summary=summary, rationale="nothing worth asking is left")


def _unseen_columns(situation: Situation) -> int:
    """Columns that no lookup showed; of a table that is out of view, those beyond what a lookup shows."""
    seen = {ref: len(table.columns) for ref, table in situation.tables.items()}
    looked_up = {*seen, *situation.looked_up, *(parts_of(key)[1] for key in situation.asked)}
    return sum(
        max(listed.columns - (seen.get(listed.ref, _SHOWN_COLUMNS) if listed.ref in looked_up else 0), 0)
        for listed in situation.listed
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


def _in_chapter(situation: Situation, refs: Sequence[str]) -> Action | None:
    """The next action for these tables, None when they are finished."""
    known = {*situation.looked_up, *(parts_of(key)[1] for key in situation.asked)}
    never_seen = [ref for ref in refs if ref not in known]
    if never_seen and situation.lookups_left > 0:
        return Lookup(
            refs=tuple(never_seen[:_LOOKUP_TABLES]), rationale="columns of the next tables, the largest first"
        )
    if not _begun(situation, refs):
        action = _first_look(situation, refs)
        if action is not None:
            return action
    for position, ref in enumerate(refs):
        if _begun(situation, refs[position + 1 :]):
            continue
        action = _in_table(situation, ref, room=_room(situation, position, len(refs)))
        if action is not None:
            return action
    return None


def _begun(situation: Situation, refs: Sequence[str]) -> bool:
    """Whether any of these tables has been questioned, profiles and joins aside."""
    wanted = set(refs)
    return any(
        family not in _FIRST_FAMILIES and table in wanted
        for family, table, *_ in (parts_of(key) for key in situation.asked)
    )


def _first_look(situation: Situation, refs: Sequence[str]) -> Action | None:
    """Profile each table, then ask how they join; needs all of them in view."""
    sql = Sql(situation.dialect)
    known = [situation.tables[ref] for ref in refs if ref in situation.tables]
    for table in known:
        for question in profile_questions(table, sql, turn=1):
            if _is_new(situation, question):
                return _query(question)
    profiled = _profiled(situation, known)
    for table, roles in profiled:
        for question in join_questions(table, roles, profiled, sql):
            if _is_new(situation, question):
                return _query(question)
    return None


def _profiled(situation: Situation, tables: Sequence[Table]) -> list[tuple[Table, Roles]]:
    found: list[tuple[Table, Roles]] = []
    for table in tables:
        read = read_profiles(table, situation.results)
        if read is not None:
            found.append((table, _roles(situation, table, read)))
    return found


def _roles(situation: Situation, table: Table, read: tuple[int, Mapping[str, Profile]]) -> Roles:
    rows, profiles = read
    return roles_of(table, profiles, rows, tables=[listed.ref for listed in situation.listed])


def _in_table(situation: Situation, ref: str, *, room: int) -> Action | None:
    """The best question left for a table; what is needed to find it is brought back into view first."""
    if _count(situation.asked, ref) >= room:
        return None
    table = situation.tables.get(ref)
    if table is None:
        if situation.lookups_left < 1:
            return None
        return Lookup(refs=(ref,), rationale="these columns are no longer in view")
    sql = Sql(situation.dialect)
    read = read_profiles(table, situation.results)
    if read is None or not _covers(table, read[1]):
        again = _profile_again(situation, table, sql)
        if again is not None:
            return again
    if read is None:
        return None
    roles = _roles(situation, table, read)
    names = namings(table, _profiled(situation, list(situation.tables.values())))
    questions = table_questions(table, roles, sql, results=situation.results, names=names)
    return next((_query(question) for question in questions if _is_new(situation, question)), None)


def _is_new(situation: Situation, question: Question) -> bool:
    """Whether neither the question nor its statement was put before, as far as the conversation tells."""
    return (
        question.key not in situation.asked
        and question.sql not in situation.statements
        and folded(question.told) not in situation.cut_purposes
    )


def _covers(table: Table, profiles: Mapping[str, object]) -> bool:
    """Whether most of the simple columns are profiled in view."""
    return len(profiles) * 10 >= len(table.columns) * 6


def _profile_again(situation: Situation, table: Table, sql: Sql) -> Action | None:
    """Ask for a profile that is out of view, as a new statement with its turn in the key."""
    # What failed once fails again, and what is in view needs no second look.
    hopeless = {parts_of(key)[1:3] for key in situation.failed if parts_of(key)[0] == "profile"}
    for turn in range(1, _PROFILE_ROUNDS + 1):
        left = [
            question
            for question in profile_questions(table, sql, turn=turn)
            if parts_of(question.key)[1:3] not in hopeless and _is_new(situation, question)
        ]
        if left:
            return _query(left[0])
    return None


def _room(situation: Situation, position: int, tables: int) -> int:
    """Questions for a table: the largest of a chapter gets the largest part."""
    if tables == 1:
        return situation.max_steps
    if len(situation.listed) > _MANY_TABLES:
        return max(situation.max_steps // _MANY_TABLES * (2 if position == 0 else 1), _LEAST_QUESTIONS)
    if position == 0:
        return max(int(situation.max_steps * _SHARE_OF_LARGEST), _LEAST_QUESTIONS)
    return max(int(situation.max_steps * (1 - _SHARE_OF_LARGEST) / (tables - 1)), _LEAST_QUESTIONS)


def _count(asked: set[str], ref: str) -> int:
    return sum(
        family not in _FIRST_FAMILIES and table == ref
        for family, table, *_ in (parts_of(key) for key in asked)
    )


def _query(question: Question) -> Query:
    return Query(
        sql=question.sql, purpose=question.told, rationale=f"{question.purpose}: next by what it may show"
    )
