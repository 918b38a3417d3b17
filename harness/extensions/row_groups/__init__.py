"""Rows of tables that are means of other rows (`groups:`): `kind` reads them, `rows` fills them."""
