// Custom resource definitions of Argo CD and of Flux, read from the folders of these modules; nothing is built from it.
module gpugate.dev/e2e/gitops

go 1.26.6

require (
	github.com/argoproj/argo-cd/v3 v3.5.7
	github.com/fluxcd/helm-controller v1.6.2
	github.com/fluxcd/kustomize-controller v1.9.6
	github.com/fluxcd/source-controller v1.9.6
)
