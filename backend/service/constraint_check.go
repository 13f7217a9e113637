package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Tightened describes the stored resources of a kind that break a constraint or rule of the new catalogue but none of
// the old catalogue.
type Tightened struct {
	Kind string
	// Resources is the number of these resources. It is a lower bound if All is false, because the check ran out of
	// time.
	Resources int
	All       bool
	// First is the first of these resources, ordered by namespace and name. Why is its first violation.
	First backend.Key
	Why   string
	// Each lists the first MaxListed of these resources, ordered by namespace and name.
	Each []Broken
}

// Broken is a resource that breaks a constraint. Why describes its first violation.
type Broken struct {
	Key backend.Key
	Why string
}

// MaxListed is the maximum number of resources in [Tightened.Each].
const MaxListed = 10_000

// Lines returns a line of text for each resource in Each, and one for the number of resources that are not listed.
func (t Tightened) Lines() (lines []string) {
	for _, b := range t.Each {
		lines = append(lines, fmt.Sprintf("%s: %s", b.Key, b.Why))
	}
	if more := t.Resources - len(t.Each); more > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d more are not listed", t.Kind, more))
	}
	return lines
}

func (t Tightened) String() string {
	if t.Resources == 0 {
		return fmt.Sprintf("%s: none of the resources that there was time to look at breaks what was tightened", t.Kind)
	}
	least := "at least "
	if t.All {
		least = ""
	}
	return fmt.Sprintf("%s: stored resources that break what was tightened: %s%d; the first is %s: %s", t.Kind, least, t.Resources, t.First, t.Why)
}

// Tightened returns, for each kind, the stored resources that violate a constraint or rule of this service's catalogue
// but none of the earlier service's catalogue. Both services must use the same store. Tightened reads bodies from the
// index if possible, and stops after the given duration. It leaves out kinds without such resources, unless it ran out
// of time. It skips sensitive kinds, because their values would have to be decrypted.
func (s *Service) Tightened(ctx context.Context, earlier *Service, within time.Duration) ([]Tightened, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var out []Tightened
	for _, k := range s.kinds.All() {
		was, err := earlier.kinds.Find(k.Name)
		if err != nil || was.Name != k.Name || k.Sensitive || was.Sensitive ||
			reflect.DeepEqual(k.Kind.Spec, was.Kind.Spec) {
			continue
		}
		found := Tightened{Kind: k.Name, All: true}
		err = earlier.eachStored(ctx, k.Name, func(r *backend.Resource) error {
			if why := newlyBroken(k, was, r); why != "" {
				found.Resources++
				if found.Resources == 1 {
					found.First = r.Key
					found.Why = why
				}
				if len(found.Each) < MaxListed {
					found.Each = append(found.Each, Broken{r.Key, why})
				}
			}
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		found.All = err == nil
		if found.Resources > 0 || !found.All {
			out = append(out, found)
		}
	}
	return out, nil
}

// newlyBroken returns the first violation that a resource has under the new declaration of its kind but not under the
// old one. It returns "" if there is none or the resource cannot be read.
func newlyBroken(now, was *kind.Kind, r *backend.Resource) string {
	st, err := kind.StateOf(r)
	if err != nil {
		return ""
	}
	of := func(k *kind.Kind) []failure.Violation {
		var found kind.Violations
		found.Object(context.Background(), k.Spec, failure.At("spec"), k.Spec.Known(st.Spec))
		if e, ok := errors.AsType[*failure.Error](found.Err(r.Key)); ok {
			return e.Violations
		}
		return nil
	}
	broke := of(now)
	if len(broke) == 0 {
		return ""
	}
	before := of(was)
	for _, v := range broke {
		same := func(o failure.Violation) bool {
			return o.Path == v.Path && o.Rule == v.Rule && (v.Rule != "rule" || o.Limit == v.Limit)
		}
		if !slices.ContainsFunc(before, same) {
			return v.Path + ": " + v.Message
		}
	}
	return ""
}

// eachStored visits the resources of a kind in the order of namespace and name, from the index if possible.
func (s *Service) eachStored(ctx context.Context, of string, visit func(*backend.Resource) error) (err error) {
	if s.index != nil {
		if view, ok := s.index.View(ctx); ok {
			if k, ok := view.Kind(of); ok {
				k.Scan(index.Run{}, false, func(_ string, e *index.Entry) bool {
					if !e.ExpiredAt(view.Now()) {
						err = visit(&e.Resource)
					}
					return err == nil
				})
				return err
			}
		}
	}
	for page, err := range backend.Pages(ctx, s.cfg.Store, backend.Range{Kind: of, Limit: readAtOnce, Bare: true}) {
		if err != nil {
			return err
		}
		for _, stored := range page.Resources {
			if err := visit(stored); err != nil {
				return err
			}
		}
	}
	return nil
}

// readAtOnce is how many resources are read from the store in one call.
const readAtOnce = 500
