"""Traces and arrivals by chance."""

from __future__ import annotations

from collections import Counter
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.lab.simulate import (
    Arrival,
    PoissonArrivals,
    read_trace,
    trace_text,
)
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey

SMALL = ClaimKey("default", "small")
HOUR = 3_600_000


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


def test_a_trace_is_read_in_the_order_of_its_times(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "template,time,duration,priority,namespace,group,colour\nml/big,2.5,,7,research,g,red\nsmall,0.0004,60,,,,\n",
    )
    assert read_trace(path) == (
        Arrival(0, SMALL, 60_000),
        Arrival(2500, ClaimKey("ml", "big"), None, 7, "research", "g"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "time,template\n",
            "a trace has the columns time, duration, template; missing: duration",
        ),
        ("", "missing: time, duration, template"),
        ("time,duration,template\n1,2,\n", ":2: template: is empty"),
        ("time,duration,template\n,2,x\n", ":2: time: is empty"),
        (
            "time,duration,template\nsoon,2,x\n",
            ":2: time: 'soon' is no number of seconds",
        ),
        (
            "time,duration,template\n1,-2,x\n",
            ":2: duration: -2 is not between 0 and",
        ),
        (
            "time,duration,template\n1,nan,x\n",
            ":2: duration: nan is not between 0 and",
        ),
        (
            "time,duration,template,priority\n1,2,x,high\n",
            ":2: priority: 'high' is no integer",
        ),
        (
            "time,duration,template,priority\n1,2,x,3000000000\n",
            "is no integer of 32 bits",
        ),
    ],
)
def test_what_is_wrong_with_a_trace_is_said_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DrallocError) as caught:
        read_trace(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DrallocError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")


_NAMES = st.sampled_from(["a", "b"])


@given(
    st.lists(
        st.builds(
            Arrival,
            st.integers(0, 10**9),
            st.builds(ClaimKey, _NAMES, _NAMES),
            st.none() | st.integers(0, 10**9),
            st.none() | st.integers(-5, 5),
            st.sampled_from(["", "x"]),
            st.sampled_from(["", "g"]),
        )
    )
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[Arrival]
) -> None:
    path = written(tmp_path_factory.mktemp("trace"), trace_text(arrivals))
    assert read_trace(path) == tuple(
        sorted(arrivals, key=lambda arrival: arrival.time)
    )


def test_arrivals_depend_on_the_seed_alone() -> None:
    process = PoissonArrivals(
        {"small": 3, "ml/big": 1},
        per_hour=30,
        hours=10,
        durations="pareto",
        shape=2.5,
    )
    assert process.draw(1) == process.draw(1)
    assert process.draw(1) != process.draw(2)


@pytest.mark.parametrize(
    "durations", ["fixed", "exponential", "lognormal", "pareto"]
)
def test_means_and_shares_are_those_that_were_asked_for(durations: str) -> None:
    process = PoissonArrivals(
        {"small": 3, "ml/big": 1},
        per_hour=100,
        hours=300,
        mean_hours=2,
        durations=durations,
        shape=1.2 if durations == "lognormal" else 3.0,
        priorities={0: 1, 5: 1},
    )
    arrivals = process.draw(0)
    assert isclose(len(arrivals), 30_000, rel_tol=0.03)
    lengths = [arrival.duration or 0 for arrival in arrivals]
    assert isclose(sum(lengths) / len(lengths), 2 * HOUR, rel_tol=0.05)
    small = sum(arrival.template == SMALL for arrival in arrivals)
    assert isclose(small / len(arrivals), 0.75, rel_tol=0.03)
    assert isclose(
        sum(arrival.priority == 5 for arrival in arrivals) / len(arrivals),
        0.5,
        rel_tol=0.05,
    )


def test_more_come_by_day_than_by_night() -> None:
    process = PoissonArrivals(
        {"small": 1}, per_hour=100, hours=24 * 20, swing=0.8
    )
    hours = Counter(arrival.time // HOUR % 24 for arrival in process.draw(3))
    assert isclose(hours[12] / hours[0], 9, rel_tol=0.3)
    assert isclose(hours[6] / 2000, 1, rel_tol=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"per_hour": 0}, "per_hour: 0 is not a positive number"),
        ({"hours": float("inf")}, "hours: inf is not a positive number"),
        ({"swing": 1.5}, "swing: 1.5 is not between 0 and 1"),
        (
            {"durations": "pareto", "shape": 1.0},
            "the Pareto distribution has no mean",
        ),
        ({"durations": "long"}, "no distribution 'long'"),
        ({"mix": {}}, "names no template"),
        ({"mix": {"a": -1}}, "the shares are not from 0"),
        ({"per_hour": 1e9}, "more than 10000000 are expected"),
    ],
)
def test_numbers_out_of_range(wrong: dict[str, object], message: str) -> None:
    given = {"mix": {"small": 1}, "per_hour": 10, "hours": 10, **wrong}
    with pytest.raises(DrallocError) as caught:
        PoissonArrivals(**given)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("before", ["", "time,duration,template\n0,1,"])
def test_a_quotation_mark_that_is_never_closed(
    tmp_path: Path, before: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f'{before}"{"0,1,large," * 20_000}')
    with pytest.raises(DrallocError, match=r"trace\.csv:\d+: field larger"):
        read_trace(path)
