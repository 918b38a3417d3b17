"""Rows of tables that are means of other rows (`groups:`): `key` reads them, `rows` fills them."""
