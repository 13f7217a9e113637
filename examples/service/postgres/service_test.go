package main

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/graph/kinds"
)

func TestService_KeepsEveryPromise(t *testing.T) {
	p := startPostgres(t)
	s := p.open()
	server := httptest.NewServer(remote.Handler(s))
	defer server.Close()
	client, err := remote.New(remote.Config{Name: "projects", Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	schema, err := kinds.Load(&ast.Source{Name: "projects.graphqls", Input: sdl})
	if err != nil {
		t.Fatal(err)
	}
	results, err := kit.Run(t.Context(), kit.Config{
		Service: client, Descriptors: []descriptor.Kind{schema.Kinds[0].Kind}, Patience: 30 * time.Second,
		Restart: func(context.Context) error {
			p.restart()
			s.pool.Reset() // the service was restarted, too
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Status == kit.Failed || r.Status == kit.Skipped && r.Promise != "unreadable" && r.Promise != "unknown-fields" {
			t.Errorf("%s is %s: %s", r.Promise, r.Status, r.Detail)
		}
	}
	if len(results) < 30 {
		t.Errorf("%d promises were tested", len(results))
	}
}

// A transaction that began first and ends last is told after each position from between.
func TestChanges_ALateTransactionIsTold(t *testing.T) {
	s := startPostgres(t).open()
	ctx := t.Context()
	late := backend.Key{Kind: project, Namespace: "n", Name: "late"}
	early := backend.Key{Kind: project, Namespace: "n", Name: "early"}
	spec := []byte(`{"title": "A"}`)
	var between string
	_, err := s.change(ctx, late, false, func(_ pgx.Tx, _ *owner.Resource) (owner.Answer, error) {
		if _, err := s.Write(ctx, owner.Write{Resource: owner.Resource{Key: early, Spec: spec}, IfAbsent: true}); err != nil {
			return owner.Answer{}, err
		}
		c, err := s.Changes(ctx, "", 0)
		between = c.Position
		return owner.Answer{Outcome: owner.Done}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Changes(ctx, between, 0)
	if err != nil || len(c.Keys) != 1 || c.Keys[0] != late {
		t.Errorf("after %q: %+v, %v", between, c, err)
	}
	c, err = s.Changes(ctx, c.Position, 0)
	if err != nil || len(c.Keys) != 0 || c.Expired {
		t.Errorf("it is told twice: %+v, %v", c, err)
	}
}

func TestChanges_PositionsOfAnotherHistoryAreExpired(t *testing.T) {
	p := startPostgres(t)
	s := p.open()
	c, err := s.Changes(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	p.restored(s)
	c, err = s.Changes(t.Context(), c.Position, 0)
	if err != nil || !c.Expired {
		t.Errorf("after a restore: %+v, %v", c, err)
	}
}

func TestWrite_TextThatCannotBeStoredIsInvalid(t *testing.T) {
	s := startPostgres(t).open()
	w := owner.Write{IfAbsent: true, Resource: owner.Resource{
		Key: backend.Key{Kind: project, Namespace: "n", Name: "a"}, Spec: []byte(`{"title": "a\u0000b"}`),
	}}
	a, err := s.Write(t.Context(), w)
	if err != nil || a.Outcome != owner.Invalid || a.Violations[0].Path != "spec" {
		t.Errorf("it answered %+v, %v", a, err)
	}
}
