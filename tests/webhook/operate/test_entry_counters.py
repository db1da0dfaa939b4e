from __future__ import annotations

from gpugate.webhook.operate.status import parse_counters
from gpugate.webhook.operate.status_report import Counters

# The format of kube-apiserver v1.36.3.
_POD = 'name="pods.validate.gpugate.dev",operation="CREATE"'
METRICS = f"""
# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{{code="200",verb="GET"}} 4711
# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{{{_POD},rejected="false",type="validating",le="0.005"}} 90
apiserver_admission_webhook_admission_duration_seconds_bucket{{{_POD},rejected="false",type="validating",le="0.025"}} 95
apiserver_admission_webhook_admission_duration_seconds_bucket{{{_POD},rejected="false",type="validating",le="+Inf"}} 95
apiserver_admission_webhook_admission_duration_seconds_count{{{_POD},rejected="false",type="validating"}} 95
apiserver_admission_webhook_admission_duration_seconds_bucket{{{_POD},rejected="true",type="validating",le="0.005"}} 0
apiserver_admission_webhook_admission_duration_seconds_bucket{{{_POD},rejected="true",type="validating",le="0.025"}} 5
apiserver_admission_webhook_admission_duration_seconds_bucket{{{_POD},rejected="true",type="validating",le="+Inf"}} 5
apiserver_admission_webhook_admission_duration_seconds_count{{{_POD},rejected="true",type="validating"}} 5
apiserver_admission_webhook_rejection_count{{error_type="no_error",{_POD},rejection_code="403",type="validating"}} 4
apiserver_admission_webhook_rejection_count{{error_type="calling_webhook_error",{_POD},rejection_code="0",type="validating"}} 1
apiserver_admission_webhook_fail_open_count{{name="pods.validate.gpugate.dev",type="validating"}} 2
apiserver_admission_webhook_admission_duration_seconds_bucket{{name="slow",operation="CREATE",rejected="false",type="admit",le="25"}} 0
apiserver_admission_webhook_admission_duration_seconds_bucket{{name="slow",operation="CREATE",rejected="false",type="admit",le="+Inf"}} 1
apiserver_admission_webhook_admission_duration_seconds_count{{name="slow",operation="CREATE",rejected="false",type="admit"}} 1
"""


def test_operations_and_answers_are_summed_by_the_entry() -> None:
    assert parse_counters(METRICS)["pods.validate.gpugate.dev"] == Counters(calls=100, denied=4, failed=3, p99=0.025)


def test_no_latency_above_the_largest_bucket() -> None:
    assert parse_counters(METRICS)["slow"] == Counters(calls=1)


def test_metrics_without_webhooks() -> None:
    assert parse_counters("apiserver_request_total 1\n") == {}
