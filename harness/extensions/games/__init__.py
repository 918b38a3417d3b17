"""Games as stepped tasks (`tasks`), worlds that actions change (`worlds`), and who plays whom (`tournaments`)."""
