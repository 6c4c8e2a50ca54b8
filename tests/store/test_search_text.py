"""What a person types is split as a shell does it, and refused where it means nothing."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfe.errors import UsageError
from wfe.store.queries import conditions as meant
from wfe.store.queries.conditions import Operator, Word, containing
from wfe.store.queries.times import moment, span
from wfe.store.queries.typed import conditions, states
from wfe.store.queries.words import words

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(st.text(alphabet="ab =~,'\"\\ \t\n\xa0", max_size=12))
def test_words_are_those_of_a_shell(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(UsageError):
            words(text)
        return
    typed = words(text)
    assert [word.text for word in typed] == expected
    assert all(len(word.text) == len(word.bare) for word in typed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a=b"', "a=b"),
        ("'a=b'", "a=b"),
        ("a\\=b", "a=b"),
        ('a"="b', "a=b"),
        ("wow!", "wow!"),
        ("'two words'", "two words"),
        ("%", "%"),
        ("a.b", "a.b"),
    ],
)
def test_what_is_quoted_or_compares_nothing_is_a_word(text: str, expected: str) -> None:
    assert conditions(text, NOW) == (Word(containing(expected)),)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("run=a,b", ("a", "b")),
        ("run='a,b'", ("a,b",)),
        ("run=a\\,b,c", ("a,b", "c")),
        ("run='x=y'", ("x=y",)),
        ("run=", ("",)),
        ("run=a,", ("a", "")),
        ("run='a b'", ("a b",)),
    ],
)
def test_commas_that_are_not_quoted_separate_alternatives(
    text: str, values: tuple[str, ...]
) -> None:
    assert conditions(text, NOW) == (meant.Test("run_id", Operator.IN, values),)


def test_nothing_asks_for_nothing() -> None:
    assert conditions("", NOW) == conditions("  ", NOW) == conditions("''", NOW) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("statee=done", "no field 'statee'. Did you mean state?"),
        ("tx~42", "no field 'tx'. Did you mean transaction?"),
        ("result.id=1", "no field 'result'. Did you mean output?"),
        ("nosuchfield=1", "no field 'nosuchfield'. There are: workflow, .* output.PATH. To find"),
        ("a->b", "no field 'a-'.*'a->b' as it stands, put it in quotes"),
        ("=x", "'=x' compares no field"),
        ("state=fialed", "no state 'fialed'. Did you mean failed?"),
        ("state=waiting", "no state 'waiting'. There are: not_started"),
        ("status=waitin", "no status 'waitin'. Did you mean waiting?"),
        ("step.a=finished", "no state of a step 'finished'"),
        ("state>done", "state takes = != ~"),
        ("error>x", "error takes = != ~"),
        ("workflow==order", "no operator ==. There are: = != ~ > >= < <="),
        ("workflow=~order", "no operator =~"),
        ("age!<2h", "no operator !<"),
        ("workflow.x=1", "workflow has no parts"),
        ("state.x=done", "state has no parts"),
        ("age.x>1h", "age has no parts"),
        ("created.x>1h", "created has no parts"),
        ("attempts.x>1", "attempts has no parts"),
        ("error.x=1", "error has no parts"),
        ("step=done", "step wants the name of one"),
        ("step.=done", "step wants the name of one"),
        ("created=2h", "'2h' is no day or time"),
        ("created=soon", "'soon' is no day or time"),
        ("created=2026-02-30", "'2026-02-30' is no day or time"),
        ("created~2026", "created takes = != > >= < <="),
        ("created>soon", "'soon' is no moment"),
        ("created>99999999999h", "is no moment"),
        ("created>1h,2h", "> takes one value"),
        ("age=2h", "age takes > >= < <="),
        ("age>soon", "'soon' is no duration"),
        ("age>99999999999d", "nothing is that old"),
        ("attempts~1", "attempts takes = != > >= < <="),
        ("attempts=x", "attempts is a whole number"),
        ("attempts>1,2", "> takes one value"),
        ("run>a,b", "> takes one value"),
        ("'open", "opens a quotation"),
        ("end\\", "Nothing follows the backslash"),
        ("x" * 4001, "at most 4000"),
        ("\udcff", "no text"),
    ],
)
def test_what_means_nothing_is_refused_with_what_does(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        conditions(text, NOW)


def test_a_list_of_states_is_refused_for_one_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="Did you mean failed"):
        states("done,fialed")


# --- times ---------------------------------------------------------------------------------------


@pytest.fixture
def in_london(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is London's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/London")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_london")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", NOW - timedelta(hours=2)),
        ("2h ago", NOW - timedelta(hours=2)),
        ("1h30m ago", NOW - timedelta(minutes=90)),
        ("0s", NOW),
        ("2026-07-01", datetime(2026, 6, 30, 23, tzinfo=UTC)),
        ("2026-07-01T12:00Z", datetime(2026, 7, 1, 12, tzinfo=UTC)),
        ("2026-07-01 12:00", datetime(2026, 7, 1, 11, tzinfo=UTC)),
    ],
)
def test_moments(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.usefixtures("in_london")
@pytest.mark.parametrize(
    ("text", "hours"), [("2026-03-01", 24), ("2026-03-29", 23), ("2026-10-25", 25)]
)
def test_a_day_is_as_long_as_it_is_where_one_lives(text: str, hours: float) -> None:
    begin, end = span(text)
    assert end - begin == timedelta(hours=hours)
