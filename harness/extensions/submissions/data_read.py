"""Which files the spec of a submission may read: those that the project's own spec of its name reads."""

from __future__ import annotations

from pathlib import Path

from harness.api.errors import UserError
from harness.config import spec, yamls
from harness.config.foreign_data import digests_of_read
from harness.config.project import Project


def read_by_own_spec(name: str, project: Project) -> frozenset[str]:
    """By which digests these files are approved; none where the project has no such spec, or it cannot be read.

    A submission lies where it was unpacked, so that its spec is a stranger's. A person who has the project has also
    the files that its specs read: playing the spec takes them.
    """
    file = _spec_called(name, project)
    try:
        return frozenset() if file is None else digests_of_read(spec.load(str(file), project), project)
    except UserError:  # what is wrong with it says whoever plays it
        return frozenset()


def _spec_called(name: str, project: Project) -> Path | None:
    """The file of the spec that is called so: by its place, else one of the project itself by its `name:`."""
    if (file := project.file("specs", name)) is not None:
        return file
    own = (file for file in project.files("specs").values() if file.is_relative_to(project.root))
    return next((file for file in own if _name_in(file) == name), None)


def _name_in(file: Path) -> object:
    try:
        data = yamls.read(file).data
    except UserError:
        return None
    return data.get("name") if isinstance(data, dict) else None
