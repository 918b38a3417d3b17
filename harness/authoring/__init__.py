"""What plugin authors derive from, beyond the interfaces of `harness.api`: stepped worlds, sharded inputs, data
sets, panels
and votes, two-pass and calibrated protocols, informed policies. Each module stands alone; import what you need."""
