package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quantity reads a JSON string or number as the API server reads it in an object, and writes it out in full.
func quantity(raw json.RawMessage) (any, error) {
	var amount resource.Quantity
	if err := amount.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return amount.AsDec().String(), nil
}
