"""Extensions of installed packages: their manifests are found and checked."""
