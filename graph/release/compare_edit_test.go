package release_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

// catalogueModel is a catalogue that random edits change.
type catalogueModel struct {
	kinds  []string
	fields []fieldModel
	values []string
	rules  []string
	verbs  []string // without
	// next numbers what is new.
	next int
}

type fieldModel struct {
	name, typ, fallback string
	max                 int
	required, immutable bool
	filterable          bool
	deprecated, text    string
}

func newModel() *catalogueModel {
	return &catalogueModel{
		kinds:  []string{"Thing", "Shelf"},
		values: []string{"RED", "BLUE", "GREEN"},
		rules:  []string{"!has(self.count) || self.count < 90"},
		fields: []fieldModel{
			{name: "count", typ: "Int", max: 100, fallback: "1", filterable: true},
			{name: "size", typ: "Int", max: 50, required: true},
			{name: "label", typ: "String", max: 30, fallback: `"none"`},
			{name: "code", typ: "String", max: 30, immutable: true, filterable: true},
			{name: "colour", typ: "Colour"},
		},
	}
}

// sdl writes the catalogue, its declarations in a random order.
func (m *catalogueModel) sdl(random *rand.Rand) string {
	var parts []string
	for _, kind := range m.kinds {
		except := ""
		if kind == "Thing" && len(m.verbs) > 0 {
			except = ", exceptVerbs: [" + strings.Join(m.verbs, ", ") + "]"
		}
		parts = append(parts, fmt.Sprintf("type %s @resource(plural: \"%ss\", group: \"example.org\", version: \"v1\", "+
			"scope: NAMESPACED%s) {\n  spec: ThingSpec!\n}\n", kind, strings.ToLower(kind), except))
	}
	var spec strings.Builder
	spec.WriteString("type ThingSpec")
	for _, rule := range m.rules {
		fmt.Fprintf(&spec, " @rule(cel: %q, message: \"no\")", rule)
	}
	spec.WriteString(" {\n")
	for _, f := range m.fields {
		spec.WriteString("  " + f.sdl() + "\n")
	}
	spec.WriteString("}\n")
	parts = append(parts, spec.String(), "enum Colour { "+strings.Join(m.values, " ")+" }\n")
	random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n")
}

func (f fieldModel) sdl() string {
	out := fmt.Sprintf("%q %s: %s", f.text, f.name, f.typ)
	if f.required {
		out += "!"
	}
	switch f.typ {
	case "String":
		out += fmt.Sprintf(" @constraint(maxLength: %d)", f.max)
	case "Int", "Float":
		out += fmt.Sprintf(" @constraint(max: %d)", f.max)
	}
	if f.fallback != "" {
		out += " @default(value: " + f.fallback + ")"
	}
	if f.immutable {
		out += " @immutable"
	}
	if f.filterable {
		out += " @filterable"
	}
	if f.deprecated != "" {
		out += fmt.Sprintf(" @deprecated(reason: %q)", f.deprecated)
	}
	return out
}

// edit is a change of a catalogue. It does nothing and returns false if it does not fit.
type edit struct {
	name   string
	breaks bool
	do     func(m *catalogueModel, f *fieldModel, random *rand.Rand) bool
}

// edits are those of what was released; new fields have names of their own.
func edits() []edit {
	fresh := func(m *catalogueModel, prefix string) string {
		m.next++
		return fmt.Sprintf("%s%d", prefix, m.next)
	}
	return []edit{
		{"a new field", false, func(m *catalogueModel, _ *fieldModel, random *rand.Rand) bool {
			f := fieldModel{name: fresh(m, "new"), typ: []string{"Int", "String", "Boolean", "Colour"}[random.IntN(4)], max: 9}
			m.fields = slices.Insert(m.fields, random.IntN(len(m.fields)+1), f)
			return true
		}},
		{"a new field with a rule", false, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			name := fresh(m, "new")
			m.fields = append(m.fields, fieldModel{name: name, typ: "Int", max: 9})
			m.rules = append(m.rules, fmt.Sprintf("!has(self.%s) || self.%s < 5", name, name))
			return true
		}},
		{"a new kind", false, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			m.kinds = append(m.kinds, fresh(m, "Crate"))
			return true
		}},
		{"a new value", false, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			m.values = append(m.values, fresh(m, "VALUE"))
			return true
		}},
		{"another description", false, func(m *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			f.text = fresh(m, "text ")
			return true
		}},
		{"deprecated", false, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			if f.required {
				return false
			}
			f.deprecated = "old"
			return true
		}},
		{"a looser maximum", false, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			f.max += 5
			return f.typ != "Colour" && f.max < 250
		}},
		{"a new filter", false, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			f.filterable = true
			return true
		}},
		{"not immutable", false, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			before := f.immutable
			f.immutable = false
			return before
		}},
		{"a rule less", false, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			before := len(m.rules)
			m.rules = slices.DeleteFunc(m.rules, func(r string) bool { return strings.Contains(r, "count") })
			return len(m.rules) < before
		}},
		{"a field less", true, func(m *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			name := f.name
			m.fields = slices.DeleteFunc(m.fields, func(o fieldModel) bool { return o.name == name })
			m.rules = slices.DeleteFunc(m.rules, func(r string) bool { return strings.Contains(r, "self."+name) })
			return true
		}},
		{"another type", true, func(m *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			if f.typ != "Int" || strings.Contains(strings.Join(m.rules, " "), f.name) {
				return false
			}
			f.typ = "Float"
			return true
		}},
		{"required", true, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			before := f.required
			f.required, f.fallback, f.deprecated = true, "", ""
			return !before
		}},
		{"not required", true, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			before := f.required
			f.required = false
			return before
		}},
		{"a tighter maximum", true, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			f.max = 3
			return f.typ != "Colour" && f.fallback != `"none"`
		}},
		{"immutable", true, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			before := f.immutable
			f.immutable = true
			return !before
		}},
		{"another default", true, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			if f.fallback == "" {
				return false
			}
			f.fallback = map[string]string{"1": "2", `"none"`: `"new"`}[f.fallback]
			return f.fallback != ""
		}},
		{"a filter less", true, func(_ *catalogueModel, f *fieldModel, _ *rand.Rand) bool {
			before := f.filterable
			f.filterable = false
			return before
		}},
		{"a value less", true, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			m.values = m.values[1:]
			return true
		}},
		{"a verb less", true, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			m.verbs = append(m.verbs, "PATCH")
			return len(m.verbs) == 1
		}},
		{"a kind less", true, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			m.kinds = slices.DeleteFunc(m.kinds, func(k string) bool { return k == "Shelf" })
			return true
		}},
		{"a rule", true, func(m *catalogueModel, _ *fieldModel, _ *rand.Rand) bool {
			m.rules = append(m.rules, "!has(self.colour) || self.size < 9")
			return slices.ContainsFunc(m.fields, func(f fieldModel) bool { return f.name == "size" && f.typ == "Int" }) &&
				slices.ContainsFunc(m.fields, func(f fieldModel) bool { return f.name == "colour" })
		}},
	}
}

