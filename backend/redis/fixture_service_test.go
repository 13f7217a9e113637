package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// thing is a kind with all verbs and one field.
func thing() descriptor.Kind {
	return descriptor.Kind{
		Name: "Thing", Singular: "thing", Plural: "things", Group: "example.org", Version: "v1", Scope: descriptor.Namespaced,
		Verbs: []descriptor.Verb{
			descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate,
			descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbStatus, descriptor.VerbFinalize, descriptor.VerbControl, descriptor.VerbDelete,
		},
		FilterableFields: []descriptor.FilterableField{{Path: "spec.title", Sortable: true}},
		Spec:             &descriptor.Shape{Name: "ThingSpec", Fields: []descriptor.Field{{Name: "title", Type: descriptor.TypeString}}},
		Status:           &descriptor.Shape{Name: "ThingStatus", Fields: []descriptor.Field{{Name: "id", Type: descriptor.TypeString}}},
	}
}

func thingKey(name string) backend.Key {
	return backend.Key{Kind: "Thing", Namespace: descriptor.DefaultNamespace, Name: name}
}

func thingNamed(name string) kind.Identity { return kind.Identity{Kind: "Thing", Name: name} }

func titled(title string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"title":%q}`, title))
}

// gateway is a service whose requests are known by their prefix. It runs until
// the test ends.
func gateway(t *testing.T, st *redis.Store, prefix string, writeTimeout time.Duration) *service.Service {
	t.Helper()
	var n atomic.Int64
	svc, err := service.New(service.Config{
		Kinds: []descriptor.Kind{thing()}, Store: st, WriteTimeout: writeTimeout,
		NewID: func() string { return fmt.Sprint(prefix, n.Add(1)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = svc.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return svc
}

// changes are the events of a kind after a position, up to the head.
func changes(t *testing.T, st *redis.Store, from backend.Position, kind string) (out []backend.Event) {
	t.Helper()
	w, err := st.Watch(t.Context(), backend.Watch{From: from})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		d, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range d.Events {
			if e.Resource.Kind == kind {
				out = append(out, e)
			}
		}
		if d.CaughtUp {
			return out
		}
	}
}

// by counts the events whose request has the prefix.
func by(events []backend.Event, prefix string) (n int) {
	for _, e := range events {
		if strings.HasPrefix(e.RequestID, prefix) {
			n++
		}
	}
	return n
}

// code is that of an error of the service, empty for none.
func code(t *testing.T, err error) failure.Code {
	t.Helper()
	var known *failure.Error
	if err != nil && !errors.As(err, &known) {
		t.Fatalf("error %v is none of the service", err)
	}
	if known == nil {
		return ""
	}
	return known.Code
}
