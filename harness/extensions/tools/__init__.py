"""Replies that models give as arguments of a tool, whatever the protocol is: `calls: tools`."""
