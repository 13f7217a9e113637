//go:build hostile

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// enumValue is written without quotes in a document, and with them in a variable.
type enumValue string

// literal writes a value as GraphQL does.
func literal(value any) string {
	switch v := value.(type) {
	case enumValue:
		return string(v)
	case []any:
		var out []string
		for _, element := range v {
			out = append(out, literal(element))
		}
		return "[" + strings.Join(out, ", ") + "]"
	case map[string]any:
		var out []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, name+": "+literal(v[name]))
		}
		return "{" + strings.Join(out, ", ") + "}"
	default:
		raw, _ := json.Marshal(v)
		return string(raw)
	}
}

// place is where a value stands.
type place struct {
	kind  string // whose name or input it is, as far as it is known
	depth int    // in an input
	dry   bool   // whether it must not be written
}

// inputVerbs begin the names of inputs that end with Input.
var inputVerbs = []string{"Create", "Update", "Patch", "Upsert", "Delete"}

// value returns a random value of a type.
func (w *writer) value(t *ast.Type, name string, at place) any {
	if t.Elem != nil {
		return w.list(t.Elem, name, at)
	}
	def := w.schema.Types[t.NamedType]
	switch def.Kind {
	case ast.Enum:
		return enumValue(def.EnumValues[w.IntN(len(def.EnumValues))].Name)
	case ast.InputObject:
		return w.object(def, at)
	}
	w.bytes -= 8
	switch t.NamedType {
	case "Int", "SafeInt":
		n := w.number(name)
		if t.NamedType == "SafeInt" && w.IntN(2) == 0 {
			return fmt.Sprint(n)
		}
		return n
	case "Float":
		return w.Float64() * 1e6
	case "Boolean":
		if name == "dryRun" {
			return at.dry || w.IntN(6) > 0
		}
		return w.IntN(2) == 0
	case "Time":
		return fmt.Sprintf("20%02d-01-02T03:04:05Z", w.IntN(60))
	case "JSON":
		return w.json(4)
	default:
		text := w.text(name, at)
		w.bytes -= len(text)
		return text
	}
}

func (w *writer) number(name string) int {
	switch name {
	case "first", "last":
		return []int{1000, 1000, 1000, 1000, 0, 0, 1, 5, 100}[w.IntN(9)]
	case "depth":
		return []int{10, 10, 3, 1}[w.IntN(4)]
	}
	return []int{0, 1, 4, 80, 1500, 65535, -1, 1 << 30}[w.IntN(8)]
}

// list returns few elements, or as many as there is room for. They are the same, or differ.
func (w *writer) list(element *ast.Type, name string, at place) any {
	most := []int{0, 1, 1, 1, 1, 2, 5, 20, 50, 50, 100, 1000, 20_000}[w.IntN(13)]
	switch name {
	case "ids":
		most = min(most, 100)
	case "orderBy":
		most = min(most, 4)
	}
	before := w.bytes
	first := w.value(element, name, at)
	size := max(before-w.bytes, 8)
	var out []any
	differ := w.IntN(3)
	for i := range most {
		if i > 0 && w.bytes < size {
			break
		}
		next := first
		if i > 0 {
			if text, ok := first.(string); ok && differ > 0 && name != "ids" && name != "kinds" {
				next = fmt.Sprint(text[:min(len(text), 40)], i)
			} else if differ == 2 && i < 200 {
				next = w.value(element, name, at)
			} else {
				next = numbered(first, i, differ)
			}
			w.bytes -= size
		}
		out = append(out, next)
	}
	if out == nil {
		out = []any{}
	}
	return out
}

// numbered returns a copy of an object whose texts differ, as keys of a map must.
func numbered(value any, i, differ int) any {
	object, ok := value.(map[string]any)
	if !ok || differ == 0 {
		return value
	}
	out := maps.Clone(object)
	for name, value := range out {
		if text, ok := value.(string); ok && name != "value" && !strings.HasPrefix(text, "20") {
			out[name] = fmt.Sprint(text[:min(len(text), 40)], i)
		} else if inner, ok := value.(map[string]any); ok {
			out[name] = numbered(inner, i, differ)
		}
	}
	return out
}

// object returns an input with what it requires, and some of the rest.
func (w *writer) object(def *ast.Definition, at place) any {
	at.depth++
	for _, verb := range inputVerbs {
		if kind, ok := strings.CutPrefix(def.Name, verb); ok && at.depth == 1 {
			at.kind, at.dry = strings.TrimSuffix(strings.TrimSuffix(kind, "Input"), "Status"), verb == "Delete"
		}
	}
	filter := strings.HasSuffix(def.Name, "Filter")
	share := []int{40, 40, 30, 15, 8, 4}[min(at.depth-1, 5)]
	if filter {
		share = 100 / max(len(def.Fields), 1)
	}
	identified := def.Fields.ForName("id") != nil && def.Fields.ForName("name") != nil
	byID := w.IntN(4) == 0
	out := map[string]any{}
	for _, f := range def.Fields {
		share := share
		switch {
		case filter && (f.Name == "or" || f.Name == "and") && at.depth < 5:
			share = 60 / at.depth
		case filter && (f.Name == "contains" || f.Name == "in" || f.Name == "name"):
			share = 40
		case f.Name == "dryRun":
			share = 90
		case f.Name == "spec" || f.Name == "resource" && !filter:
			share = 90
		case f.Name == "clientMutationId" || f.Name == "namespace" || f.Name == "import":
			share = 3
		case f.Name == "labels" || f.Name == "annotations" || f.Name == "tags" || f.Name == "addFinalizers":
			share = 25
		}
		if identified && (f.Name == "id" || f.Name == "name") {
			share = 0
			if byID == (f.Name == "id") {
				share = 100
			}
		}
		if (f.Type.NonNull && f.DefaultValue == nil) || w.bytes > 0 && w.IntN(100) < share {
			w.bytes -= len(f.Name) + 4
			out[f.Name] = w.value(f.Type, f.Name, at)
		}
	}
	if filter && len(out) == 0 {
		f := def.Fields[w.IntN(len(def.Fields))]
		if at.depth > 6 {
			f = def.Fields[len(def.Fields)-1]
		}
		if f.Name != "not" {
			out[f.Name] = w.value(f.Type, f.Name, at)
		}
	}
	return out
}

