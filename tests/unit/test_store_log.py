"""Logging: keys travel, levels hold, and a hidden secret is in no line whatever carried it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from assay_core import log
from assay_core.errors import ConfigError

SECRET = 'pa$$"wörd/+x'


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_keys_are_bound_for_the_block() -> None:
    out = io.StringIO()
    log.configure(level="info", json=True, stream=out)
    with log.bound(run_id="r1"):
        log.logger("agent").info("claimed", attempt=2)
    log.logger("agent").info("after")
    first, second = [json.loads(line) for line in out.getvalue().splitlines()]
    assert (first["event"], first["run_id"], first["attempt"], first["level"]) == ("claimed", "r1", 2, "info")
    assert first["component"] == "agent"
    assert "run_id" not in second


def test_lines_below_the_level_are_dropped() -> None:
    out = io.StringIO()
    log.configure(level="WARNING", json=False, stream=out)
    log.logger("agent").info("quiet")
    log.logger("agent").warning("loud")
    assert "quiet" not in out.getvalue()
    assert "loud" in out.getvalue()


def test_an_unknown_level_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="LOG_LEVEL"):
        log.configure(level="chatty", json=True, stream=io.StringIO())


@pytest.mark.parametrize("as_json", [True, False])
def test_a_hidden_secret_is_in_no_line(as_json: bool) -> None:
    out = io.StringIO()
    log.configure(level="info", json=as_json, stream=out)
    log.hide(SECRET)
    speaker = log.logger("agent")
    speaker.info(
        f"connecting with {SECRET}", nested={"key": [SECRET]}, url="http://u:pa%24%24%22w%C3%B6rd/%2Bx@h"
    )
    try:
        raise RuntimeError(f"refused {SECRET}")
    except RuntimeError:
        speaker.exception("it failed")
    logging.getLogger("some.library").warning("using %s", SECRET)
    text = out.getvalue()
    for part in ("pa$$", "wörd", "w\\u00f6rd", "pa%24"):
        assert part not in text
    assert text.count(log.MASK) >= 5


def test_other_libraries_speak_the_same_format() -> None:
    out = io.StringIO()
    log.configure(level="info", json=True, stream=out)
    logging.getLogger("some.library").warning("careful %d", 5)
    assert json.loads(out.getvalue())["event"] == "careful 5"


def test_masked_serves_messages_outside_the_log() -> None:
    log.hide("another-secret")
    log.hide(None)
    log.hide("abc")
    assert log.masked("key another-secret abc") == f"key {log.MASK} abc"
