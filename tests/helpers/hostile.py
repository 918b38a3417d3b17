"""Text that a careless page would run, hide or turn around."""

HOSTILE = (
    '</pre><script>alert(1)</script><img src=x onerror="alert(1)"> javascript:alert(1) \u202e\x1b[31m$x_{ ]]> &lt;b&gt;'
)
