package catalogue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// sharded is a store that says it has four shards.
type sharded struct{ backend.Store }

func (s sharded) Position(ctx context.Context) (backend.Position, error) {
	at, err := s.Store.Position(ctx)
	return backend.NewPosition(at.Shard(0), at.Shard(0), at.Shard(0), at.Shard(0)), err
}

// crossing is a catalogue with a reference from shelves to a kind of a scope.
func crossing(guarded bool, scope descriptor.Scope) []descriptor.Kind {
	to := descriptor.Kind{Name: "Site", Singular: "site", Plural: "sites", Scope: scope, Spec: &descriptor.Shape{Name: "SiteSpec"}}
	return append(shelf(func(k *descriptor.Kind) {
		k.References = []descriptor.Reference{{Path: "spec.label", Kind: "Site", Guarded: guarded}}
	}), to)
}

func TestShard_AGuardedReferenceToAGlobalKindNeedsAStoreOfOneShard(t *testing.T) {
	f := setup(t)
	places := catalogue.Places{Folder: "kinds", Fields: map[string]string{"Shelf": "kinds/shelf.graphqls:1", "Shelf.spec.label": "kinds/shelf.graphqls:7"}}
	many := catalogue.Gate{Store: sharded{f.store}}
	for name, c := range map[string]struct {
		gate  catalogue.Gate
		kinds []descriptor.Kind
		takes bool
	}{
		"guarded, several shards":        {many, crossing(true, descriptor.Global), false},
		"guarded, one shard":             {f.gate, crossing(true, descriptor.Global), true},
		"unguarded, several shards":      {many, crossing(false, descriptor.Global), true},
		"in a namespace, several shards": {many, crossing(true, descriptor.Namespaced), true},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.gate.Accept(t.Context(), catalogue.Candidate{Kinds: c.kinds, Places: places, AllowBreaking: true, DryRun: true})
			if c.takes {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *catalogue.RefusedError
			if !errors.As(err, &refused) || !refused.Final {
				t.Fatal(err)
			}
			want := []string{
				"the store has 4 shards, and no guarded reference can lead from one to another:",
				"  kinds/shelf.graphqls:7: Shelf.spec.label: the guarded reference leads to kind Site, which is GLOBAL",
				"leave out guarded: true there, or use a store with one shard",
			}
			if d := cmp.Diff(want, refused.Lines()); d != "" {
				t.Error(d)
			}
		})
	}
}
