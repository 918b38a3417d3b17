"""How sure a number is, and what it takes to be surer: `README.md` beside this file."""
