package change

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// scope selects the resources whose changes a stream sends.
type scope struct {
	kinds           []*kind.Kind
	namespace, name *string
	// filter maps the name of a kind to its filter; nil matches all resources.
	filter map[string]filter.Filter
	// allowed maps the name of a kind to the resources that the caller may watch and see; nil means all.
	allowed map[string]*access.Scope
	// cache decodes the states that filters test.
	cache *changeCache
}

// scopeOf returns the scope of a request. It returns an error if the request is not valid, or if it names a kind whose
// resources the caller may not watch.
func (f *Feed) scopeOf(rights *access.Rights, req Request) (scope, error) {
	scope := scope{namespace: req.Namespace, name: req.Name, cache: f.cache}
	names := req.Kinds
	if len(names) == 0 {
		for _, k := range f.cfg.Kinds.All() {
			if k.Has(descriptor.VerbWatch) {
				names = append(names, k.Name)
			}
		}
	}
	for i, name := range names {
		k, err := f.cfg.Kinds.Find(name)
		if err != nil {
			return scope, failure.InList(err, "kinds", i)
		}
		if len(req.Kinds) > 0 {
			if err := rights.Use(k.Kind, descriptor.VerbWatch); err != nil {
				return scope, access.About(err, backend.Key{
					Kind:      k.Name,
					Namespace: value(req.Namespace),
					Name:      value(req.Name),
				})
			}
		}
		if scope.kind(k.Name) == nil {
			scope.kinds = append(scope.kinds, k)
		}
	}
	var v kind.Violations
	if req.Namespace != nil {
		v.Namespace(failure.At("namespace"), *req.Namespace)
	}
	if req.Name != nil {
		v.Name(failure.At("name"), *req.Name)
	}
	if err := v.Err(backend.Key{}); err != nil {
		return scope, err
	}
	err := scope.keep(req)
	return scope.under(rights), err
}

// keep adds the filter of a request to the scope. If there are several kinds, the filter may only use fields that all
// kinds have.
func (s *scope) keep(req Request) error {
	for _, k := range s.kinds {
		f, err := filter.Parse(k, req.Filter, req.FieldNames)
		if err != nil || f.Empty() {
			return err
		}
		if s.filter == nil {
			s.filter = map[string]filter.Filter{}
		}
		s.filter[k.Name] = f
	}
	return nil
}

// under returns the scope restricted to the resources that a caller with the given rights may watch and see.
func (s scope) under(rights *access.Rights) scope {
	within := s.within()
	s.allowed = nil
	for _, k := range s.kinds {
		if k.Scope == descriptor.Global && s.namespace != nil {
			continue // a GLOBAL kind has no resources in a namespace
		}
		of := rights.Scope(k.Kind, descriptor.VerbWatch, descriptor.VerbGet).And(within)
		if of.Covers(within) {
			continue
		}
		if s.allowed == nil {
			s.allowed = map[string]*access.Scope{}
		}
		s.allowed[k.Name] = of
	}
	return s
}

// within returns the resources with the requested namespace and name, regardless of the caller's rights.
func (s *scope) within() *access.Scope {
	if s.namespace == nil && s.name == nil {
		return access.Everything()
	}
	return access.Within(value(s.namespace), value(s.name))
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// permitted returns the resources of a kind that the caller may watch and see.
func (s *scope) permitted(kind string) *access.Scope {
	if of := s.allowed[kind]; of != nil {
		return of
	}
	return access.Everything()
}

// permits reports whether the caller may watch and see a resource.
func (s *scope) permits(key backend.Key) bool {
	of := s.allowed[key.Kind]
	return of == nil || of.Has(key.Namespace, key.Name)
}

// same reports whether two scopes permit the same resources. The scopes may differ only in allowed.
func (s *scope) same(o *scope) bool {
	return !slices.ContainsFunc(s.kinds, func(k *kind.Kind) bool {
		a, b := s.permitted(k.Name), o.permitted(k.Name)
		return !a.Covers(b) || !b.Covers(a)
	})
}

func (s *scope) kind(name string) *kind.Kind {
	for _, k := range s.kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// namespaces returns the namespaces whose resources the scope can contain; nil for all.
func (s *scope) namespaces() []string {
	if s.namespace != nil {
		return []string{*s.namespace}
	}
	for _, k := range s.kinds {
		if k.Scope != descriptor.Global {
			return nil
		}
	}
	return []string{""}
}

// covers reports whether the scope contains a key, ignoring its filter.
func (s *scope) covers(key backend.Key) bool {
	return s.permits(key) && s.asks(key)
}

// coverage returns the method covers of a copy of the scope. The hub calls this method concurrently, while the scope of
// the stream may change.
func (s scope) coverage() func(backend.Key) bool { return s.covers }

// asks reports whether the request includes a key, regardless of the caller's rights and the filter.
func (s *scope) asks(key backend.Key) bool {
	return s.kind(key.Kind) != nil && (s.namespace == nil || *s.namespace == key.Namespace) &&
		(s.name == nil || *s.name == key.Name)
}

// change translates a log entry whose key is in the scope. If the resource begins to match the filter, the change is
// ADDED. If it stops matching, the change is DELETED. change returns false if the resource matches neither before nor
// after the change.
func (s *scope) change(e *backend.Event) (Change, bool) {
	out := Change{
		Type: Type(e.Type.String()), Revision: e.Revision.String(), Key: e.Resource.Key, Stored: e.Resource, event: e,
	}
	if s.filter == nil {
		return out, true
	}
	k := s.kind(e.Resource.Kind)
	f := s.filter[k.Name]
	was, is := s.cache.statesOf(k, e)
	before := was.matches(&f)
	after := is.matches(&f)
	known := !was.unknown
	switch {
	case !known && after:
		out.Type = Modified
	case !known, before && !after:
		out.Type = Deleted
	case after && !before:
		out.Type = Added
	case !after:
		return Change{}, false
	}
	return out, true
}

// matches reports whether a filter matches a state. An unknown state does not match.
func (s *rowState) matches(f *filter.Filter) bool {
	return s.resource != nil && f.MatchesRows(s.resource, s.rows)
}
