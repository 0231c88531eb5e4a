import json

from distribution.materials import material_faults

BILL = {"components": [{"name": "numpy"}], "metadata": {"component": {"name": "sourdine"}}}


def test_a_bill_without_traces_has_no_fault() -> None:
    assert material_faults(json.dumps(BILL), "sourdine", ["/srv/build"]) == []


def test_places_of_the_machine_are_found() -> None:
    for trace in ["/srv/build/numpy", "file:///elsewhere"]:
        bill = {**BILL, "externalReferences": [{"url": trace}]}
        assert len(material_faults(json.dumps(bill), "sourdine", ["/srv/build"])) == 1


def test_a_bill_of_nothing_or_of_something_else_is_refused() -> None:
    assert len(material_faults(json.dumps({**BILL, "components": []}), "sourdine", [])) == 1
    assert len(material_faults(json.dumps(BILL), "another", [])) == 1
