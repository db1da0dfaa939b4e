package main

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

// yamlAsJSON makes JSON of a document, as kubectl does before it sends it.
func yamlAsJSON(document string) (any, error) {
	made, err := yaml.YAMLToJSON([]byte(document))
	return json.RawMessage(made), err
}
