// Custom resource definitions of Karpenter, KEDA, OpenReports and Kyverno (whose PolicyReports are those of the policy working
// group), read from the folders of these modules; nothing is built from it.
module gpugate.dev/e2e/crds

go 1.26.6

require (
	github.com/aws/karpenter-provider-aws v1.14.1
	github.com/kedacore/keda/v2 v2.21.0
	github.com/kyverno/kyverno v1.19.1
	github.com/openreports/reports-api v0.2.1
)
