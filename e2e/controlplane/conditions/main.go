// Program conditions evaluates match conditions with the code of the API server, and reports what each costs.
//
// A question is {"ask": "evaluate", "about": {...}}, and the answer {"conditions": [{"result": BOOL, "error": TEXT, "cost":
// NUMBER}]}, with the decoded object where "show" is true. An object that the API server does not decode is refused. Objects
// of built-in kinds become Go types and JSON again, as they do in the API server before admission (k8s.io/apiserver v0.36.3,
// pkg/admission/plugin/cel/condition.go).
package main

import (
	"context"
	"encoding/json"
	"math"

	"gpugate.dev/e2e/questions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
)

type request struct {
	Expressions []string       `json:"expressions"`
	Object      map[string]any `json:"object"`
	OldObject   map[string]any `json:"oldObject"`
	User        string         `json:"user"`
	Resource    string         `json:"resource"`
	Operation   string         `json:"operation"`
	Show        bool           `json:"show"`
}

type condition struct {
	Result bool   `json:"result"`
	Error  string `json:"error,omitempty"`
	Cost   int64  `json:"cost"`
}

type evaluated struct {
	Object     map[string]any `json:"object,omitempty"`
	Conditions []condition    `json:"conditions"`
}

// The compiler of the webhook plugins (pkg/admission/plugin/webhook/generic/webhook.go).
var compiler = admissioncel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))

var compiled = map[string]admissioncel.ConditionEvaluator{}

func main() {
	questions.Answer(map[string]questions.Answering{"evaluate": questions.About(evaluate), "measure": questions.About(measure)})
}

// evaluate evaluates each expression with a budget of its own.
func evaluate(asked request) (*evaluated, error) {
	versioned, err := attributes(asked)
	if err != nil {
		return nil, err
	}
	kind, resource := versioned.VersionedKind, versioned.GetResource()
	review := admissioncel.CreateAdmissionRequest(versioned.Attributes, metav1.GroupVersionResource(resource), metav1.GroupVersionKind(kind))
	found := &evaluated{}
	if asked.Show {
		if found.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(versioned.VersionedObject); err != nil {
			return nil, err
		}
	}
	for _, expression := range asked.Expressions {
		results, left, err := compiledOf(expression).ForInput(
			context.Background(), versioned, review, admissioncel.OptionalVariableBindings{}, nil, math.MaxInt64,
		)
		if err != nil {
			found.Conditions = append(found.Conditions, condition{Error: err.Error(), Cost: -1})
			continue
		}
		said := condition{Cost: math.MaxInt64 - left}
		if results[0].Error != nil {
			said.Error = results[0].Error.Error()
		} else {
			said.Result = results[0].EvalResult.Value() == true
		}
		found.Conditions = append(found.Conditions, said)
	}
	return found, nil
}

// attributes decodes both objects as the API server does.
func attributes(asked request) (*admission.VersionedAttributes, error) {
	object, err := decoded(asked.Object)
	if err != nil {
		return nil, err
	}
	old, err := decoded(asked.OldObject)
	if err != nil {
		return nil, err
	}
	kind := object.GetObjectKind().GroupVersionKind()
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: asked.Resource}
	sender := &user.DefaultInfo{Name: asked.User}
	found := admission.NewAttributesRecord(
		object, old, kind, "default", "asked", resource, "", admission.Operation(asked.Operation), nil, false, sender,
	)
	return &admission.VersionedAttributes{
		Attributes: found, VersionedObject: object, VersionedOldObject: old, VersionedKind: kind,
	}, nil
}

// decoded returns an object of a built-in kind as its Go type, and any other as it is; nil for none.
func decoded(object map[string]any) (runtime.Object, error) {
	if object == nil {
		return nil, nil
	}
	raw := &unstructured.Unstructured{Object: object}
	typed, err := scheme.Scheme.New(raw.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return raw, nil
	} else if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, typed); err != nil {
		return nil, err
	}
	return typed, nil
}

func compiledOf(expression string) admissioncel.ConditionEvaluator {
	known, ok := compiled[expression]
	if !ok {
		accessor := &matchconditions.MatchCondition{Name: "asked", Expression: expression}
		variables := admissioncel.OptionalVariableDeclarations{HasAuthorizer: true}
		known = compiler.CompileCondition(
			[]admissioncel.ExpressionAccessor{accessor}, variables, environment.StoredExpressions,
		)
		compiled[expression] = known
	}
	return known
}
