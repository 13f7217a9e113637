package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

// partly shows the teams of a service without their sizes, as an older mapping does. A write keeps the size.
type partly struct{ *ownertest.Service }

// withoutSize returns a team without its size, and the size.
func withoutSize(r *owner.Resource) (*owner.Resource, any) {
	if r == nil {
		return nil, nil
	}
	var spec map[string]any
	_ = json.Unmarshal(r.Spec, &spec)
	size := spec["size"]
	delete(spec, "size")
	out := *r
	out.Spec, _ = json.Marshal(spec)
	return &out, size
}

func (p partly) Describe(ctx context.Context) (owner.Description, error) {
	out, err := p.Service.Describe(ctx)
	for i := range out.Kinds {
		out.Kinds[i].Partial = true
	}
	return out, err
}

func (p partly) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	out, err := p.Service.List(ctx, kind, token, size)
	for i := range out.Resources {
		shown, _ := withoutSize(&out.Resources[i])
		out.Resources[i] = *shown
	}
	return out, err
}

func (p partly) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	out, err := p.Service.Get(ctx, keys)
	for i := range out {
		out[i].Resource, _ = withoutSize(out[i].Resource)
	}
	return out, err
}

func (p partly) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	plain, size := withoutSize(&w.Resource)
	if size != nil {
		return owner.Answer{Outcome: owner.Invalid, Message: "the service has no size"}, nil
	}
	was, err := p.Service.Get(ctx, []backend.Key{w.Resource.Key})
	if err != nil {
		return owner.Answer{}, err
	}
	if _, size := withoutSize(was[0].Resource); size != nil {
		plain.Spec = fmt.Appendf(nil, `{"size":%v,%s`, size, plain.Spec[1:])
	}
	w.Resource = *plain
	a, err := p.Service.Write(ctx, w)
	a.Resource, _ = withoutSize(a.Resource)
	return a, err
}

func TestOwned_GatewaysThatAreShownOtherPartsDoNotUndoEachOther(t *testing.T) {
	inTeamWorld(t, 0, func(t *testing.T, w *teamWorld) {
		w.begin(wholly{w.teams})
		older := teamKinds()
		older[0].Spec.Fields = older[0].Spec.Fields[:1] // without size
		older[0].FilterableFields = nil
		other, err := service.New(service.Config{
			Kinds: older, Store: w.store.Handle(), Owners: map[string]owner.Service{"teams": partly{w.teams}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.run(other)
		w.teams.Put(ownedTeam("a", 1))
		time.Sleep(time.Hour)
		at := w.position()
		if _, err := other.Writer.Upsert(t.Context(), service.UpsertRequest{
			Identity: in("Team", "a"), Spec: map[string]any{"email": "c@d"},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		w.checkEdit(at)
		if _, err := w.upsert(0, "a", 2); err != nil {
			t.Fatal(err)
		}
		w.teams.Remove(teamKey("a"))
		w.teams.Put(ownedTeam("a", 3)) // another resource of that name
		w.teams.Put(ownedTeam("b", 4))
		time.Sleep(time.Hour)
		w.mirrored()
	})
}

// wholly is a service that is shown in parts, of which the gateway has all.
type wholly struct{ *ownertest.Service }

func (s wholly) Describe(ctx context.Context) (owner.Description, error) {
	return partly(s).Describe(ctx)
}
