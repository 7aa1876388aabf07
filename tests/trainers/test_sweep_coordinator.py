"""Who runs which trial: with workers that die, fall silent, come back late, or have other flags."""

import time

from tests.trainers.coordination import CELLS, coordinator, finish, result_of
from trainers.sweeps.coordinator import REFUSED, STOP, WAIT


class Silence:
    """A clock that a test moves."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def passes(self, chief, seconds=1.0, beating=()):
        """Looks often enough that the chief itself has not been away."""
        for _ in range(round(seconds / 0.05)):
            self.now += 0.05
            for job in beating:
                chief.beat(job.id)
            chief.look()


def test_every_run_is_handed_out_once_and_it_is_over_when_all_have_ended():
    chief = coordinator()
    jobs = [chief.ask(worker, "same").job for worker in "ab"]
    assert [job.cell for job in jobs] == CELLS
    assert chief.ask("c", "same").status == WAIT  # one of the others may yet lose its run
    finish(chief, jobs[0])
    finish(chief, jobs[1], status="diverged")
    assert chief.is_over
    assert not chief.all_told
    assert [chief.ask(worker, "same").status for worker in "abc"] == [STOP] * 3
    assert chief.all_told
    assert [result.status for result in chief.fresh()] == ["done", "diverged"]
    assert chief.fresh() == []


def test_results_that_are_there_are_not_run_again_but_failures_are():
    known = [result_of(CELLS[0]), result_of(CELLS[1], status="failed")]
    chief = coordinator(known=known)
    job = chief.ask("a", "same").job
    assert job.cell == CELLS[1]
    finish(chief, job, status="failed")
    assert chief.ask("a", "same").status == STOP  # once for each start


def test_a_silent_worker_loses_its_run_and_a_late_one_is_told_so(monkeypatch):
    silence, chief = Silence(monkeypatch), coordinator()
    lost, kept = (chief.ask(worker, "same").job for worker in "ab")
    silence.passes(chief, beating=[kept])
    again = chief.ask("c", "same").job
    assert again.cell == lost.cell
    assert again.take_over
    assert not chief.beat(lost.id)
    assert chief.beat(again.id)
    finish(chief, again)
    finish(chief, lost)  # too late
    assert len(chief.fresh()) == 1


def test_a_worker_that_can_be_ended_leaves_nothing_to_take_over(monkeypatch):
    ended = []
    silence, chief = Silence(monkeypatch), coordinator(expel=lambda name: not ended.append(name))
    chief.ask("a", "same")
    silence.passes(chief)
    assert ended == ["a"]
    jobs = [chief.ask(worker, "same").job for worker in "bc"]
    assert [job.take_over for job in jobs] == [False, False]


def test_a_chief_that_was_away_itself_takes_nobodys_run(monkeypatch):
    silence, chief = Silence(monkeypatch), coordinator()
    job = chief.ask("a", "same").job
    silence.now += 100
    chief.look()
    assert chief.beat(job.id)


def test_a_worker_that_asks_anew_has_died_and_its_run_is_given_out_again():
    chief = coordinator()
    first = chief.ask("a", "same").job
    second = chief.ask("a", "same").job
    assert (second.cell, second.take_over) == (first.cell, False)
    assert not chief.beat(first.id)


def test_a_worker_that_leaves_gives_its_run_back():
    chief = coordinator()
    job = chief.ask("a", "same").job
    chief.finish(job.id, {"left": True})
    assert chief.all_told
    assert chief.ask("b", "same").job.cell == job.cell


def test_a_new_chief_lets_workers_go_on_with_what_the_old_one_gave_them():
    old, new = coordinator(), coordinator()
    going, gone = (old.ask(worker, "same").job for worker in "ab")
    assert new.beat(going.id)
    assert new.ask("c", "same").job.cell == CELLS[1]
    assert not new.beat(gone.id)  # it came too late
    finish(new, going)
    assert [result.name for result in new.fresh()] == [CELLS[0].name]


def test_a_result_from_before_the_chief_was_started_counts():
    old, new = coordinator(), coordinator()
    finish(new, old.ask("a", "same").job)
    assert new.ask("a", "same").job.cell == CELLS[1]


def test_a_worker_with_other_flags_is_refused():
    assert coordinator().ask("a", "other").status == REFUSED


def test_a_run_without_a_result_is_not_over_in_silence():
    chief = coordinator()
    job = chief.ask("a", "same").job
    chief.finish(job.id, {"error": "OSError: No space left on device"})
    assert chief.unwritten == {CELLS[0].name: "OSError: No space left on device"}
