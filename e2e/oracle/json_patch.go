package main

import (
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// Patching is an object and the patch that a webhook answers with.
type Patching struct {
	Object json.RawMessage `json:"object"`
	Patch  json.RawMessage `json:"patch"`
}

// The limit that `k8s.io/apiserver` sets when it starts (`pkg/server/config.go`, v0.36.3: JSONPatchMaxCopyBytes).
func init() {
	jsonpatch.AccumulatedCopySizeLimit = 3 * 1024 * 1024
}

// patched applies a patch as the API server does (`pkg/admission/plugin/webhook/mutating/dispatcher.go`, v0.36.3).
func patched(asked Patching) (any, error) {
	operations, err := jsonpatch.DecodePatch(asked.Patch)
	if err != nil {
		return nil, err
	}
	result, err := operations.Apply(asked.Object)
	return json.RawMessage(result), err
}