// text returns a text that may be accepted in a field of this name, or a long one.
func (w *writer) text(name string, at place) string {
	pick := func(of ...string) string { return of[w.IntN(len(of))] }
	switch name {
	case "manifest":
		return w.manifest()
	case "id", "ids":
		if w.IntN(50) == 0 {
			return "x"
		}
		if id := w.known.ids[at.kind]; id != "" {
			return id
		}
		return w.known.ids[pick("Network", "Port", "Port", "Secret", "Blob")]
	case "kind", "kinds":
		return pick(append(w.known.kinds, "port", "port", "network")...)
	case "namespace":
		return "default"
	case "expectedRevision":
		return w.known.revisions[at.kind]
	case "name":
		if known := w.known.names[at.kind]; known != "" && w.IntN(4) > 0 {
			return known
		}
		return pick("net", "port-0", "port-77", "s", "blob-0", fmt.Sprint("q", w.IntN(1000)))
	case "after", "before":
		return strings.Repeat("x", w.IntN(100))
	}
	switch w.IntN(12) {
	case 0:
		return strings.Repeat(pick("a", "é", "x\n", "\\", "\u0000", "<"), max(min(w.bytes/2, 1<<w.IntN(18)), 1))
	case 1:
		return pick("10.0.0.0/24", "10.0.0.1", "00:11:22:33:44:55", "1h", "b5f7d0c4-3d1f-4a0e-9a06-1d7b8f2c0001", "YQ==", "", "2020-01-01")
	default:
		return pick("a", "p", "z", "net", "s", "port", "9", "k1")
	}
}

// json returns a value of any kind.
func (w *writer) json(depth int) any {
	n := []int{1, 3, 20, 300}[w.IntN(4)]
	switch k := w.IntN(6); {
	case k == 0 && depth > 0:
		out := map[string]any{}
		for i := range n {
			if w.bytes > 0 {
				out[fmt.Sprint("k", i)] = w.json(depth - 2)
			}
		}
		return out
	case k == 1 && depth > 0:
		out := []any{}
		for range n {
			if w.bytes > 0 {
				out = append(out, w.json(depth-2))
			}
		}
		return out
	default:
		w.bytes -= 8
		return []any{1, "a", true, nil, 1e300, "10.0.0.1"}[w.IntN(6)]
	}
}

// manifest returns a text that is a manifest, or nearly.
func (w *writer) manifest() string {
	n := max(1, min(1<<w.IntN(17), w.bytes/8))
	long := func(part string) string { return strings.Repeat(part, max(1, min(n, w.bytes/(len(part)+1)))) }
	list := func(format string) string {
		var b strings.Builder
		for i := 0; i < n && b.Len() < w.bytes*3/4; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	head := manifestHead
	switch w.IntN(6) {
	case 0:
		head = "apiVersion: v1\nkind: Secret\nmetadata: {name: q}\n"
	case 1:
		head = "apiVersion: example.com/v1\nkind: Uniq\nmetadata: {name: q}\nspec: {a: [" + list("e%d,") + "]}\n"
	case 2:
		return head[:w.IntN(len(head))] + long([]string{"[", "{a: ", "- ", "? ", "--- ", "\t", "'", "|\n ", "&a ", "!!x ", "# "}[w.IntN(11)])
	case 3:
		head = strings.Replace(head, "resource: {}", "resource: {tags: ["+list("t%d,")+"]}", 1)
	case 4:
		head = strings.Replace(head, "{name: x}", "{name: x, labels: {"+list("k%d: v,")+"}}", 1)
	}
	switch w.IntN(14) {
	case 0:
		return head + "x: [" + long("a,") + "]\n"
	case 1:
		return head + "x: {" + list("k%d: v,") + "}\n"
	case 2:
		return head + list("k%d:\n  - {a: b}\n")
	case 3:
		return head + "x: " + long("[") + "\n"
	case 4:
		return head + "x: &a " + long("y") + "\nz: [" + long("*a,") + "]\n"
	case 5:
		return head + "x: |\n" + long("  text\n")
	case 6:
		return head + "x: '" + long("''") + "'\n"
	case 7:
		return laughs(1 + w.IntN(9))
	case 8:
		return merges(1 + w.IntN(20))
	case 9:
		return head + "x: !!binary " + long("YWFh") + "\n"
	case 10:
		return head + long("---\n")
	case 11:
		return head + "x: [" + long("2001-01-01T00:00:00Z,") + "]\n"
	case 12:
		return head + "stringData: {" + list("k%d: v,") + "}\n"
	default:
		return head
	}
}