// TestCheck_RefusesExactlyTheEditsThatBreakClients: each edit is known to break clients or not. One edit may undo
// another one of the same field, so each field and each kind of edit occurs once.
func TestCheck_RefusesExactlyTheEditsThatBreakClients(t *testing.T) {
	rounds := 500
	if testing.Short() {
		rounds = 100
	}
	random := rand.New(rand.NewPCG(1, 50))
	versions := released(t, newModel().sdl(random))
	written := editsFolder{t: t, path: os.Getenv("SLUICE_TEST_EDITS")}
	written.write("released.graphql", versions[0].API)
	defer written.close()
	accepted := 0
	for round := range rounds {
		m := newModel()
		all, targets := edits(), random.Perm(len(m.fields))
		var done []string
		breaks := false
		for _, at := range random.Perm(len(all))[:1+random.IntN(4)] {
			if len(targets) == 0 {
				break
			}
			target := newModel().fields[targets[0]].name
			targets = targets[1:]
			f := slices.IndexFunc(m.fields, func(f fieldModel) bool { return f.name == target })
			before := m.copy()
			if f < 0 || !all[at].do(m, &m.fields[f], random) {
				m = before
				continue
			}
			done, breaks = append(done, all[at].name+" of "+target), breaks || all[at].breaks
		}
		sdl := m.sdl(random)
		next := newest(t, sdl)
		err := release.Check(versions, next)
		if (err != nil) != breaks {
			t.Fatalf("round %d: %v breaks clients: %t; found: %v\n%s", round, done, breaks, err, sdl)
		}
		written.add(next, done, breaks)
		if breaks {
			continue
		}
		accepted++
		view, _ := versions[0].View(next.API)
		if kinds.PrintBare(view) != versions[0].API {
			t.Fatalf("round %d: after %v the version has another API", round, done)
		}
	}
	if accepted < rounds/10 {
		t.Errorf("only %d of %d were accepted", accepted, rounds)
	}
}

// editsFolder writes the APIs of edited catalogues for graphql-js, which looks at them in e2e/clients; nowhere if there is
// no path.
type editsFolder struct {
	t     *testing.T
	path  string
	edits []writtenEdit
}

// writtenEdit is an edited catalogue in the list edits.json of the folder.
type writtenEdit struct {
	File    string   `json:"file"`
	Edits   []string `json:"edits"`
	Refused bool     `json:"refused"`
}

func (f *editsFolder) add(edited release.Newest, done []string, refused bool) {
	if f.path == "" {
		return
	}
	one := writtenEdit{File: fmt.Sprintf("%d.graphql", len(f.edits)), Edits: done, Refused: refused}
	f.write(one.File, kinds.PrintBare(edited.API))
	f.edits = append(f.edits, one)
}

func (f *editsFolder) write(name, text string) {
	if f.path == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(f.path, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *editsFolder) close() {
	text, err := json.Marshal(f.edits)
	if err != nil {
		f.t.Error(err)
	}
	f.write("edits.json", string(text))
}

func (m *catalogueModel) copy() *catalogueModel {
	out := *m
	out.kinds = slices.Clone(m.kinds)
	out.fields = slices.Clone(m.fields)
	out.values = slices.Clone(m.values)
	out.rules = slices.Clone(m.rules)
	out.verbs = slices.Clone(m.verbs)
	return &out
}
