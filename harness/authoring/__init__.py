"""What plugin authors derive from, beyond the interfaces of `harness.api`: stepped worlds, networks, sharded inputs,
data sets, questions, panels and votes, two-pass and calibrated protocols, informed policies, helpers of views.
Each module stands alone."""
