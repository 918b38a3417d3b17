"""Leaderboards as a site of static pages: `harness leaderboard --format site`."""
