"""What our packages install has permissive licences, or a reason."""

from __future__ import annotations

import json

from audit import EXEMPT, licence, licence_faults, needed, vulnerabilities


def test_what_is_installed_here_has_a_permissive_licence_or_a_reason():
    found = {name: licence(dist) for name, dist in needed().items()}

    assert {"numpy", "ml-dtypes", "libcst", "islpy"} <= {*found}
    assert [*licence_faults(found)] == []


def test_another_licence_and_none_are_faults():
    found = {"a": "MIT", "b": "AGPL-3.0", "c": "", next(iter(EXEMPT)): "Proprietary"}

    assert [*licence_faults(found)] == ["b: AGPL-3.0", "c: no licence in its metadata"]


def test_a_vulnerability_is_named_with_the_version_that_mends_it():
    known = {"id": "PYSEC-1", "fix_versions": ["2.1"]}
    report = {"dependencies": [{"name": "a", "version": "2.0", "vulns": [known]}, {"name": "b"}]}

    assert [*vulnerabilities(json.dumps(report))] == ["a 2.0: PYSEC-1, mended in 2.1"]
