// Karpenter's and KEDA's custom resource definitions, read from the folders of these modules; nothing is built from it.
module gpugate.dev/e2e/crds

go 1.26.6

require (
	github.com/aws/karpenter-provider-aws v1.14.1
	github.com/kedacore/keda/v2 v2.21.0
)
