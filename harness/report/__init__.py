def render(table, form):
    return repr(table)


def render_all(tables):
    return ""
