package catalogue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// sealed is a catalogue whose shelves keep their labels apart.
func sealed() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { field(k, "label").WriteOnly, k.Sensitive = true, true })
}

func TestAccept_WhatIsSensitiveCannotChangeUnderResources(t *testing.T) {
	for name, c := range map[string]struct {
		before, then []descriptor.Kind
		apart        bool
		says         string
	}{
		"it becomes sensitive": {hidden(), sealed(), false, "kinds/shelf.graphqls:1: kind Shelf has what is @writeOnly with its resources: it cannot become sensitive while they are stored (resources of the kind: 1)"},
		"it was":               {sealed(), hidden(), true, "kinds/shelf.graphqls:1: kind Shelf has what is @writeOnly apart from its resources: it has to stay sensitive while they are stored (resources of the kind: 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.places = places()
			for _, kinds := range [][]descriptor.Kind{c.before, c.then, c.before} { // without resources the flag is enough
				if err := f.accept(kinds, true); err != nil {
					t.Fatal(err)
				}
			}
			f.put("a", `{"spec":{"width":1}}`)
			if c.apart {
				key := backend.Key{Kind: "Shelf", Namespace: "default", Name: "a"}.Sensitive()
				if _, err := f.store.Apply(t.Context(), backend.Batch{RequestID: "apart", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
					Key: key, Op: backend.OpPut, Put: backend.Put{UID: "a", Body: backend.EncodeBody([]byte(`{"label":"x"}`))},
				}}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.accept(c.then, true); err == nil || !err.Final || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			if err := f.accept(c.before, false); err != nil {
				t.Errorf("the catalogue that made it: %v", err)
			}
		})
	}
}

func TestAccept_ASensitiveKindNeedsTheFlagToBecomeNone(t *testing.T) {
	f := setup(t)
	if err := f.accept(sealed(), false); err != nil {
		t.Fatal(err)
	}
	if err := f.accept(hidden(), false); err == nil || err.Final || !strings.Contains(err.Error(), "kind Shelf is not sensitive any more") {
		t.Errorf("it says %v", err)
	}
}

// passing is a store whose first resource is removed, with its secret, once it was listed.
type passing struct {
	backend.Store
	remove func()
}

func (p *passing) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := p.Store.Range(ctx, r)
	if len(page.Resources) > 0 {
		p.remove()
	}
	return page, err
}

// TestAccept_AResourceThatGoesWhileTheGateLooksIsNoReason: its secret has gone with it.
func TestAccept_AResourceThatGoesWhileTheGateLooksIsNoReason(t *testing.T) {
	for name, left := range map[string]bool{"the only one": false, "another one stays": true} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			if err := f.accept(sealed(), false); err != nil {
				t.Fatal(err)
			}
			write := func(op backend.Op, name string) {
				key := backend.Key{Kind: "Shelf", Namespace: "default", Name: name}
				put := backend.Put{}
				if op == backend.OpPut {
					put = backend.Put{UID: name, Body: backend.EncodeBody([]byte(`{"spec":{"width":1}}`))}
				}
				if _, err := f.store.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint(name, op), Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{
					{Key: key, Op: op, Put: put}, {Key: key.Sensitive(), Op: op, Put: put},
				}}); err != nil {
					t.Fatal(err)
				}
			}
			write(backend.OpPut, "a")
			if left {
				write(backend.OpPut, "b")
			}
			f.gate.Store = &passing{f.store, sync.OnceFunc(func() { write(backend.OpDelete, "a") })}
			if err := f.accept(sealed(), false); err != nil {
				t.Errorf("it says %v", err)
			}
			if left {
				if err := f.accept(hidden(), true); err == nil || !err.Final {
					t.Errorf("the one that stays: %v", err)
				}
			}
		})
	}
}
