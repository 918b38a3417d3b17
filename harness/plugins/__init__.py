"""What may be loaded, and how: what extensions add (`manifests`, of packages `installed`) and which are missing
(`absent`), what may run (`approvals`, `refusals`, `approval_record`), which parameters YAML may give (`parameters`,
`mistakes`)."""
