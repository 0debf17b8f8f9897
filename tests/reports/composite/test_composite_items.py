"""The components of a run's outputs: what each source reads, and what it does not."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from humanjudge.core.validation import ConfigInvalid
from judge_eval.board.filters import Slice
from judge_eval.models import Judge, Verdict
from reports.composite.compute import Tally
from reports.composite.config import CompositeConfig, Weight, parse
from reports.composite.sources import (
    Outputs,
    judge_names,
    offered,
    proposal,
    read_config,
    store,
    versions_of,
)
from reports.models import CompositeDefinition
from tests.makers import (
    judges_of,
    make_inference,
    make_many_entries,
    make_many_votes,
    make_passes,
    make_picture,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.models import Entry, Inference, Picture

pytestmark = pytest.mark.django_db


IT_COUNTS = {"weight": 1, "reason": "It counts."}


def source(kind, **options):
    sources = {"it": {"from": kind, **options}}
    return parse({"weights": {"it": IT_COUNTS}, "sources": sources}).sources["it"]


def config(check="pass_rate", **sources):
    weights = {name: Weight(**IT_COUNTS) for name in sources}
    return CompositeConfig(weights=weights, sources=sources, check=check)


def component(run, about):
    """What one source says of each output: those of the pairs in order, first and second."""
    found = Outputs(run, [config(it=about)]).components(config(it=about))
    return [values["it"] for values in found.values()]


class TestWinRate:
    def test_wins_ties_and_losses(self):
        run = make_run(pairs=2, votes_wanted=9)
        first, _ = pairs_of(run)
        for choice in ("A", "A", "A", "tie", "both_bad"):
            make_vote(make_voter(run), first, choice)
        seal_all(run.queue.project)
        assert component(run, source("win_rate")) == [3.5 / 5, 0.5 / 5, None, None]

    def test_an_output_in_several_pairs(self):
        run = make_run(pairs=2, votes_wanted=9)
        first, second = pairs_of(run)
        second.a_id = first.a_id
        second.save()
        make_vote(make_voter(run), first, "A")
        make_vote(make_voter(run), second, "B")
        seal_all(run.queue.project)
        assert component(run, source("win_rate")) == [0.5, 0.0, 1.0]

    def test_votes_that_do_not_count_are_not_read(self):
        run = make_run(votes_wanted=9)
        (pair,) = pairs_of(run)
        vote = {"item": pair, "choice": "A", "left_side": "A", "rubric": run.queue.rubric}
        rows = [vote | {"voter": make_voter(run), "simulated": True}]
        make_many_entries(run, "vote", rows)
        seal_all(run.queue.project)
        make_many_votes(run, [(make_voter(run), pair, "A")])
        assert component(run, source("win_rate")) == [None, None]


class TestJudgeScore:
    def test_the_mean_over_its_verdicts_by_the_range(self):
        run = make_run(pairs=2, judges=2)
        for verdict, score in zip(Verdict.objects.order_by("id"), (8, 1, 5, 1), strict=True):
            verdict.score_a, verdict.score_b = score, 10 - score
            verdict.save()
        score = source("judge_score", judge="judge-0", range=[0, 10])
        assert component(run, score) == pytest.approx([0.8, 0.2, 0.5, 0.5])

    def test_a_verdict_without_a_score_says_nothing(self):
        run = make_run(says=[["A"], [None]])
        score = source("judge_score", judge="judge-0", range=[0, 10])
        assert component(run, score) == [None] * 4

    def test_a_score_beyond_the_range_is_no_component(self):
        run = make_run(judges=1)
        Verdict.objects.update(score_a=80, score_b=5)
        score = source("judge_score", judge="judge-0", range=[0, 10])
        assert component(run, score) == [8.0, 0.5]


class TestVerdicts:
    def said(self):
        """Two pairs: four people say A, A, tie, B of the first, one says both bad of the other."""
        run = make_run(pairs=2, says=[["A", "tie"], [None, "B"]], votes_wanted=9)
        first, second = pairs_of(run)
        for choice in ("A", "A", "tie", "B"):
            make_vote(make_voter(run), first, choice)
        make_vote(make_voter(run), second, "both_bad")
        seal_all(run.queue.project)
        return run

    def test_what_a_judge_said_won(self):
        run = self.said()
        assert component(run, source("judge_wins", judge="judge-0")) == [1, 0, None, None]
        assert component(run, source("judge_wins", judge="judge-1")) == [0.5, 0.5, 0, 1]

    def test_how_many_votes_agree_with_a_judge(self):
        run = self.said()
        assert component(run, source("agreement", judge="judge-0")) == [0.5, 0.5, None, None]
        assert component(run, source("agreement", judge="judge-1")) == [0.25, 0.25, 0, 0]

    def test_where_nobody_voted_there_is_no_agreement(self):
        assert component(make_run(), source("agreement", judge="judge-0")) == [None, None]


class TestParts:
    def made(self):
        run = make_run(pairs=2, says=[["A"], ["tie"]], votes_wanted=9)
        first, second = pairs_of(run)
        Inference.objects.filter(pk__in=[first.a_id, first.b_id]).update(tags=["animals"])
        for choice in ("A", "tie", "B", "both_bad"):
            make_vote(make_voter(run), first, choice)
        make_vote(make_voter(run), second, "A")
        seal_all(run.queue.project)
        return run, first, second

    def of(self, run, part, kind):
        options = {"judge": "judge-0"} if kind != "win_rate" else {}
        asked = config(check="win_rate", it=source(kind, **options))
        items = Outputs(run, [asked], Slice.parse(part))
        found = {item: values["it"] for item, values in items.components(asked).items()}
        return found, items.votes("win_rate")

    def test_a_tag_holds_the_outputs_of_its_pairs_and_what_was_said_in_them(self):
        run, first, _ = self.made()
        for kind, values in (
            ("win_rate", (1.5 / 4, 1.5 / 4)),
            ("judge_wins", (1, 0)),
            ("agreement", (0.25, 0.25)),
        ):
            found, people = self.of(run, "tag:animals", kind)
            assert found == dict(zip((first.a_id, first.b_id), values, strict=True))
            [quarter] = people.values()
            assert quarter == {first.a_id: Tally(1.5, 4), first.b_id: Tally(1.5, 4)}

    def test_votes_for_a_side_are_all_that_counts(self):
        run, first, second = self.made()
        found, people = self.of(run, "ballot:decided", "win_rate")
        assert found == {first.a_id: 0.5, first.b_id: 0.5, second.a_id: 1, second.b_id: 0}
        assert sum(tally.number for tally in next(iter(people.values())).values()) == 6
        verdicts, _ = self.of(run, "ballot:decided", "judge_wins")
        assert (verdicts[first.a_id], verdicts[second.a_id]) == (1, None)

    def test_labels_of_other_pairs_are_not_read(self):
        run, first, second = self.made()
        Verdict.objects.update(labels={"stars": 5})
        vote = Entry.objects.filter(item=second).first()
        Entry.objects.filter(uid=vote.uid).update(
            labels={"stars": 1}, payload={"labels_sha256": "0"}
        )
        for judge in ("judge-0", ""):
            options = {"judge": judge} if judge else {}
            stars = source("label", task="stars", range=[1, 5], **options)
            asked = config(it=stars)
            items = Outputs(run, [asked], Slice.parse("tag:animals"))
            assert items.pairs.keys() == {first.a_id, first.b_id}
            assert set(items.values(stars).values()) == ({1.0} if judge else set())

    def test_a_generator_and_what_there_is_not(self):
        run, first, second = self.made()
        found, _ = self.of(run, "generator:generator-0", "win_rate")
        assert set(found) == {first.a_id, first.b_id, second.a_id, second.b_id}
        assert self.of(run, "tag:nothing", "win_rate") == ({}, {})


class TestLabels:
    def test_by_people_on_the_output_itself(self):
        run = make_run()
        item = pairs_of(run)[0].a
        make_passes(run, [(item, 1), (item, 0)], labels={"stars": 4, "safe": "yes"})
        assert component(run, source("label", task="stars", range=[1, 5])) == [0.75, None]
        assert component(run, source("label", task="safe", equals="yes")) == [1.0, None]

    def test_by_people_on_a_side_of_a_pair_or_on_both(self):
        run = make_run(votes_wanted=9)
        (pair,) = pairs_of(run)
        for labels in ({"stars_a": 5, "stars_b": 1, "clear": True}, {"stars_a": 3}, None):
            vote = make_vote(make_voter(run), pair, "A")
            Entry.objects.filter(uid=vote.uid).update(
                labels=labels, payload={"labels_sha256": "0"} if labels else None
            )
        seal_all(run.queue.project)
        assert component(run, source("label", task="stars", range=[1, 5])) == [0.75, 0.0]
        assert component(run, source("label", task="clear", equals=True)) == [1.0, 1.0]

    def test_by_a_judge(self):
        run = make_run(judges=2)
        Verdict.objects.filter(judge__name="judge-1").update(labels={"stars_a": 2, "stars_b": 5})
        stars = source("label", judge="judge-1", task="stars", range=[1, 5])
        assert component(run, stars) == [0.25, 1.0]
        assert component(run, source("label", task="stars", range=[1, 5])) == [None, None]


class TestOutputsThemselves:
    def test_rendered(self):
        run = make_run(pairs=2)
        outputs = [output for pair in pairs_of(run) for output in (pair.a, pair.b)]
        make_picture("red", inferences=outputs[:1])
        make_picture("blue", inferences=outputs[1:2])
        make_picture("lime", inferences=outputs[2:3])
        states = ("done", "failed", "waiting")
        for picture, state in zip(Picture.objects.order_by("id"), states, strict=True):
            Picture.objects.filter(pk=picture.pk).update(state=state)
        assert component(run, source("rendered")) == [1.0, 0.0, None, 1.0]

    def test_metadata(self):
        run = make_run()
        Inference.objects.filter(pk=pairs_of(run)[0].a_id).update(metadata={"bleu": 0.4, "x": "y"})
        assert component(run, source("metadata", key="bleu", range=[0, 1])) == [0.4, None]
        assert component(run, source("metadata", key="x", equals="y")) == [1.0, None]

    def test_outputs_of_other_runs_are_not_listed(self):
        project = make_project()
        run, _ = make_run(project), make_run(project)
        make_inference(project)
        assert len(Outputs(run, [config(it=source("rendered"))]).pairs) == 2


class TestPeople:
    def test_pass_rates_and_their_quarters(self):
        run = make_run()
        a, b = pairs_of(run)[0].a, pairs_of(run)[0].b
        summer = datetime(2026, 6, 30, 23, 59, tzinfo=UTC)
        make_passes(run, [(a, 1), (a, 1), (b, 0)], at=summer)
        make_passes(run, [(a, 0)], at=summer + timedelta(minutes=1))
        passed = source("pass_rate")
        found = Outputs(run, [config(it=passed)])
        assert found.votes("pass_rate") == {
            "2026 Q2": {a.pk: Tally(2, 2), b.pk: Tally(0, 1)},
            "2026 Q3": {a.pk: Tally(0, 1)},
        }
        assert component(run, passed) == pytest.approx([2 / 3, 0])

    def test_passes_that_do_not_count(self):
        run = make_run()
        item = pairs_of(run)[0].a
        make_passes(run, [(item, 1)], simulated=True)
        make_passes(run, [(make_inference(run.queue.project), 1)])
        assert component(run, source("pass_rate")) == [None, None]

    def test_wins_by_quarter(self):
        run = make_run(votes_wanted=9)
        (pair,) = pairs_of(run)
        for month, choice in ((1, "A"), (1, "tie"), (4, "B")):
            make_vote(make_voter(run), pair, choice, at=datetime(2026, month, 5, tzinfo=UTC))
        seal_all(run.queue.project)
        found = Outputs(run, [config(check="win_rate", it=source("rendered"))])
        assert found.votes("win_rate") == {
            "2026 Q1": {pair.a_id: Tally(1.5, 2), pair.b_id: Tally(0.5, 2)},
            "2026 Q2": {pair.a_id: Tally(0, 1), pair.b_id: Tally(1, 1)},
        }


EVERY = (
    source("win_rate"),
    source("pass_rate"),
    source("rendered"),
    source("metadata", key="bleu", range=[0, 1]),
    source("judge_score", judge="judge-0", range=[0, 10]),
    source("judge_wins", judge="judge-0"),
    source("agreement", judge="judge-0"),
    source("label", task="stars", range=[1, 5]),
    source("label", judge="judge-0", task="stars", range=[1, 5]),
)


def test_the_number_of_queries_does_not_grow():
    counts = []
    for pairs in (1, 40):
        run = make_run(pairs=pairs, votes_wanted=9)
        make_many_votes(run, [(make_voter(run), pair, "A") for pair in pairs_of(run)])
        make_passes(run, [(pair.a, 1) for pair in pairs_of(run)], labels={"stars": 3})
        configs = [
            config(check=check, **{f"c{n}": each for n, each in enumerate(EVERY)})
            for check in ("win_rate", "pass_rate")
        ]
        with CaptureQueriesContext(connection) as captured:
            outputs = Outputs(run, configs)
            for each in configs:
                assert len(outputs.components(each)) == 2 * pairs
                assert len(outputs.votes(each.check)) == 1
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 10


class TestDefinitions:
    def data(self, **changes):
        return {"weights": {"liked": IT_COUNTS}, "sources": {"liked": "win_rate"}, **changes}

    def test_what_is_stored_is_what_was_read(self):
        run = make_run()
        read = read_config(run, self.data())
        stored = store(run, read)
        assert versions_of(run, 9) == [(stored, read)]
        assert stored.version == read.version

    def test_other_words_are_no_new_version(self):
        run = make_run()
        for label in ("one", "two"):
            store(run, read_config(run, self.data(label=label)))
        ((_, newest),) = versions_of(run, 9)
        assert newest.label == "two"
        assert CompositeDefinition.objects.count() == 1

    def test_another_version_keeps_the_earlier_and_may_be_taken_back(self):
        run = make_run()
        every = [self.data(weights={"liked": IT_COUNTS | {"weight": n}}) for n in (1, 2, 1)]
        stored = [store(run, read_config(run, data)) for data in every]
        assert [row.pk for row, _ in versions_of(run, 9)] == [stored[2].pk, stored[1].pk]
        assert len(versions_of(run, 1)) == 1
        assert versions_of(make_run(), 9) == []

    @pytest.mark.parametrize("data,said", [([], "must be an object"), ({}, "weights: is missing")])
    def test_data_that_are_no_config(self, data, said):
        with pytest.raises(ConfigInvalid, match=said):
            read_config(make_run(), data)

    def test_a_judge_that_the_run_does_not_have(self):
        run = make_run(judges=2)
        sources = {"liked": {"from": "judge_score", "judge": "gpt"}}
        with pytest.raises(
            ConfigInvalid, match=r"sources\.liked\.judge: no judge .* 'gpt'"
        ) as told:
            read_config(run, self.data(sources=sources))
        assert "there are judge-0, judge-1" in str(told.value)

    def test_what_is_proposed_has_data(self):
        run = make_run(judges=3)
        Judge.objects.filter(run=run, position__gt=0).update(provider="default")
        sources = proposal(run)["sources"]
        assert sources == {
            "judge-1": {"from": "judge_wins", "judge": "judge-1"},
            "judge-2": {"from": "judge_wins", "judge": "judge-2"},
            "rendered": {"from": "rendered"},
        }
        Verdict.objects.filter(judge__name="judge-2").update(score_a=7, score_b=2)
        proposed = proposal(run)
        assert proposed["sources"]["judge-2"] == {"from": "judge_score", "judge": "judge-2"}
        assert proposed["check"] == "win_rate"
        assert read_config(run, proposed)
        Verdict.objects.update(
            state="failed", winner="", score_a=None, score_b=None, error="refused"
        )
        assert proposal(run)["sources"]["preferred"] == {"from": "win_rate"}
        assert read_config(run, proposal(run)).components == ("preferred", "rendered")

    def test_judges_are_named_in_order_and_baselines_are_not_proposed(self):
        run = make_run(judges=3)
        Judge.objects.filter(pk=judges_of(run)[1].pk).update(provider="default", position=9)
        assert judge_names(run) == ["judge-0", "judge-2", "judge-1"]
        assert proposal(run)["sources"] == {
            "judge-1": {"from": "judge_wins", "judge": "judge-1"},
            "rendered": {"from": "rendered"},
        }

    def test_what_a_run_has_is_offered_and_no_more(self):
        run = make_run(judges=1)
        plain = [
            *({"from": kind} for kind in ("win_rate", "pass_rate", "rendered")),
            *({"from": kind, "judge": "judge-0"} for kind in ("judge_wins", "agreement")),
        ]
        assert offered(run) == plain
        Verdict.objects.update(score_a=7, score_b=2, labels={"stars_a": 2, "stars_b": 5})
        [item] = pairs_of(run)
        make_passes(run, [(item.a, 1)], labels={"safe": "yes"})
        Inference.objects.filter(pk=item.a_id).update(metadata={"bleu": 0.4, "nested": []})
        assert [each for each in offered(run) if each not in plain] == [
            {"from": "judge_score", "judge": "judge-0"},
            {"from": "label", "task": "safe"},
            {"from": "label", "task": "stars", "judge": "judge-0"},
            {"from": "metadata", "key": "bleu"},
        ]
