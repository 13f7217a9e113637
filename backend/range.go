package backend

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
)

// Range selects the resources of one kind, the resources that refer to a key, or everything in one shard.
//
// Start and End are bounds of the order tuple: Start is inclusive, End exclusive. The tuple is (namespace, name), or
// (kind, namespace, name) if the range may have several kinds. A nil bound leaves its side open.
type Range struct {
	// Kind is the kind of the resources. It may be empty in two cases. With Referenced, the range has referrers of all
	// kinds. With Shard, it has everything in the shard, including the gateway's own records ([Key.Internal]), in the
	// order of (kind, namespace, name).
	Kind string
	// Referenced selects the resources that refer to this key, which may include the resource itself. They are in the
	// order of (kind, namespace, name). A key of a GLOBAL kind may have referrers in all namespaces, and so in all
	// shards.
	Referenced *Key
	// BoundOnly leaves out resources whose reference to the key is not bound.
	BoundOnly bool
	// Deleting selects resources whose deletion was requested. It cannot be combined with Referenced.
	Deleting bool
	// Namespace selects one namespace. Empty selects all.
	Namespace string
	// Shard selects the namespaces of one shard. Here shards are numbered from 1, and 0 selects all. In a store that is
	// not a [Sharder], 1 is everything. It cannot be combined with Namespace or Referenced.
	Shard      int
	Start, End []byte
	Reverse    bool
	// Limit is the maximum number of resources, 1 to MaxLimit.
	Limit int
	// Bare allows the store to leave out Refs and Declared. It is for resources that are only shown, not written or
	// compared. A resource whose Refs or Declared are damaged can then still be read.
	Bare bool
	// KeysOnly leaves out everything but Key, Revision and ExpiresAt. A resource whose other parts are damaged can then
	// still be read. It cannot be combined with Referenced or Deleting.
	KeysOnly bool
	// Count asks for the number of live resources in the range instead of a page; Limit
	// is ignored.
	Count bool
}

// Page has the first resources of a range, as many as [Range.Limit] and MaxPageBytes allow.
type Page struct {
	Resources []*Resource
	// More reports whether the range has resources after the last one of the page.
	More bool
	// Count is the number of live resources, if Range.Count is set.
	Count int
	// Unreadable are the keys of resources that were left out because they cannot be decoded, in the order of the
	// range. If there are more pages, it has the keys up to the page's last resource, so no two pages report the same
	// key. If not even the key of a resource can be decoded, a zero Key stands for it. With Range.Count there are none.
	Unreadable []Key
}

// After returns the rest of the range after a page, and whether there may be more. The range must not be reversed.
func (r Range) After(page Page) (rest Range, more bool) {
	if !page.More || len(page.Resources) == 0 {
		return r, false
	}
	last := page.Resources[len(page.Resources)-1]
	r.Start = Successor(OrderTuple(last.Namespace, last.Name))
	if r.Referenced != nil || r.Kind == "" {
		r.Start = Successor(last.Key.Append(nil))
	}
	return r, true
}

// Pages returns the pages of a range, each read from the store when it is requested. It ends after
// an error.
func Pages(ctx context.Context, s Store, r Range) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for more := true; more; {
			page, err := s.Range(ctx, r)
			if !yield(page, err) || err != nil {
				return
			}
			r, more = r.After(page)
		}
	}
}

