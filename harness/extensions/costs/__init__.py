"""What tokens cost: `prices:` of specs, and `cost:` of tables."""
