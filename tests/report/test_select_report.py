# SPDX-License-Identifier: BSD-3-Clause
import json

from select_reports import make_report

from leaveout.report._select_report import describe_select


def test_report_survives_json():
    found = json.loads(json.dumps(describe_select(make_report(command="leaveout x"))))
    assert found["grid"] == {"C": [0.01, 1000.0], "gamma": [0.015625, 0.25]}
    assert [cell["error"] for cell in found["cells"]] == [0.25, 0.125, 0.125, 0.0]
    assert [cell["anti_learning"] for cell in found["cells"]] == [True, *3 * [False]]
    assert found["cells"][1]["gamma"] == 0.25
    assert found["best"]["C"] == 1000
    assert found["best"]["n_wrong"] == 1
    assert found["best"]["n_ambiguous"] == 2
    assert found["majority_error"] == 0.375
    assert found["wrong_by_class"] == {"a": 1, "b": 0}
    assert found["command"] == "leaveout x"
    assert "honest" not in found
