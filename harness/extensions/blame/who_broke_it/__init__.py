"""The benchmark `who_broke_it`: transcripts of teams that failed by one fault, and readers who say whose it was."""
