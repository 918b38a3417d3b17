"""Templates and expressions that strangers wrote: confined, and bounded in steps, time and size."""
