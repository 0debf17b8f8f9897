"""The demo: prompts and outputs to vote on, shipped with the product."""
