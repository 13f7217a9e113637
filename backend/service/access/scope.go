package access

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// Scope is a set of resources of one kind, defined by namespaces and names. It is immutable. The zero value is the
// empty set.
type Scope struct {
	all bool
	// everywhere has the names that the scope contains in every namespace, and for GLOBAL kinds.
	everywhere nameSet
	// in maps a namespace to the names that the scope contains in it; nil means all names. Several namespaces may share
	// one map.
	in map[string]nameSet
	// places computes the result of [Scope.Places] once. It is nil for the empty scope. size is the length of the
	// result.
	places func() []NameRange
	size   int
}

// NameRange is a range of resources of a kind: all resources of a namespace, or one of them. The bounds are keys
// encoded by [backend.OrderTuple]. End is exclusive.
type NameRange struct{ Start, End []byte }

type nameSet map[string]struct{}

// Everything returns the scope that contains all resources.
func Everything() *Scope { return &Scope{all: true} }

// Within returns the scope of the resources with a namespace, a name, or both. An empty argument accepts all.
func Within(namespace, name string) *Scope {
	var some nameSet
	if name != "" {
		some = nameSet{name: {}}
	}
	var b builder
	b.add(namespace, some, namespace == "")
	return b.scope()
}

// All reports whether the scope contains every resource.
func (s *Scope) All() bool { return s.all }

// Empty reports whether the scope contains no resource.
func (s *Scope) Empty() bool { return !s.all && len(s.everywhere) == 0 && len(s.in) == 0 }

// Has reports whether the scope contains a resource. namespace is empty for GLOBAL kinds.
func (s *Scope) Has(namespace, name string) bool {
	if s.all {
		return true
	}
	if _, ok := s.everywhere[name]; ok {
		return true
	}
	some, ok := s.in[namespace]
	if !ok || some == nil {
		return ok
	}
	_, ok = some[name]
	return ok
}

// HasNamespace reports whether the scope contains every resource of a namespace.
func (s *Scope) HasNamespace(namespace string) bool {
	if s.all {
		return true
	}
	some, ok := s.in[namespace]
	return ok && some == nil
}

// Whole reports whether the scope consists of whole namespaces only.
func (s *Scope) Whole() bool {
	for _, some := range s.in {
		if some != nil {
			return false
		}
	}
	return len(s.everywhere) == 0
}

// Touches reports whether the scope may contain a resource of a namespace.
func (s *Scope) Touches(namespace string) bool {
	_, ok := s.in[namespace]
	return s.all || ok || len(s.everywhere) > 0
}

// Namespaces returns the sorted namespaces in which the scope contains resources. It ignores names that the scope
// contains in every namespace: see [Scope.Everywhere]. The result is nil for the scope of everything.
func (s *Scope) Namespaces() []string { return slices.Sorted(maps.Keys(s.in)) }

// Places returns the scope as a sorted list of ranges: whole namespaces, and single names in other namespaces. It does
// not include the names of [Scope.Everywhere]. The list is computed only once.
func (s *Scope) Places() []NameRange {
	if s.places == nil {
		return nil
	}
	return s.places()
}

// Size returns the number of ranges that [Scope.Places] returns.
func (s *Scope) Size() int { return s.size }

func (s *Scope) makePlaces() (out []NameRange) {
	add := func(place []byte) { out = append(out, NameRange{place, backend.PrefixEnd(place)}) }
	for _, namespace := range s.Namespaces() {
		if s.HasNamespace(namespace) {
			add(backend.AppendString(nil, namespace))
			continue
		}
		for _, name := range s.Names(namespace) {
			add(backend.OrderTuple(namespace, name))
		}
	}
	return out
}

// Names returns the sorted names that the scope contains in a namespace, without the names of [Scope.Everywhere]; nil
// if it contains the whole namespace.
func (s *Scope) Names(namespace string) []string {
	some, ok := s.in[namespace]
	if ok && some == nil {
		return nil
	}
	return sorted(some)
}

// NamesIn returns the sorted names that the scope contains in a namespace, including the names of [Scope.Everywhere].
// It must not be called for a namespace that the scope contains as a whole.
func (s *Scope) NamesIn(namespace string) []string { return sorted(s.within(namespace)) }

// Everywhere returns the sorted names that the scope contains in every namespace, and for GLOBAL kinds.
func (s *Scope) Everywhere() []string { return sorted(s.everywhere) }

func sorted(n nameSet) []string { return append([]string{}, slices.Sorted(maps.Keys(n))...) }

// And returns the intersection of s and o.
func (s *Scope) And(o *Scope) *Scope {
	switch {
	case s == o || o.all:
		return s
	case s.all:
		return o
	}
	var out builder
	out.add("", both(s.everywhere, o.everywhere), true)
	for _, of := range []*Scope{s, o} {
		for namespace := range of.in {
			a, b := s.within(namespace), o.within(namespace)
			switch _, known := out.out.in[namespace]; {
			case known: // already added in the pass over s
			case a == nil:
				out.add(namespace, b, false)
			case b == nil || maps.Equal(a, b):
				out.add(namespace, a, false)
			default:
				out.add(namespace, both(a, b), false)
			}
		}
	}
	return out.scope()
}

