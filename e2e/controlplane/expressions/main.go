// Program expressions evaluates CEL expressions in the environment in which the API server evaluates the validations of a
// ValidatingAdmissionPolicy (k8s.io/apiserver v0.36.3, pkg/cel/environment and pkg/admission/plugin/cel/compile.go).
//
// A question is {"ask": "expression", "about": {"expression": TEXT, "variables": {...}}}, and the answer {"value": [TYPE, VALUE],
// "cost": NUMBER}, with "error" instead of a value where the expression has none. An expression that does not compile is
// refused. All variables are of the type dyn, as `object` is, except for `gpu`, whose fields have the types of gpugate's own.
package main

import (
	"encoding/hex"
	"encoding/json"
	"log"
	"math"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"gpugate.dev/e2e/questions"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type request struct {
	Expression string                     `json:"expression"`
	Variables  map[string]json.RawMessage `json:"variables"`
}

type evaluated struct {
	Value any    `json:"value"`
	Error string `json:"error,omitempty"`
	Cost  uint64 `json:"cost"`
}

func main() {
	env, err := declared()
	if err != nil {
		log.Fatal(err)
	}
	questions.Answer(map[string]questions.Answering{
		"expression": questions.About(func(asked request) (*evaluated, error) { return evaluate(env, asked) }),
	})
}

// declared returns the libraries of Kubernetes 1.36 with the variables of gpugate's policies.
func declared() (*cel.Env, error) {
	field := func(name string, kind *apiservercel.DeclType) *apiservercel.DeclField {
		return apiservercel.NewDeclField(name, kind, true, nil, nil)
	}
	object := func(name string, fields ...*apiservercel.DeclField) *apiservercel.DeclType {
		byName := map[string]*apiservercel.DeclField{}
		for _, each := range fields {
			byName[each.Name] = each
		}
		return apiservercel.NewObjectType(name, byName)
	}
	pod := object("gpugate.Pod",
		field("gpus", apiservercel.DoubleType), field("workloadClass", apiservercel.StringType),
		field("resources", apiservercel.NewMapType(apiservercel.StringType, apiservercel.IntType, -1)))
	pool := object("gpugate.Pool",
		field("instanceTypes", apiservercel.NewListType(apiservercel.StringType, -1)),
		field("maxGpus", apiservercel.DoubleType), field("usdPerHour", apiservercel.DoubleType))
	scaler := object("gpugate.Scaler", field("maxGpus", apiservercel.DoubleType))
	gpu := object("gpugate.Gpu", field("pod", pod), field("pool", pool), field("scaler", scaler))
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
			cel.Variable("request", cel.DynType), cel.Variable("namespaceObject", cel.DynType),
			cel.Variable("params", cel.DynType), cel.Variable("gpu", gpu.CelType()),
		},
		DeclTypes: []*apiservercel.DeclType{gpu, pod, pool, scaler},
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
}

var programs = map[string]cel.Program{}

func evaluate(env *cel.Env, asked request) (*evaluated, error) {
	program, known := programs[asked.Expression]
	if !known {
		tree, issues := env.Compile(asked.Expression)
		if issues != nil && issues.Err() != nil {
			return nil, issues.Err()
		}
		var err error
		if program, err = env.Program(tree, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(math.MaxInt64)); err != nil {
			return nil, err
		}
		programs[asked.Expression] = program
	}
	variables := map[string]any{}
	for name, raw := range asked.Variables {
		var value any
		// As the API server reads objects: a number without a point is an integer.
		if err := kjson.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		variables[name] = value
	}
	value, details, err := program.Eval(variables)
	result := &evaluated{}
	if details != nil && details.ActualCost() != nil {
		result.Cost = *details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
		return result, nil
	}
	result.Value = plain(value)
	return result, nil
}

// plain writes a value as its type and what tells it from others of the type.
func plain(value ref.Val) []any {
	switch typed := value.(type) {
	case types.Bool:
		return []any{"bool", bool(typed)}
	case types.Int:
		return []any{"int", strconv.FormatInt(int64(typed), 10)}
	case types.Uint:
		return []any{"uint", strconv.FormatUint(uint64(typed), 10)}
	case types.Double:
		return []any{"double", strconv.FormatFloat(float64(typed), 'g', -1, 64)}
	case types.String:
		return []any{"string", string(typed)}
	case types.Bytes:
		return []any{"bytes", hex.EncodeToString(typed)}
	case types.Null:
		return []any{"null", nil}
	case types.Duration:
		return []any{"duration", typed.Nanoseconds()}
	case types.Timestamp:
		return []any{"timestamp", typed.UTC().Format(time.RFC3339Nano)}
	case *types.Optional:
		if typed.HasValue() {
			return []any{"optional", plain(typed.GetValue())}
		}
		return []any{"optional", nil}
	case apiservercel.Quantity:
		return []any{"quantity", typed.AsDec().String()}
	case traits.Lister:
		elements := []any{}
		for each := typed.Iterator(); each.HasNext() == types.True; {
			elements = append(elements, plain(each.Next()))
		}
		return []any{"list", elements}
	case traits.Mapper:
		entries := []any{}
		for each := typed.Iterator(); each.HasNext() == types.True; {
			key := each.Next()
			entries = append(entries, []any{plain(key), plain(typed.Get(key))})
		}
		return []any{"map", entries}
	default:
		return []any{value.Type().TypeName(), nil}
	}
}
