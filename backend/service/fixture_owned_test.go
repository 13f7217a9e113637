package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

// teamKinds are Team, which the service "teams" owns, and App, which has a guarded reference to a team.
func teamKinds() []descriptor.Kind {
	verbs := []descriptor.Verb{
		descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch, descriptor.VerbCreate, descriptor.VerbUpdate,
		descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbDelete,
	}
	text := func(name string) descriptor.Field {
		return descriptor.Field{Name: name, Type: descriptor.TypeString, Constraint: descriptor.Constraint{MaxLength: new(100)}}
	}
	condition := &descriptor.Shape{Name: "Condition", Fields: []descriptor.Field{
		{Name: "type", Type: descriptor.TypeString}, {Name: "status", Type: descriptor.TypeString},
		{Name: "message", Type: descriptor.TypeString},
	}}
	team := descriptor.Kind{
		Name: "Team", Singular: "team", Plural: "teams", Group: "example.org", Version: "v1",
		Scope: descriptor.Namespaced, Verbs: verbs, Service: "teams",
		FilterableFields: []descriptor.FilterableField{{Path: "spec.size", Sortable: true}},
		Spec: &descriptor.Shape{Name: "TeamSpec", Fields: []descriptor.Field{
			text("email"), {Name: "size", Type: descriptor.TypeInt},
		}},
		Status: &descriptor.Shape{Name: "TeamStatus", Fields: []descriptor.Field{{Name: "members", Type: descriptor.TypeInt}}},
	}
	app := descriptor.Kind{
		Name: "App", Singular: "app", Plural: "apps", Group: "example.org", Version: "v1",
		Scope: descriptor.Namespaced, Verbs: verbs,
		References: []descriptor.Reference{
			{Path: "spec.teamRef", Kind: "Team", Field: "team", Guarded: true, Inverse: "apps"},
		},
		Spec: &descriptor.Shape{Name: "AppSpec", Fields: []descriptor.Field{text("teamRef")}},
		Status: &descriptor.Shape{Name: "AppStatus", Fields: []descriptor.Field{
			{Name: "conditions", Type: descriptor.TypeObject, Shape: condition, List: true, ListType: descriptor.ListAtomic},
		}},
	}
	return []descriptor.Kind{team, app}
}

// teamWorld is a service that owns teams, and gateways over one store.
type teamWorld struct {
	t        *testing.T
	store    *memory.Store
	teams    *ownertest.Service
	gateways []*service.Service
}

// inTeamWorld runs a test in a bubble, with some gateways that run.
func inTeamWorld(t *testing.T, gateways int, test func(t *testing.T, w *teamWorld), kinds ...owner.Kind) {
	synctest.Test(t, func(t *testing.T) {
		if len(kinds) == 0 {
			kinds = []owner.Kind{ownertest.Full("Team")}
		}
		w := openTeamWorld(t, kinds...)
		for range gateways {
			w.begin(w.teams)
		}
		w.settle()
		test(t, w)
	})
}

func openTeamWorld(t *testing.T, kinds ...owner.Kind) *teamWorld {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &teamWorld{t: t, store: store, teams: ownertest.New("teams", kinds...)}
}

// begin starts a gateway whose service "teams" is teams, which may wrap the one of the world.
func (w *teamWorld) begin(teams owner.Service) *service.Service {
	w.t.Helper()
	return w.beginWith(service.Config{Owners: map[string]owner.Service{"teams": teams}})
}

// beginWith starts a gateway with settings. Owners are the service of the world by default.
func (w *teamWorld) beginWith(cfg service.Config) *service.Service {
	w.t.Helper()
	cfg.Kinds = teamKinds()
	cfg.Store = w.store.Handle()
	if cfg.Owners == nil {
		cfg.Owners = map[string]owner.Service{"teams": w.teams}
	}
	svc, err := service.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run(svc)
	w.gateways = append(w.gateways, svc)
	return svc
}

