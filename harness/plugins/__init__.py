"""What may be loaded, and how: what extensions add (`extension`, `manifests`, `lookup`; of packages `installed`) and
which are missing (`missing_extensions`), what may run (`needed_approval`, `approvals`, `approval_record`, `refusals`),
which parameters YAML may give (`parameters`, `explain_errors`)."""
