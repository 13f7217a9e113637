package kind

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// costs computes the cost of calls in rules, in CEL's cost units, where CEL's own estimate is too low. CEL knows
// neither the types of values nor the size of patterns. The map has the size of each pattern in instructions, by the
// text of the pattern.
type costs map[string]int

const (
	// bytesPerUnit is the number of bytes that are compared or copied for one cost unit.
	bytesPerUnit = 64
	// bytesPerSlowUnit is the number of bytes that are parsed or converted for one cost unit.
	bytesPerSlowUnit = 8
	// elementBytes is the number of bytes that are charged for a list element in addition to its own size.
	elementBytes = 16
)

// CallCost implements [interpreter.ActualCostEstimator]. If it returns nil, CEL uses its own estimate.
func (c costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	perUnit := bytesPerUnit
	switch {
	case function == matchesFunction && len(args) == 2:
		pattern, _ := args[1].(types.String)
		return new(uint64(1 + extent(args[0])*c[string(pattern)]/(budget.PatternTries*budget.CELUnit)))
	case function == "timestamp", function == "duration", function == "strings.quote", function == "reverse":
		perUnit = bytesPerSlowUnit
	case overload == "", function == formatFunction:
	case (function == operators.Equals || function == operators.NotEquals) && args[0].Type() != types.StringType:
	default:
		return nil
	}
	n := extent(result)
	for _, a := range args {
		n += extent(a)
	}
	return new(uint64(1 + n/perUnit))
}

// extent estimates the size of a value in bytes.
func extent(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		return elementBytes*int(n) + int(n)*sampled(v, int(n))
	case traits.Sizer:
		n, _ := v.Size().(types.Int)
		return elementBytes * int(n)
	}
	return 0
}

// sampled estimates the size of a list element in bytes, as the mean of the first elements. n is the length of the
// list.
func sampled(l traits.Lister, n int) int {
	n = min(n, samples)
	sum := 0
	for i := range n {
		switch e := l.Get(types.Int(i)).(type) {
		case types.String:
			sum += len(e)
		case traits.Sizer:
			size, _ := e.Size().(types.Int)
			sum += elementBytes * int(size)
		}
	}
	return sum / max(n, 1)
}

// samples is the number of elements of a list that sampled reads.
const samples = 8

// The names of functions whose cost CEL underestimates.
const (
	matchesFunction = "matches" // it takes a pattern
	formatFunction  = "format"
)

// learn adds the sizes of the patterns in a rule to c.
func (c costs) learn(rule *cel.Ast) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(rule.NativeRep()), ast.FunctionMatcher(matchesFunction)) {
		if args := e.AsCall().Args(); len(args) > 0 && args[len(args)-1].Kind() == ast.LiteralKind {
			pattern, _ := args[len(args)-1].AsLiteral().(types.String)
			// The loader has already refused patterns that do not compile.
			c[string(pattern)], _ = descriptor.PatternSize(string(pattern))
		}
	}
}

// maxText is the maximum number of bytes of a text that replace or join may produce.
const maxText = 1 << 20

// boundedTexts returns the functions replace and join of the string extensions with a limit. They first compute the
// length of their result, and fail if it would exceed maxText.
func boundedTexts() []cel.EnvOption {
	text := cel.StringType
	number := cel.IntType
	list := cel.ListType(cel.StringType)
	return []cel.EnvOption{
		cel.Function("replace",
			cel.MemberOverload(
				"string_replace_string_string", []*cel.Type{text, text, text}, text, cel.FunctionBinding(replaceText),
			),
			cel.MemberOverload(
				"string_replace_string_string_int", []*cel.Type{text, text, text, number}, text,
				cel.FunctionBinding(replaceText),
			),
		),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{list}, text, cel.UnaryBinding(func(l ref.Val) ref.Val { return joinTexts(l, types.String("")) })),
			cel.MemberOverload("list_join_string", []*cel.Type{list, text}, text, cel.BinaryBinding(joinTexts)),
		),
	}
}

func replaceText(args ...ref.Val) ref.Val {
	s := string(args[0].(types.String))
	old := string(args[1].(types.String))
	by := string(args[2].(types.String))
	times := -1
	if len(args) == 4 {
		times = int(args[3].(types.Int))
	}
	n := strings.Count(s, old)
	if times >= 0 {
		n = min(n, times)
	}
	if len(s)+n*(len(by)-len(old)) > maxText {
		return tooLong("replace")
	}
	return types.String(strings.Replace(s, old, by, times))
}

func joinTexts(list, separator ref.Val) ref.Val {
	l, between := list.(traits.Lister), string(separator.(types.String))
	var out []string
	size := 0
	for it := l.Iterator(); it.HasNext() == types.True; {
		s, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join: an element is no string")
		}
		size += len(s) + len(between)
		if size > maxText {
			return tooLong("join")
		}
		out = append(out, string(s))
	}
	return types.String(strings.Join(out, between))
}

// tooLong returns the error that ends an evaluation because the result of a function would be too long. The error is
// handled like an evaluation that costs too much.
func tooLong(function string) ref.Val {
	return types.WrapErr(interpreter.EvalCancelledError{
		Message: fmt.Sprintf(
			"%s makes a text of more than %d bytes", function, maxText,
		), Cause: interpreter.CostLimitExceeded,
	})
}
