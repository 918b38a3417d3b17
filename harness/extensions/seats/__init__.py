"""Seats that act by themselves: whoever plays one reads its turns and acts through tools."""