// run runs a gateway until stop is called, or the test ends.
func (w *teamWorld) run(svc *service.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- svc.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// settle waits until nothing is left to do, for longer than gateways leave changes to each other.
func (w *teamWorld) settle() {
	time.Sleep(3 * time.Second)
	synctest.Wait()
}

func teamKey(name string) backend.Key { return backend.Key{Kind: "Team", Namespace: "n", Name: name} }

func in(of, name string) kind.Identity {
	namespace := "n"
	return kind.Identity{Kind: of, Namespace: &namespace, Name: name}
}

// as returns a context of a caller.
func as(ctx context.Context, name string) context.Context {
	return access.WithCaller(ctx, access.Caller{Identity: &access.Identity{Name: name, Source: "token"}})
}

func ownedTeam(name string, size int) owner.Resource {
	return owner.Resource{Key: teamKey(name), Spec: fmt.Appendf(nil, `{"email":"a@b","size":%d}`, size)}
}

// stored returns a record, nil for none.
func (w *teamWorld) stored(of, name string) *backend.Resource {
	w.t.Helper()
	got, err := w.store.Get(context.Background(), backend.Key{Kind: of, Namespace: "n", Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return got[0]
}

// teamBody is the body of a record of a team or an app.
type teamBody struct {
	Metadata struct {
		UpdatedBy           string
		DeletionRequestedAt string
		Generation          int
		Labels              map[string]string
		Waits               []string
	}
	Spec struct {
		Email string
		Size  int
	}
	Status struct {
		Members    int
		Conditions []struct{ Type, Status, Message string }
	}
}

func bodyOf(t *testing.T, r *backend.Resource) (out teamBody) {
	t.Helper()
	if r == nil {
		t.Fatal("there is no record")
	}
	raw, err := backend.DecodeBody(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *teamWorld) create(i int, of, name, spec string) (*service.Written, error) {
	return w.gateways[i].Writer.Create(as(w.t.Context(), "token:alice"), service.CreateRequest{
		Identity: in(of, name), Spec: json.RawMessage(spec),
	})
}

func (w *teamWorld) mustCreate(i int, of, name, spec string) *service.Written {
	w.t.Helper()
	out, err := w.create(i, of, name, spec)
	if err != nil {
		w.t.Fatalf("create %s %s: %v", of, name, err)
	}
	return out
}

// resize sets the size of a team at a revision.
func (w *teamWorld) resize(ctx context.Context, i int, name, revision string, size int) (*service.Written, error) {
	return w.gateways[i].Writer.Patch(as(ctx, "token:alice"), service.PatchRequest{
		Identity: in("Team", name), ExpectedRevision: revision, Patch: map[string]any{"size": size},
	})
}

func (w *teamWorld) upsert(i int, name string, size int) (*service.Written, error) {
	return w.gateways[i].Writer.Upsert(as(w.t.Context(), "token:alice"), service.UpsertRequest{
		Identity: in("Team", name), Spec: map[string]any{"email": "a@b", "size": size},
	})
}

func (w *teamWorld) delete(i int, of, name string) (*service.Written, error) {
	return w.gateways[i].Writer.Delete(as(w.t.Context(), "token:alice"), service.DeleteRequest{Identity: in(of, name)})
}

// failureOf returns an error of the service; it fails the test if it has another code or outcome.
func failureOf(t *testing.T, err error, code failure.Code, outcome string) *failure.Error {
	t.Helper()
	known, ok := errors.AsType[*failure.Error](err)
	if !ok || known.Code != code || known.Outcome != outcome {
		t.Fatalf("%v (%+v), want %s %s", err, known, code, outcome)
	}
	return known
}

// mirrored fails the test unless the records are what the service has.
func (w *teamWorld) mirrored() {
	w.t.Helper()
	have := map[backend.Key]*backend.Resource{}
	for page, err := range backend.Pages(context.Background(), w.store, backend.Range{Kind: "Team", Limit: backend.MaxLimit}) {
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Resources {
			have[r.Key] = r
		}
	}
	all := w.teams.All()
	for key, is := range all {
		r := have[key]
		if r == nil {
			w.t.Errorf("%s is not mirrored", key)
			continue
		}
		delete(have, key)
		var spec struct{ Size int }
		if err := json.Unmarshal(is.Spec, &spec); err != nil {
			w.t.Fatal(err)
		}
		b := bodyOf(w.t, r)
		if r.UID != is.UID || b.Spec.Size != spec.Size || r.Deleting != !is.DeletionRequestedAt.IsZero() {
			w.t.Errorf("%s: %s size %d deleting %v, the service has %s %s", key, r.UID, b.Spec.Size, r.Deleting, is.UID, is.Spec)
		}
	}
	for key := range have {
		w.t.Errorf("%s is mirrored and gone", key)
	}
}

func (w *teamWorld) position() backend.Position {
	w.t.Helper()
	at, err := w.store.Position(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

// eventsAfter returns the events after a position.
func (w *teamWorld) eventsAfter(at backend.Position) (out []backend.Event) {
	w.t.Helper()
	watch, err := w.store.Watch(context.Background(), backend.Watch{From: at})
	if err != nil {
		w.t.Fatal(err)
	}
	defer watch.Close()
	for {
		d, err := watch.Next(context.Background())
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, d.Events...)
		if d.CaughtUp {
			return out
		}
	}
}

// storyAfter returns the types of the events after a position, with their resources.
func (w *teamWorld) storyAfter(at backend.Position) (story string) {
	for _, e := range w.eventsAfter(at) {
		story += fmt.Sprintf("%s %s/%s; ", e.Type, e.Resource.Kind, e.Resource.Name)
	}
	return story
}

// checkEdit checks that only one edit happened after a position: another gateway set the email of Team/a, whose size is
// 1, to c@d. If the gateway of w has followed the change before the other one stores it, the other one corrects who made
// it, so there may be two events.
func (w *teamWorld) checkEdit(at backend.Position) {
	w.t.Helper()
	events := w.eventsAfter(at)
	if len(events) < 1 || len(events) > 2 {
		w.t.Error(w.storyAfter(at))
	}
	for _, e := range events {
		b := bodyOf(w.t, e.Resource)
		if e.Type != backend.Modified || b.Spec.Size != 1 || b.Spec.Email != "c@d" {
			w.t.Errorf("%s %+v", e.Type, b)
		}
	}
	if b := bodyOf(w.t, w.stored("Team", "a")); b.Metadata.UpdatedBy != "" {
		w.t.Errorf("%+v", b)
	}
}
