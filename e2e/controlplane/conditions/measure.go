package main

import (
	"context"
	"math"
	"runtime"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A measuring is about one entry of a webhook configuration: all its expressions are evaluated for one request.
type measuring struct {
	request
	Rounds      int `json:"rounds"`
	Evaluations int `json:"evaluations"`
}

// measured is what one call takes: the minimum of the rounds.
type measured struct {
	Nanoseconds float64 `json:"ns"`
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
}

// measure times what the API server does for one entry after its rules match: all conditions of it, and what they read.
func measure(asked measuring) (*measured, error) {
	versioned, err := attributes(asked.request)
	if err != nil {
		return nil, err
	}
	accessors := make([]admissioncel.ExpressionAccessor, len(asked.Expressions))
	for index, expression := range asked.Expressions {
		accessors[index] = &matchconditions.MatchCondition{Name: "asked", Expression: expression}
	}
	variables := admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}
	evaluator := compiler.CompileCondition(accessors, variables, environment.StoredExpressions)
	ignore := admissionregistration.Ignore
	matcher := matchconditions.NewMatcher(evaluator, &ignore, "webhook", "validating", "asked")
	return fastest(asked.Rounds, asked.Evaluations, func() { matcher.Match(context.Background(), versioned, nil, nil) }), nil
}

func fastest(rounds, evaluations int, call func()) *measured {
	least := &measured{Nanoseconds: math.Inf(1)}
	var before, after runtime.MemStats
	for range rounds {
		runtime.ReadMemStats(&before)
		started := time.Now()
		for range evaluations {
			call()
		}
		taken := float64(time.Since(started).Nanoseconds())
		runtime.ReadMemStats(&after)
		each := float64(evaluations)
		least.Nanoseconds = min(least.Nanoseconds, taken/each)
		least.Allocations = float64(after.Mallocs-before.Mallocs) / each
		least.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / each
	}
	return least
}