// within returns all names that the scope contains in a namespace; nil if it contains the whole namespace.
func (s *Scope) within(namespace string) nameSet {
	some, ok := s.in[namespace]
	if ok && (some == nil || len(s.everywhere) == 0) {
		return some
	}
	out := nameSet{}
	maps.Copy(out, some)
	maps.Copy(out, s.everywhere)
	return out
}

// without returns the names in a that are not in b. The result is never nil, which would mean all names.
func without(a, b nameSet) nameSet {
	out := nameSet{}
	for name := range a {
		if _, ok := b[name]; !ok {
			out[name] = struct{}{}
		}
	}
	return out
}

// both returns the names that are both in a and in b.
func both(a, b nameSet) nameSet {
	out := nameSet{}
	for name := range a {
		if _, ok := b[name]; ok {
			out[name] = struct{}{}
		}
	}
	return out
}

// Apart returns a scope with all resources that only one of s and o contains. If one of them is everything or has names
// in all namespaces, the result may include resources that both contain.
func (s *Scope) Apart(o *Scope) *Scope {
	if s.all != o.all {
		return Everything()
	}
	var b builder
	for _, pair := range [][2]*Scope{{s, o}, {o, s}} {
		of, but := pair[0], pair[1]
		b.add("", without(of.everywhere, but.everywhere), true)
		for namespace, some := range of.in {
			switch {
			case but.HasNamespace(namespace):
			case some == nil:
				b.add(namespace, nil, false)
			default:
				b.add(namespace, without(some, but.within(namespace)), false)
			}
		}
	}
	return b.scope()
}

// Covers reports whether the scope contains every resource of o.
func (s *Scope) Covers(o *Scope) bool {
	if s.all || o.all {
		return s.all
	}
	for name := range o.everywhere {
		if _, ok := s.everywhere[name]; !ok {
			return false
		}
	}
	for namespace, some := range o.in {
		if some == nil && !s.HasNamespace(namespace) {
			return false
		}
		for name := range some {
			if !s.Has(namespace, name) {
				return false
			}
		}
	}
	return true
}

// Key returns a text that is equal only for equal scopes. The scope of everything has an empty key.
func (s *Scope) Key() string {
	if s.all {
		return ""
	}
	var b strings.Builder
	list := func(of []string) {
		b.WriteString(strconv.Itoa(len(of)))
		for _, one := range of {
			b.WriteByte(' ')
			b.WriteString(one)
		}
		b.WriteByte(';')
	}
	list(s.Everywhere())
	for _, namespace := range s.Namespaces() {
		b.WriteString(namespace)
		if some := s.Names(namespace); some != nil {
			b.WriteByte(':')
			list(some)
		}
		b.WriteByte(';')
	}
	return b.String()
}

// builder builds a scope. The zero value is empty. A role with many names may be bound in many namespaces. Therefore
// namespaces share one set of names until names are added to one of the namespaces.
type builder struct {
	out Scope
	own map[string]bool // the namespaces whose names are not shared
}

// add adds names in a namespace, or in all namespaces if everywhere is set. A nil some adds all names.
func (b *builder) add(namespace string, some nameSet, everywhere bool) {
	switch {
	case b.out.all || some != nil && len(some) == 0:
	case everywhere && some == nil:
		b.out = Scope{all: true}
	case everywhere:
		if b.out.everywhere == nil {
			b.out.everywhere = nameSet{}
		}
		maps.Copy(b.out.everywhere, some)
	default:
		if b.out.in == nil {
			b.out.in = map[string]nameSet{}
		}
		known, has := b.out.in[namespace]
		switch {
		case has && known == nil:
		case some == nil || !has:
			b.out.in[namespace] = some
		default:
			if !b.own[namespace] {
				if b.own == nil {
					b.own = map[string]bool{}
				}
				known, b.own[namespace] = maps.Clone(known), true
				b.out.in[namespace] = known
			}
			maps.Copy(known, some)
		}
	}
}

// scope returns the scope of everything that was added. It removes the names that every namespace contains from the
// single namespaces, so that equal scopes have equal keys.
func (b *builder) scope() *Scope {
	out := &Scope{all: b.out.all, everywhere: b.out.everywhere, in: b.out.in}
	for namespace, some := range out.in {
		if len(both(out.everywhere, some)) > 0 {
			some = without(some, out.everywhere)
			if len(some) == 0 {
				delete(out.in, namespace)
				continue
			}
			out.in[namespace] = some
		}
		out.size += max(len(some), 1)
	}
	out.places = sync.OnceValue(out.makePlaces)
	return out
}
