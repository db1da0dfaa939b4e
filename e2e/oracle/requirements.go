package main

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// Catalogue holds what is required of the nodes of each instance type.
type Catalogue []scheduling.Requirements

// Pool is what a NodePool says of its nodes.
type Pool struct {
	Requirements []karpenter.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Labels       map[string]string                                `json:"labels"`
}

// Required is what a pool requires of one label, all that it says of it taken together.
type Required struct {
	Operator  corev1.NodeSelectorOperator `json:"operator"`
	Values    []string                    `json:"values"`
	Gte       *int                        `json:"gte"`
	Lte       *int                        `json:"lte"`
	MinValues *int                        `json:"minValues"`
}

// Met says what a pool requires, and which types meet it: bit n of the hexadecimal number stands for the n-th.
type Met struct {
	Required map[string]Required `json:"required"`
	Types    string              `json:"types"`
}

// learn takes the labels of every type. A label that only other types carry is required to be absent, as Karpenter's
// AWS provider does it (`pkg/providers/instancetype/types.go`, v1.14.1).
func (c *Catalogue) learn(types []map[string]string) (any, error) {
	known := map[string]bool{}
	for _, labels := range types {
		for label := range labels {
			known[label] = true
		}
	}
	for _, labels := range types {
		required := scheduling.NewLabelRequirements(labels)
		for label := range known {
			if _, carried := labels[label]; !carried {
				required.Add(scheduling.NewRequirement(label, corev1.NodeSelectorOpDoesNotExist))
			}
		}
		*c = append(*c, required)
	}
	return len(*c), nil
}

// meeting puts a pool's requirements together as Karpenter does (`NewNodeClaimTemplate`), and asks every type.
func (c *Catalogue) meeting(pool Pool) (any, error) {
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(pool.Requirements...)
	wanted.Add(scheduling.NewLabelRequirements(pool.Labels).Values()...)
	var met big.Int
	for position, required := range *c {
		if required.Intersects(wanted) == nil {
			met.SetBit(&met, position, 1)
		}
	}
	said := Met{Required: map[string]Required{}, Types: met.Text(16)}
	for label, requirement := range wanted {
		said.Required[label] = describe(requirement)
	}
	return said, nil
}

func describe(requirement *scheduling.Requirement) Required {
	said := Required{Operator: requirement.Operator(), Values: requirement.Values(), MinValues: requirement.MinValues}
	slices.Sort(said.Values)
	// Bounds can be read only as the requirements that say them.
	for _, bound := range (scheduling.Requirements{requirement.Key: requirement}).NodeSelectorRequirements() {
		switch bound.Operator {
		case karpenter.NodeSelectorOpGte:
			said.Gte = number(bound.Values[0])
		case karpenter.NodeSelectorOpLte:
			said.Lte = number(bound.Values[0])
		}
	}
	return said
}

func number(text string) *int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("a bound is not a number: %v", err))
	}
	return &value
}
