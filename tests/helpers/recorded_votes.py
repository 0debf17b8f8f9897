"""The votes of a public notebook, and who was asked for them."""

ROWS = [
    {"inference_id": item, "vote": vote, "voter_id": voter, "vote_time": time}
    for item, vote, voter, time in [
        (1, True, 101, "2024-07-07T19:22:30.608761"),
        (2, True, 102, "2024-07-07T19:22:30.608770"),
        (3, True, 101, "2024-08-06T19:22:30.608777"),
        (3, False, 102, "2024-08-06T19:22:30.608784"),
        (3, None, 103, "2024-08-06T19:22:30.608790"),
        (4, False, 101, "2024-10-06T19:22:30.608796"),
        (4, False, 102, "2024-10-06T19:22:30.608803"),
    ]
]
VOTERS = [101, 102, 103, 104]
# Of those asked, who has a vote on each item: as the hosted service answered.
SHARES = {"1": 0.25, "2": 0.25, "3": 0.75, "4": 0.5}
