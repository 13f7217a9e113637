//go:build clients

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// value gives arguments values with which operations meet resources that are there.
func (r *referee) value(path string, t *ast.Type) (any, bool) {
	pick := func(list []string) (any, bool) { return list[r.rnd.IntN(len(list))], true }
	last := path[strings.LastIndex(path, ".")+1:]
	switch {
	case last == "filter" && strings.HasSuffix(t.NamedType, "Filter"):
		return r.filter(2), true
	case strings.HasSuffix(t.NamedType, "OrderField"):
		return pick([]string{"NAME", "CREATED_AT", "UPDATED_AT"})
	case !slices.Contains([]string{"String", "ID", "Int"}, t.NamedType):
		return nil, false
	case strings.Contains(path, "labels"), strings.Contains(path, "annotations"):
		return pick([]string{"a", "b", "c"})
	case last == "name" && !strings.Contains(path, "spec"), strings.HasSuffix(last, "Ref"), strings.HasSuffix(last, "Refs"):
		return pick(r.names)
	case last == "namespace":
		return pick([]string{"default", "default", "default", "other", "Bad"})
	case last == "id" || last == "ids":
		return pick(r.ids)
	case last == "kind":
		return pick(r.kinds)
	case last == "first" || last == "last":
		return r.rnd.IntN(5) - r.rnd.IntN(20)/19*5, true
	case last == "after" || last == "before":
		return nil, true
	case last == "subKind":
		return pick([]string{"human", "robot"})
	case last == "cidr":
		return "10.0.0.0/24", true
	case last == "secretName" || last == "cloudName" || last == "clientMutationId":
		return "m", true
	}
	return nil, false
}

// filter is one of those that the reference can judge.
func (r *referee) filter(depth int) any {
	name := func() any { return r.names[r.rnd.IntN(len(r.names))] }
	switch n := r.rnd.IntN(6); {
	case n == 0 && depth > 0:
		return map[string]any{"not": r.filter(depth - 1)}
	case n == 1 && depth > 0:
		return map[string]any{"or": []any{r.filter(depth - 1), r.filter(depth - 1)}}
	case n == 2 && depth > 0:
		return map[string]any{"and": r.filter(depth - 1), "not": nil} // a list of one
	case n == 3:
		return map[string]any{"labels": []any{map[string]any{"key": "a", "eq": "b"}}}
	case n == 4:
		return map[string]any{"name": map[string]any{"startsWith": name()}}
	}
	return map[string]any{"name": map[string]any{"in": []any{name(), name()}}}
}

// token is a lexical token of a document; one that is out of it is taken as it is.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\$?\w+|\.\.\.|\S`)

// spoil changes one token of a document.
func (r *referee) spoil(query string) string {
	all := token.FindAllStringIndex(query, -1)
	pick := func() []int { return all[r.rnd.IntN(len(all))] }
	at, other := pick(), pick()
	with := query[other[0]:other[1]]
	switch r.rnd.IntN(4) {
	case 0:
		with = ""
	case 1:
		with = query[at[0]:at[1]] + " " + query[at[0]:at[1]]
	case 2:
		with = []string{"null", `"text"`, "1", "-7", "2147483648", "1.5", "true", "NAME", "[]", "{}", "$v0", "nothing", "[1, null]", "@skip", "on", "!"}[r.rnd.IntN(16)]
	}
	return query[:at[0]] + with + query[at[1]:]
}

var declared = regexp.MustCompile(`(\$v\d+: )(Int|Boolean|String)(!?)([,)])`)

// defaults gives some of the declared variables a default, and takes their
// exclamation marks away.
func (r *referee) defaults(query string) string {
	return declared.ReplaceAllStringFunc(query, func(v string) string {
		m := declared.FindStringSubmatch(v)
		if r.rnd.IntN(3) == 0 {
			return v
		}
		if r.rnd.IntN(3) == 0 {
			m[3] = ""
		}
		return m[1] + m[2] + m[3] + " = " + map[string]string{"Int": "2", "Boolean": "true", "String": `"a"`}[m[2]] + m[4]
	})
}

// spoilVariables changes one of the variables, or a value in it, or adds one.
func (r *referee) spoilVariables(variables map[string]any) map[string]any {
	raw, err := json.Marshal(variables)
	if err != nil {
		r.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		r.t.Fatal(err)
	}
	if len(out) == 0 {
		return map[string]any{"extra": 1}
	}
	return r.spoilValue(out).(map[string]any)
}

func (r *referee) spoilValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || r.rnd.IntN(10) == 0 {
			v["nothing"] = 1
			return v
		}
		name := names[r.rnd.IntN(len(names))]
		if r.rnd.IntN(10) == 0 {
			delete(v, name)
		} else {
			v[name] = r.spoilValue(v[name])
		}
		return v
	case []any:
		if len(v) > 0 && r.rnd.IntN(3) > 0 {
			i := r.rnd.IntN(len(v))
			v[i] = r.spoilValue(v[i])
			return v
		}
	case string:
		if r.rnd.IntN(2) == 0 {
			return strings.ToLower(v)
		}
	case float64:
		if r.rnd.IntN(3) == 0 {
			return fmt.Sprint(v)
		}
	}
	return []any{nil, "text", "5", 1, -7, 2147483648, 1.5, 1e30, true, "NAME", "name", []any{}, map[string]any{}, []any{"a", nil}}[r.rnd.IntN(14)]
}
