"""A local Ray cluster and the files of this machine."""

import os

from packages.nkigym.tests.executor_jobs import JOBS

from nkigym.executors import Finished, Job, ray_cluster


def test_a_local_cluster_leaves_no_file_and_the_environment_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    before, events = dict(os.environ), []

    with ray_cluster("local", 1) as executor:
        executor.submit(Job("a", JOBS + "square", 2))
        executor.run(events.append)

    assert [e.value for e in events if isinstance(e, Finished)] == [4]
    assert list(tmp_path.iterdir()) == []
    assert dict(os.environ) == before
