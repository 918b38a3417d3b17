"""From YAML to a plan: files with places (`yamls`), specs (`spec`, `schema`), projects and their plugins (`project`),
prompt sets (`prompts`), and the one place that turns names into objects (`resolve` → `plan`)."""