// Validate returns ErrInvalid for a malformed range. shards is the number of shards of the store.
func (r Range) Validate(shards int) error {
	switch {
	case r.Kind == "" && r.Referenced == nil && r.Shard == 0:
		return fmt.Errorf("range: no kind, and no shard to read as a whole: %w", ErrInvalid)
	case r.Referenced != nil && r.Deleting:
		return fmt.Errorf("range: references and deletions: %w", ErrInvalid)
	case r.Referenced != nil && !r.Referenced.valid():
		return fmt.Errorf("range: references: %w", errKey())
	case r.KeysOnly && (r.Referenced != nil || r.Deleting):
		return fmt.Errorf("range: keys alone of references or deletions: %w", ErrInvalid)
	case r.Referenced == nil && r.BoundOnly:
		return fmt.Errorf("range: bound references to no key: %w", ErrInvalid)
	}
	if r.Shard < 0 || r.Shard > shards {
		return fmt.Errorf("range: shard %d, 1 to %d wanted, or 0 for all: %w", r.Shard, shards, ErrInvalid)
	}
	if r.Shard > 0 && (r.Namespace != "" || r.Referenced != nil) {
		return fmt.Errorf("range: a shard beside a namespace or a reference: %w", ErrInvalid)
	}
	if !r.Count && (r.Limit < 1 || r.Limit > MaxLimit) {
		return fmt.Errorf("range: limit %d, 1 to %d wanted: %w", r.Limit, MaxLimit, ErrInvalid)
	}
	return nil
}

// OrderTuple returns the order tuple of a resource, for Range.Start and Range.End.
func OrderTuple(namespace, name string) []byte {
	return AppendString(AppendString(nil, namespace), name)
}

// Prefix returns the bytes with which all keys of the range begin: the tuple (kind); nothing if the range is a whole
// shard; or the tuple of [AppendRefKey] if it is about references. A driver keeps resources, references and requested
// deletions in separate key ranges.
func (r Range) Prefix() []byte {
	switch {
	case r.Referenced != nil:
		return AppendBool(r.Referenced.Append(nil), r.BoundOnly)
	case r.Kind == "":
		return nil
	}
	return AppendString(nil, r.Kind)
}

// Bounds returns the half-open interval of the driver's keys that contains the range. If the range has Referenced and
// Namespace, but no Kind, the interval may also contain referrers in other namespaces.
func (r Range) Bounds() (start, end []byte) {
	prefix := r.Prefix()
	start = slices.Concat(prefix, r.Start)
	// within is prefix with the elements of the order tuple that the range fixes: the kind of referrers, the namespace.
	within := slices.Clip(prefix)
	if r.Referenced != nil && r.Kind != "" {
		within = AppendString(within, r.Kind)
	}
	if r.Namespace != "" && (r.Referenced == nil || r.Kind != "") {
		within = AppendString(within, r.Namespace)
	}
	start, end = slices.MaxFunc([][]byte{start, within}, bytes.Compare), PrefixEnd(within)
	if r.End != nil {
		end = slices.MinFunc([][]byte{end, slices.Concat(prefix, r.End)}, bytes.Compare)
	}
	return start, end
}

// MayRefer reports whether resources in a namespace may refer to Referenced. Resources in all namespaces may refer to a
// GLOBAL resource. Only resources in the same namespace may refer to any other resource.
func (r Range) MayRefer(namespace string) bool {
	return r.Referenced.Namespace == "" || r.Referenced.Namespace == namespace
}

// Ranger is implemented by a store that can answer several ranges in one call.
type Ranger interface {
	// Ranges answers each range as Range does, from one state of the store. There may be at most MaxRanges. If one
	// fails, the call fails. All pages together have at most MaxPageBytes: once these are used up, each further page
	// has only the first resource of its range. More reports whether the range has others.
	Ranges(ctx context.Context, rs []Range) ([]Page, error)
}

// ValidateRanges returns ErrInvalid for malformed arguments of [Ranger.Ranges]. shards is the number of shards of the
// store.
func ValidateRanges(rs []Range, shards int) error {
	if len(rs) > MaxRanges {
		return fmt.Errorf("ranges: %d, at most %d: %w", len(rs), MaxRanges, ErrInvalid)
	}
	for i, r := range rs {
		if err := r.Validate(shards); err != nil {
			return fmt.Errorf("range %d: %w", i, err)
		}
	}
	return nil
}

// Ranges answers several ranges. If the store is a [Ranger] it does so in one call and from one state, otherwise in one
// call for each range.
func Ranges(ctx context.Context, s Store, rs []Range) ([]Page, error) {
	if many, ok := s.(Ranger); ok {
		return many.Ranges(ctx, rs)
	}
	out := make([]Page, len(rs))
	for i, r := range rs {
		var err error
		if out[i], err = s.Range(ctx, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}
