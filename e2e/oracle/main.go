// Program oracle answers questions with the code that Kubernetes and Karpenter themselves run; what this code refuses is refused.
package main

import "gpugate.dev/e2e/questions"

var (
	catalogue Catalogue
	machines  Types
)

func main() {
	questions.Answer(map[string]questions.Answering{
		"catalogue":    questions.About(catalogue.learn),
		"requirements": questions.About(catalogue.meeting),
		"types":        questions.About(machines.learn),
		"launching":    questions.About(machines.launching),
		"quantity":     quantity,
		"yaml":         questions.About(yamlAsJSON),
		"stream":       questions.About(stream),
		"patch":        questions.About(patched),
		"certificate":  questions.About(verified),
		"bundles":      questions.About(equal),
	})
}
