//go:build hostile

package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// mostBody is the size of a random request, in bytes.
const mostBody = 300_000

// writer writes a random document from the grammar of a schema, which leans to what is
// likely to be dear: many aliases of one field, long lists, large pages, fields that read.
type writer struct {
	*rand.Rand
	schema *ast.Schema
	known  fixture

	bytes     int // that values may still take
	names     int // of aliases, variables and fragments
	variables map[string]any
	declared  []string
	fragments []string
}

// fixture is what a gateway under attack has.
type fixture struct {
	// By kind, of one resource each.
	names, ids, revisions map[string]string
	kinds                 []string
}

// room is how much of a document a selection may take.
type room struct{ aliases, fields, tokens int }

// chosen is a part of a document.
type chosen struct {
	text, brief             string
	aliases, fields, tokens int
}

// wordOf matches what a document is written of, strings as one.
var wordOf = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\.\.\.|[\w.+-]+|[^\s,\w]`)

// document returns a request, and what it is in short.
func (w *writer) document() (r request, brief string, operation ast.Operation) {
	w.variables, w.bytes = map[string]any{}, mostBody-20_000
	if w.IntN(2) == 0 {
		w.bytes = 20_000 // it is the number that matters, not the length
	}
	root := w.schema.Query
	operation = ast.Query
	switch n := w.IntN(100); {
	case n < 35:
		root, operation = w.schema.Mutation, ast.Mutation
	case n < 42:
		root, operation = w.schema.Subscription, ast.Subscription
	}
	r.query, brief = w.operation(root, operation)
	r.variables = w.variables
	return r, brief, operation
}

func (w *writer) operation(root *ast.Definition, operation ast.Operation) (query, brief string) {
	s := w.selection(root, 2+w.IntN(8), room{aliases: 98, fields: 1900, tokens: 4700})
	declared := ""
	if len(w.declared) > 0 {
		declared = "(" + strings.Join(w.declared, " ") + ")"
	}
	return string(operation) + declared + " " + s.text + " " + strings.Join(w.fragments, " "), string(operation) + " " + s.brief
}

// dear are fields that read, hold or write much.
var dear = regexp.MustCompile(`^(totalCount|nodes|edges|manifest|specJSON|dependencies|dependents|blockedBy|dependencyTree|kinds|resources?|(create|upsert|update|patch)?(Port|Network|Blob|Secret|Uniq|Cube|Cat|Loop|SecurityGroup)|ports?|networks?|blobs?|reveal|applyManifest|(port|resource|blob)Changes|__schema|types|fields|up|down)$`)

// choose returns some of the fields of a type, mostly dear ones.
func (w *writer) choose(def *ast.Definition, depth int) []*ast.FieldDefinition {
	var all []*ast.FieldDefinition
	for _, f := range def.Fields {
		composite := w.composite(f.Type)
		if strings.HasPrefix(f.Name, "__") && def != w.schema.Query || composite && depth <= 0 {
			continue
		}
		weight := 1
		if dear.MatchString(f.Name) {
			weight = 8
		}
		if composite {
			weight *= 2
		}
		for range weight {
			all = append(all, f)
		}
	}
	n := 1
	for w.IntN(3) == 0 {
		n *= 1 + w.IntN(4)
	}
	if def == w.schema.Subscription {
		n = 1
	}
	var out []*ast.FieldDefinition
	seen := map[string]bool{}
	for range n {
		if len(all) > 0 {
			if f := all[w.IntN(len(all))]; !seen[f.Name] {
				seen[f.Name] = true
				out = append(out, f)
			}
		}
	}
	return out
}

func (w *writer) composite(t *ast.Type) bool { return w.schema.Types[t.Name()].IsCompositeType() }

// selection writes what is selected of a type, braces included.
func (w *writer) selection(def *ast.Definition, depth int, left room) chosen {
	var text, brief []string
	var out chosen
	take := func(c chosen) {
		text, brief = append(text, c.text), append(brief, c.brief)
		out.aliases, out.fields, out.tokens = out.aliases+c.aliases, out.fields+c.fields, out.tokens+c.tokens
		left.aliases, left.fields, left.tokens = left.aliases-c.aliases, left.fields-c.fields, left.tokens-c.tokens
	}
	if possible := w.schema.GetPossibleTypes(def); def.IsAbstractType() && len(possible) > 0 && w.IntN(2) == 0 {
		on := possible[w.IntN(len(possible))]
		c := w.selection(on, depth, left)
		c.text, c.brief = "... on "+on.Name+" "+c.text, on.Name+c.brief
		take(c)
	} else {
		for _, f := range w.choose(def, depth) {
			if left.fields > 3 && left.tokens > 60 {
				take(w.field(def, f, depth, left))
			}
		}
	}
	if len(text) == 0 {
		text, brief = []string{"__typename"}, []string{"__typename"}
		out.fields++
		out.tokens++
	}
	out.text, out.brief = "{ "+strings.Join(text, " ")+" }", "{"+strings.Join(brief, " ")+"}"
	out.tokens += 2
	if def != w.schema.Query && def != w.schema.Mutation && def != w.schema.Subscription && w.IntN(4) == 0 {
		w.names++
		w.fragments = append(w.fragments, fmt.Sprintf("fragment F%d on %s %s", w.names, def.Name, out.text))
		out.text, out.tokens = fmt.Sprintf("{ ...F%d }", w.names), 4
		out.fields++
	}
	return out
}

// copies returns how often a field is selected.
func (w *writer) copies() int {
	switch n := w.IntN(20); {
	case n < 12:
		return 1
	case n < 14:
		return 2 + w.IntN(5)
	case n < 16:
		return 20
	default:
		return 95
	}
}

// field writes a field, or one under many names.
func (w *writer) field(of *ast.Definition, f *ast.FieldDefinition, depth int, left room) chosen {
	n := max(min(w.copies(), left.aliases), 1)
	if of == w.schema.Subscription {
		n = 1
	}
	var sub chosen
	if w.composite(f.Type) {
		each := room{aliases: (left.aliases - n) / n, fields: left.fields/n - 1, tokens: left.tokens/n - 30}
		sub = w.selection(w.schema.Types[f.Type.Name()], depth-1, each)
	}
	arguments, brief := w.arguments(f)
	fresh := n > 1 && len(f.Arguments) > 0 && w.IntN(5) < 2
	var text strings.Builder
	out := chosen{}
	for i := range n {
		if i > 0 && fresh {
			arguments, _ = w.arguments(f)
		}
		one := f.Name + arguments + sub.text
		tokens := len(wordOf.FindAllString(f.Name+arguments, -1)) + sub.tokens + 2
		if i > 0 && (out.tokens+tokens > left.tokens || out.fields+1+sub.fields > left.fields) {
			n = i
			break
		}
		if n > 1 {
			w.names++
			fmt.Fprintf(&text, "a%d: ", w.names)
			out.aliases++
		}
		text.WriteString(one + " ")
		out.aliases, out.fields, out.tokens = out.aliases+sub.aliases, out.fields+1+sub.fields, out.tokens+tokens
	}
	out.text, out.brief = text.String(), f.Name+brief+sub.brief
	if n > 1 {
		differ := ""
		if fresh {
			differ = "different "
		}
		out.brief = fmt.Sprintf("%d x %s%s", n, differ, out.brief)
	}
	return out
}

// arguments writes the arguments of a field, parentheses included.
func (w *writer) arguments(f *ast.FieldDefinition) (text, brief string) {
	var all, short []string
	byID, backwards := w.IntN(2) == 0, w.IntN(6) == 0
	named := f.Arguments.ForName("name") != nil && f.Arguments.ForName("id") != nil
	for _, a := range f.Arguments {
		share := 50
		switch a.Name {
		case "first":
			share = 85
			if backwards {
				share = 0
			}
		case "last":
			share = 0
			if backwards {
				share = 90
			}
		case "after", "before":
			share = 1
		case "orderBy":
			share = 25
		case "namespace":
			share = 10
		}
		if named && (a.Name == "id" || a.Name == "name") {
			share = 0
			if byID == (a.Name == "id") {
				share = 100
			}
		}
		if !a.Type.NonNull && w.IntN(100) >= share {
			continue
		}
		value := w.value(a.Type, a.Name, place{kind: f.Type.Name()})
		raw, _ := json.Marshal(value)
		written := literal(value)
		if len(raw) > 2000 || w.IntN(3) == 0 {
			w.names++
			name := fmt.Sprint("v", w.names)
			w.variables[name] = value
			w.declared = append(w.declared, "$"+name+": "+a.Type.String())
			written = "$" + name
		}
		all = append(all, a.Name+": "+written)
		if len(raw) > 120 {
			raw = append(raw[:100], fmt.Sprintf("... of %d bytes", len(raw))...)
		}
		short = append(short, a.Name+":"+string(raw))
	}
	if len(all) == 0 {
		return "", ""
	}
	return "(" + strings.Join(all, ", ") + ")", "(" + strings.Join(short, ",") + ")"
}
