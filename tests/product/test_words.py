"""Words that the product no longer uses: not on a page, not in a message, not in the docs."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("humanjudge", "judge_eval", "reports", "voting", "templates", "static/js", "docs")
KINDS = {".py", ".html", ".js", ".md", ".txt"}

# What is said instead stands beside each.
RETIRED = {
    "ceiling": "people among themselves",
    "order-free": "Bradley-Terry",
    "you voted right": "You chose Right",
    "back office": "admin",
    "backoffice": "admin",
    "one a line": "One per line",
    "most tokens of": "Max output tokens",
    "voters, among themselves": "People among themselves",
    "votes a pair": "Votes per pair",
    "make a draft": "Create draft",
    "play it through": "Simulate",
    "none beats the floor": "Nothing shows yet that X is better than longer-wins",
    "no judge beats the baselines": "X leads longer-wins, not settled (60 : 1 of 180 : 1)",
    "do not separate": "X and Y cannot be told apart yet",
    "by contradicting itself": "With the sides swapped the answer changes, which costs … points",
    "contradicting itself costs": "With the sides swapped the answer changes, which costs … points",
    "lost to contradiction": "Changes its mind",
    "its start value still weighs": "No score yet: too few votes",
    "of the last batch of votes": "The last votes weigh 7 %",
    "as if every answer were": "Upper limit; retries come on top.",
    "answers that differ": "Disputed",
    "whoever has the link reads": "Anyone with the link can read it.",
    "put right what the reason": "Fix it under Providers, then Retry.",
    "that it won, a tie half": "win rate by X",
    "below 1 the composite": "Must pass, or the output counts 0",
    "the difference stays what": "some 120 to 900 more votes",
    "not all they were asked about": "… left 11 % unanswered",
    "said to beat the floor": "beats the baselines",
    "is called so.": "has that name",
    "there are no figures beside elo": "Only ELO is available",
    "stands twice": "is given twice",
    ", the least is": "must have at least 1, has 0",
    "broke off": "The import failed three times",
    "nothing is known of its columns": "Unknown columns: …. Expected: …",
    "see below how it gets on": "Test sent; the result appears below",
    "whoever receives a delivery can tell": "The receiver verifies the sender with this secret",
    "not known of any judge": "Imported verdicts have no prices, times or second order",
    "none is planned": "no more votes are planned",
    "no more than by chance (24 %, by": "People agree no more than by chance (24 %; chance 25 %)",
    "too early to say which is best": "Too early: 3 votes. The first claims need some 30.",
    "only baselines on the board": "No judge was asked yet",
    "the interval that holds however": "valid even if you look every day",
    "no judge here was offered": "judges had no tie to choose, so it is left out here",
    "lets people in for": "Valid for",
    "at most so many people": "Limit (people)",
    "holds whenever it is opened": "Live",
    "what holds now, for good": "Frozen as of now",
    "makes no more calls": "Stops calls and voting",
    "calls that are out are still": "Answers under way are kept",
    "is left alone until": "is rate limited; next call 22:48:39",
    "as often as makes sense": "All retries are used up",
    "asked once more to be read": "Repaired replies",
    "drawn at random hangs on": "random draws are seeded by the run's number",
    "left out on purpose": "Which judge gave these 40 verdicts?",
    "nobody can be shown it": "no text in this column",
    "it waits for a worker: imports": "Second in line, behind big50k.csv (63 % done).",
    "what is made of it": "Name “umfrage”, new project “umfrage”, 1 vote per pair, …",
    "that figure flatters the one you choose": "The best of several tries looks better than it is.",
    "it is no variant": "is not a variant: it was added before tuning began",
    "the half that was held out is spent": "everybody sees all votes again",
    "these figures follow within seconds": "10 newer votes; updating",
}
# A rounding mode of the standard library.
ALLOWED = "ROUND_CEILING"


def texts():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in KINDS and "migrations" not in path.parts:
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
    yield "README.md", (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_retired_word_is_left():
    found = []
    for path, text in texts():
        # A sentence may be broken anywhere.
        joined = " ".join(text.replace(ALLOWED, "").lower().split())
        found += [f"{path}: write {RETIRED[word]!r}" for word in RETIRED if word in joined]
    assert found == []
