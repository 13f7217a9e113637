package service

import (
	"context"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// changeScope is what a stream covers.
type changeScope struct {
	kinds           []*kind
	namespace, name *string
	filter          *filter
	// updated says that the filter looks at updatedAt, of which the log knows no value before a change.
	updated bool
}

func (f *Feed) changeScope(ctx context.Context, c Caller, req ChangesRequest) (changeScope, error) {
	scope := changeScope{namespace: req.Namespace, name: req.Name}
	names := req.Kinds
	if len(names) == 0 {
		for _, k := range f.kinds.all() {
			if k.Has(descriptor.VerbWatch) {
				names = append(names, k.Name)
			}
		}
	}
	for _, name := range names {
		k, err := f.kinds.find(name)
		if err != nil {
			return scope, err
		}
		if err := authorize(ctx, c, k.Kind, descriptor.VerbWatch); err != nil {
			return scope, err
		}
		if scope.kind(k.Name) == nil {
			scope.kinds = append(scope.kinds, k)
		}
	}
	var v violations
	if req.Namespace != nil {
		v.namespace("namespace", *req.Namespace)
	}
	if req.Name != nil {
		v.name("name", *req.Name)
	}
	if err := v.err(backend.Key{}); err != nil {
		return scope, err
	}
	if req.Filter == nil {
		return scope, nil
	}
	if len(scope.kinds) != 1 {
		return scope, badInput("filter", "a filter needs a stream of one kind")
	}
	wanted, err := filterOf(scope.kinds[0], req.Filter)
	if !wanted.empty() {
		scope.filter = &wanted
		scope.updated = wanted.looksAtUpdated()
	}
	return scope, err
}

func (s *changeScope) kind(name string) *kind {
	for _, k := range s.kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// namespaces are those in which the scope lies, nil for all.
func (s *changeScope) namespaces() []string {
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

// covers says whether the scope has a key, whatever the filter says.
func (s *changeScope) covers(key backend.Key) bool {
	return s.kind(key.Kind) != nil && (s.namespace == nil || *s.namespace == key.Namespace) && (s.name == nil || *s.name == key.Name)
}

// change is what a log entry that the scope covers means to the stream: entering the filter is
// ADDED, leaving it DELETED.
func (s *changeScope) change(e *backend.Event) (Change, bool) {
	out := Change{Type: ChangeType(e.Type.String()), Revision: e.Revision.String(), Stored: e.Resource}
	if s.filter == nil {
		return out, true
	}
	k := s.kinds[0]
	after := e.Type != backend.Deleted && s.matches(k, e.Resource)
	var before, known bool
	switch {
	case e.Type == backend.Added:
		known = true
	case e.Type == backend.Deleted:
		var err error
		before, err = s.filter.matches(k, e.Resource)
		known = err == nil // else nobody knows whether the listener has it
	case e.FingerprintBefore == k.rows.fingerprint && !s.updated:
		before, known = s.filter.matchesRows(e.Resource, e.RowsBefore), true
	}
	switch {
	case !known && after:
		out.Type = ChangeModified
	case !known, before && !after:
		out.Type = ChangeDeleted
	case after && !before:
		out.Type = ChangeAdded
	case !after:
		return Change{}, false
	}
	return out, true
}

// matches judges a state by the filter. One that cannot be read matches nothing.
func (s *changeScope) matches(k *kind, r *backend.Resource) bool {
	ok, err := s.filter.matches(k, r)
	return err == nil && ok
}
