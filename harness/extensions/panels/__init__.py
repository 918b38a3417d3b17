"""Questions, and protocols in which several agents answer the same one: votes, elections, talk."""
