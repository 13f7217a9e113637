package access

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// randomScope returns a scope of few namespaces and names.
func randomScope(rnd *rand.Rand) *Scope {
	var b builder
	for range rnd.IntN(4) {
		var some nameSet
		if rnd.IntN(2) == 0 {
			some = nameSet{fmt.Sprint("n", rnd.IntN(3)): {}}
		}
		b.add(fmt.Sprint("ns", rnd.IntN(3)), some, some != nil && rnd.IntN(3) == 0 || rnd.IntN(8) == 0)
	}
	return b.scope()
}

func TestScope_ApartHasWhatOnlyOneScopeHas(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		a, b := randomScope(rnd), randomScope(rnd)
		apart := a.Apart(b)
		for i := range 3 {
			for j := range 3 {
				namespace, name := fmt.Sprint("ns", i), fmt.Sprint("n", j)
				differ := a.Has(namespace, name) != b.Has(namespace, name)
				if differ && !apart.Has(namespace, name) {
					t.Fatalf("%q apart from %q is %q, without %s/%s", a.Key(), b.Key(), apart.Key(), namespace, name)
				}
			}
		}
		if a.Key() == b.Key() && !apart.Empty() {
			t.Fatalf("%q has %q apart from itself", a.Key(), apart.Key())
		}
	}
}

func TestScope_Within(t *testing.T) {
	for _, c := range []struct {
		namespace, name string
		has, not        [2]string
	}{
		{"a", "", [2]string{"a", "x"}, [2]string{"b", "x"}},
		{"", "x", [2]string{"b", "x"}, [2]string{"b", "y"}},
		{"a", "x", [2]string{"a", "x"}, [2]string{"a", "y"}},
	} {
		s := Within(c.namespace, c.name)
		if !s.Has(c.has[0], c.has[1]) || s.Has(c.not[0], c.not[1]) {
			t.Errorf("within %q %q: %q", c.namespace, c.name, s.Key())
		}
	}
}

func TestScope_TheStampTellsWhatACallerMaySeeAndNothingElse(t *testing.T) {
	kinds := func(sensitive string, names ...string) (out []descriptor.Kind) {
		for _, name := range append(names, sensitive) {
			out = append(out, descriptor.Kind{Name: name, Sensitive: name == sensitive})
		}
		return out
	}
	stamp := func(kinds []descriptor.Kind, role, binding string) string {
		p := NewPolicy(Config{}, kinds, nil, map[string][]byte{"r": []byte(`{"spec":` + role + `}`)}, map[string][]byte{"b": []byte(`{"spec":` + binding + `}`)})
		return p.RightsOf(&Identity{Name: "u"}).Stamp()
	}
	const role, viewer = `{"rules":[{"kinds":["Widget"],"verbs":["GET","WATCH"]}]}`, `{"roles":["viewer"],"users":["u"],"namespaces":["a"]}`
	const binding = `{"roles":["r"],"users":["u"],"namespaces":["a"]}`
	one := kinds("Secret", "Widget")
	base := stamp(one, role, binding)
	for name, c := range map[string]struct {
		got  string
		same bool
	}{
		"another verb":                     {stamp(one, `{"rules":[{"kinds":["Widget"],"verbs":["GET","WATCH","DELETE"]}]}`, binding), true},
		"another rule without these verbs": {stamp(one, `{"rules":[{"kinds":["Widget"],"verbs":["GET","WATCH"]},{"kinds":["Secret"],"verbs":["CREATE"]}]}`, binding), true},
		"another catalogue":                {stamp(kinds("Secret", "Widget", "Gadget"), role, binding), true},
		"one verb less":                    {stamp(one, `{"rules":[{"kinds":["Widget"],"verbs":["GET"]}]}`, binding), false},
		"another kind":                     {stamp(one, `{"rules":[{"kinds":["Widget","Secret"],"verbs":["GET","WATCH"]}]}`, binding), false},
		"another namespace":                {stamp(one, role, `{"roles":["r"],"users":["u"],"namespaces":["a","b"]}`), false},
		"nothing":                          {stamp(one, role, `{"roles":["r"],"users":["v"],"namespaces":["a"]}`), false},
	} {
		if (c.got == base) != c.same || len(c.got) != 8 {
			t.Errorf("%s: %s, %s before", name, c.got, base)
		}
	}
	asViewer := stamp(one, role, viewer)
	if got := stamp(kinds("Secret", "Gadget", "Widget"), role, viewer); got != asViewer {
		t.Errorf("a viewer has another stamp where there is another kind: %s and %s", got, asViewer)
	}
	if got := stamp(kinds("Widget", "Secret"), role, viewer); got == asViewer {
		t.Errorf("a viewer has the same stamp where other kinds are sensitive: %s", got)
	}
	if got := Unlimited().Stamp(); got != "" {
		t.Errorf("unlimited rights have the stamp %q", got)
	}
}

// TestScope_VerbsAreBits fails if two verbs have the same bit, or if the bits are not in the order of Verbs.
func TestScope_VerbsAreBits(t *testing.T) {
	var all verbs
	for i, v := range Verbs() {
		if bit(v) != 1<<i {
			t.Errorf("%s is %b", v, bit(v))
		}
		all |= bit(v)
	}
	if all != everyVerb() {
		t.Errorf("%b, all are %b", everyVerb(), all)
	}
}
