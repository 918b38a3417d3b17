"""Extensions of installed packages: finds their manifests and checks them."""
