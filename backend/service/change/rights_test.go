package change_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// watched is a running service that judges its callers, whose silent streams tell their cursors at once.
// Besides Widget, Site and the kinds that give rights, it serves more.
func watched(t *testing.T, store backend.Store, indexMemory int64, more ...descriptor.Kind) *servicetest.Fixture {
	t.Helper()
	kinds := append([]descriptor.Kind{servicetest.Widget(), servicetest.Site()}, servicetest.PolicyKinds(t)...)
	return servicetest.Running(t, service.Config{
		Kinds:            append(kinds, more...),
		Store:            store,
		IndexMemory:      indexMemory,
		BookmarkInterval: time.Millisecond,
		Access:           access.Config{Enabled: true, AdminGroup: servicetest.AdminGroup},
	})
}

// rebuilt rebuilds the state from the events of a stream.
type rebuilt struct {
	t      *testing.T
	caller access.Caller
	req    change.Request
	stream *change.Stream
	// waiting were returned and not taken.
	waiting []change.Change
	// has are the revisions of what the listener knows.
	has map[backend.Key]string
	// cursor is the last one.
	cursor string
	// story is what was told of resources since the last call of settle, resets since then.
	story  []string
	resets int
}

// listen begins a stream that the test closes.
func listen(t *testing.T, f *servicetest.Fixture, caller access.Caller, req change.Request) *rebuilt {
	t.Helper()
	l := &rebuilt{t: t, caller: caller, req: req, has: map[backend.Key]string{}}
	if err := l.begin(f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.stream.Close() })
	return l
}

func (l *rebuilt) begin(f *servicetest.Fixture) (err error) {
	l.waiting = nil
	l.stream, err = f.Feed.Changes(access.WithCaller(context.Background(), l.caller), l.req)
	return err
}

// take takes the next event, judged when it is taken.
func (l *rebuilt) take() (err error) {
	if l.waiting, err = l.stream.CheckRights(context.Background(), l.waiting); err == nil && len(l.waiting) == 0 {
		l.waiting, err = l.stream.Next(context.Background())
	}
	if err == nil {
		e := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.hear(e)
	}
	return err
}

func (l *rebuilt) hear(e change.Change) {
	switch e.Type {
	case change.Reset:
		clear(l.has)
		l.resets++
	case change.Snapshot, change.Added, change.Modified:
		if known, ok := l.has[e.Key]; e.Type == change.Added && ok {
			l.t.Errorf("ADDED %v at %s, which is known at %s", e.Key, e.Revision, known)
		}
		l.has[e.Key] = e.Revision
		if e.Stored == nil || e.Stored.Key != e.Key {
			l.t.Errorf("%s %v has %v", e.Type, e.Key, e.Stored)
		}
	case change.Deleted:
		if _, ok := l.has[e.Key]; !ok {
			l.t.Errorf("DELETED %v, which was not known", e.Key)
		}
		delete(l.has, e.Key)
	}
	if e.Key != (backend.Key{}) {
		line := string(e.Type) + " " + strings.Trim(e.Key.Namespace+"/"+e.Key.Name, "/")
		if e.Stored == nil {
			line += " (key)"
		}
		l.story = append(l.story, line)
	}
	if e.Cursor != "" {
		l.cursor = e.Cursor
	}
}

// settled reports whether the last cursor is at a position or behind it, and of no transition.
func (l *rebuilt) settled(at backend.Position) bool {
	now, stamp, err := query.ParseChangeCursor(l.cursor)
	if err != nil || stamp == "unfinished" {
		return false
	}
	for i := range at.Shards() {
		if now.Shard(i).Compare(at.Shard(i)) < 0 {
			return false
		}
	}
	return true
}

// settle takes events until all that has happened was told, and returns what was told.
func (l *rebuilt) settle(f *servicetest.Fixture) string {
	l.t.Helper()
	at := positionOf(l.t, f)
	l.cursor = ""
	for !l.settled(at) {
		if err := l.take(); err != nil {
			l.t.Fatalf("%s: %v", l.caller.Identity, err)
		}
	}
	story := strings.Join(l.story, "; ")
	l.story = nil
	return story
}

func positionOf(t *testing.T, f *servicetest.Fixture) backend.Position {
	t.Helper()
	p, err := f.Reader.List(access.WithCaller(context.Background(), servicetest.Admin()), query.ListRequest{Kind: "Widget", ChangeCursor: true, First: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := query.ParseChangeCursor(*p.ChangeCursor())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// reads is a rule that lets resources be watched and seen.
func reads(namespaces, names []string) access.Rule {
	return access.Rule{Kinds: []string{"Widget"}, Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbWatch, descriptor.VerbList}, Namespaces: namespaces, Names: names}
}

func TestRights_ARunningStreamFollowsTheRightsOfItsCaller(t *testing.T) {
	everywhere := []string{"*"}
	for name, c := range map[string]struct {
		before []access.Rule
		change func(f *servicetest.Fixture)
		// request of the stream beside the snapshot.
		request    change.Request
		want       string
		afterwards string // of a change of each resource
	}{
		"a namespace is gained": {
			before: []access.Rule{reads([]string{"a"}, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"a", "b"}, nil)) },
			want: "ADDED b/x; ADDED b/y", afterwards: "a/x a/y b/x b/y",
		},
		"a namespace is lost": {
			before: []access.Rule{reads([]string{"a", "b"}, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"a"}, nil)) },
			want: "DELETED b/x (key); DELETED b/y (key)", afterwards: "a/x a/y",
		},
		"a namespace is lost and another gained": {
			before: []access.Rule{reads([]string{"a"}, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"b"}, nil)) },
			want: "DELETED a/x (key); DELETED a/y (key); ADDED b/x; ADDED b/y", afterwards: "b/x b/y",
		},
		"a name is gained": {
			before: []access.Rule{reads([]string{"a"}, []string{"x"})}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"a"}, []string{"x", "y"})) },
			want: "ADDED a/y", afterwards: "a/x a/y",
		},
		"a name in all namespaces is lost": {
			before: []access.Rule{reads(nil, []string{"x", "y"})}, change: func(f *servicetest.Fixture) { f.Role("r", reads(nil, []string{"x"})) },
			want: "DELETED a/y (key); DELETED b/y (key)", afterwards: "a/x b/x",
		},
		"a name in all namespaces becomes a namespace": {
			before: []access.Rule{reads(nil, []string{"x"})}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"a"}, nil)) },
			want: "ADDED a/y; DELETED b/x (key)", afterwards: "a/x a/y",
		},
		"all becomes a namespace": {
			before: []access.Rule{reads(nil, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"b"}, nil)) },
			want: "DELETED a/x (key); DELETED a/y (key)", afterwards: "b/x b/y",
		},
		"the role is emptied": {
			before: []access.Rule{reads(nil, nil)}, change: func(f *servicetest.Fixture) {
				f.Role("r", access.Rule{Kinds: []string{"Site"}, Verbs: []descriptor.Verb{"*"}})
			},
			want: "DELETED a/x (key); DELETED a/y (key); DELETED b/x (key); DELETED b/y (key)",
		},
		"GET alone is lost": {
			before: []access.Rule{reads(nil, nil)},
			change: func(f *servicetest.Fixture) {
				f.Role("r", access.Rule{Kinds: []string{"Widget"}, Verbs: []descriptor.Verb{descriptor.VerbWatch}})
			},
			want: "DELETED a/x (key); DELETED a/y (key); DELETED b/x (key); DELETED b/y (key)",
		},
		"the binding is deleted": {
			before: []access.Rule{reads([]string{"a"}, nil)}, change: func(f *servicetest.Fixture) { f.DeleteWidget(kind.Identity{Kind: access.BindingKind, Name: "b"}) },
			want: "DELETED a/x (key); DELETED a/y (key)",
		},
		"a group is bound": {
			before: []access.Rule{reads([]string{"a"}, nil)},
			change: func(f *servicetest.Fixture) {
				f.Role("more", reads(nil, nil))
				f.Bind("group", access.Binding{Roles: []string{"more"}, Groups: []string{"token:g"}, Namespaces: []string{"b"}})
			},
			want: "ADDED b/x; ADDED b/y", afterwards: "a/x a/y b/x b/y",
		},
		"somebody else is bound": {
			before: []access.Rule{reads([]string{"a"}, nil)},
			change: func(f *servicetest.Fixture) {
				f.Bind("other", access.Binding{Roles: []string{"admin"}, Users: []string{"token:other"}, Namespaces: everywhere})
			},
			want: "", afterwards: "a/x a/y",
		},
		"what is gained does not match the filter": {
			before: []access.Rule{reads([]string{"a"}, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"b"}, nil)) },
			request: change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "x"}}}},
			want:    "DELETED a/x (key); ADDED b/x", afterwards: "",
		},
		"the stream is of one namespace": {
			before: []access.Rule{reads([]string{"a"}, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"a", "b"}, nil)) },
			request: change.Request{Namespace: new("a")}, want: "", afterwards: "a/x a/y",
		},
		"the stream is of one name": {
			before: []access.Rule{reads([]string{"a"}, nil)}, change: func(f *servicetest.Fixture) { f.Role("r", reads([]string{"b"}, nil)) },
			request: change.Request{Name: new("y")}, want: "DELETED a/y (key); ADDED b/y", afterwards: "b/y",
		},
	} {
		for _, snapshot := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, snapshot %v", name, snapshot), func(t *testing.T) {
				f := watched(t, servicetest.OpenMemory(t), 0)
				f.Role("r", c.before...)
				f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: everywhere})
				req := c.request
				req.Snapshot = snapshot
				if !snapshot { // it hears of all from the log
					req.After = new(query.ChangeCursor(positionOf(t, f), stampOf(t, f, "token:u")))
				}
				for _, id := range []kind.Identity{servicetest.WidgetIn("a", "x"), servicetest.WidgetIn("a", "y"), servicetest.WidgetIn("b", "x"), servicetest.WidgetIn("b", "y")} {
					f.UpsertWidget(id, id.Name)
				}
				l := listen(t, f, servicetest.As("token:u", "token:g"), req)
				l.settle(f)
				c.change(f)
				if got := l.settle(f); got != c.want {
					t.Errorf("told %q, want %q", got, c.want)
				}
				var want []string
				for _, id := range []kind.Identity{servicetest.WidgetIn("a", "x"), servicetest.WidgetIn("a", "y"), servicetest.WidgetIn("b", "x"), servicetest.WidgetIn("b", "y")} {
					f.UpsertWidget(id, "changed")
					if at := *id.Namespace + "/" + id.Name; slices.Contains(strings.Fields(c.afterwards), at) {
						want = append(want, "MODIFIED "+at)
					}
				}
				got := l.settle(f)
				if c.request.Filter == nil && got != strings.Join(want, "; ") {
					t.Errorf("then told %q, want %q", got, want)
				}
				if l.resets > 1 || l.resets == 1 != snapshot {
					t.Errorf("%d resets", l.resets)
				}
			})
		}
	}
}

func stampOf(t *testing.T, f *servicetest.Fixture, user string) string {
	t.Helper()
	rights, err := f.Reader.Rights(access.WithCaller(t.Context(), servicetest.As(user, "token:g")))
	if err != nil {
		t.Fatal(err)
	}
	return rights.Stamp()
}

// Nothing that was written after a loss is told, not even its name, and what was deleted before it is DELETED once.
func TestRights_ATransitionTellsNothingThatHappenedToWhatWasLost(t *testing.T) {
	f := watched(t, servicetest.OpenMemory(t), 0)
	f.Role("r", reads([]string{"a", "b"}, nil))
	f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
	for _, name := range []string{"kept", "removed", "changed"} {
		f.UpsertWidget(servicetest.WidgetIn("b", name), name)
	}
	l := listen(t, f, servicetest.As("token:u"), change.Request{Snapshot: true})
	l.settle(f)
	f.DeleteWidget(servicetest.WidgetIn("b", "removed"))
	f.UpsertWidget(servicetest.WidgetIn("b", "changed"), "more")
	f.Role("r", reads([]string{"a"}, nil))
	f.UpsertWidget(servicetest.WidgetIn("b", "secret"), "secret")
	f.UpsertWidget(servicetest.WidgetIn("b", "changed"), "secret")
	f.DeleteWidget(servicetest.WidgetIn("b", "kept"))
	if got, want := l.settle(f), "DELETED b/removed (key); DELETED b/changed (key); DELETED b/kept (key)"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A transition has several pages here, and the rights change again within one.
func TestRights_ATransitionTakesOverFromAnother(t *testing.T) {
	f := watched(t, servicetest.OpenMemory(t), 0)
	all := map[string]access.Rule{"b": reads([]string{"b"}, nil), "b and c": reads([]string{"b", "c"}, nil), "c": reads([]string{"c"}, nil), "a": reads([]string{"a"}, nil)}
	for _, namespace := range []string{"b", "c"} {
		for i := range 450 {
			f.UpsertWidget(servicetest.WidgetIn(namespace, fmt.Sprint("n", i)), "A")
		}
	}
	counts := map[string]int{"b": 450, "b and c": 900, "c": 450, "a": 0}
	f.Role("r", all["b"])
	f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
	l := listen(t, f, servicetest.As("token:u"), change.Request{Snapshot: true, Kinds: []string{"Widget"}})
	for round, steps := range [][]string{{"b", "a", "b"}, {"b", "c", "b and c"}, {"b", "b and c", "a"}, {"b and c", "a", "c", "b"}, {"c", "b", "a", "b and c"}} {
		for _, taken := range []int{1, 150, 200, 201, 410} {
			f.Role("r", all[steps[0]])
			l.settle(f)
			for i, next := range steps[1:] {
				f.Role("r", all[next])
				f.UpsertWidget(servicetest.WidgetIn("b", fmt.Sprint("n", 7*i)), fmt.Sprint(round, taken))
				if i < len(steps)-2 {
					for range taken {
						if err := l.take(); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			l.settle(f)
			if want := counts[steps[len(steps)-1]]; len(l.has) != want || l.resets > 1 {
				t.Fatalf("%v, the next after %d events: %d are known after %d resets, want %d", steps, taken, len(l.has), l.resets, want)
			}
		}
	}
}

// What is lost and DELETED because of a change that was on its way is ADDED again with the rights, once.
func TestRights_WhatWasLostAndIsRegainedMeanwhileIsAddedAgain(t *testing.T) {
	f := watched(t, servicetest.OpenMemory(t), 0)
	with, without := reads([]string{"a", "b"}, nil), reads([]string{"a"}, nil)
	f.Role("r", with)
	f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
	f.UpsertWidget(servicetest.WidgetIn("b", "x"), "x")
	f.UpsertWidget(servicetest.WidgetIn("b", "y"), "y")
	l := listen(t, f, servicetest.As("token:u"), change.Request{Snapshot: true})
	l.settle(f)
	f.UpsertWidget(servicetest.WidgetIn("b", "x"), "more")
	f.UpsertWidget(servicetest.WidgetIn("b", "y"), "more")
	f.Role("r", without)
	for i, next := range []access.Rule{with, without, with} {
		for heard := len(l.story); len(l.story) == heard; {
			if err := l.take(); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 && !strings.HasPrefix(l.story[len(l.story)-1], "ADDED") { // the other one was on its way
			if err := l.take(); err != nil {
				t.Fatal(err)
			}
		}
		f.Role("r", next)
	}
	if story := l.settle(f); len(l.has) != 2 || strings.Count(story, "ADDED") != 3 || strings.Count(story, "DELETED") != 3 {
		t.Errorf("told %s", story)
	}
}

func TestRights_IdleStreamsOfAllGatewaysHearOfAChangeOfRightsWithinTwoSeconds(t *testing.T) {
	store := servicetest.OpenMemory(t)
	gateways := []*servicetest.Fixture{servicetest.Guarded(t, store, 0, servicetest.Widget()), servicetest.Guarded(t, store, 0, servicetest.Widget())}
	f := gateways[0]
	f.Role("r", reads([]string{"a"}, nil))
	f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
	f.UpsertWidget(servicetest.WidgetIn("a", "x"), "x")
	var streams []*change.Stream
	for _, g := range gateways {
		s, err := g.Feed.Changes(access.WithCaller(t.Context(), servicetest.As("token:u")), change.Request{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		servicetest.Take(t, s, 1)
		streams = append(streams, s)
	}
	f.DeleteWidget(kind.Identity{Kind: access.BindingKind, Name: "b"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for i, s := range streams {
		events, err := s.Next(ctx)
		if err != nil || events[0].Type != change.Deleted || events[0].Key.Name != "x" || events[0].Stored != nil {
			t.Errorf("gateway %d: %v %v", i, events, err)
		}
	}
}

func TestRights_ACursorOfOtherRightsHasExpired(t *testing.T) {
	store := servicetest.OpenMemory(t)
	gateways := []*servicetest.Fixture{watched(t, store, 0), watched(t, store, 0)}
	f := gateways[0]
	f.Role("r", reads([]string{"a"}, nil))
	f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
	f.UpsertWidget(servicetest.WidgetIn("a", "x"), "x")
	l := listen(t, f, servicetest.As("token:u"), change.Request{Snapshot: true})
	l.settle(f)
	page, err := f.Reader.List(access.WithCaller(t.Context(), servicetest.As("token:u")), query.ListRequest{Kind: "Widget", ChangeCursor: true})
	if err != nil {
		t.Fatal(err)
	}
	f.UpsertWidget(servicetest.WidgetIn("a", "y"), "y")
	for _, cursor := range []string{l.cursor, *page.ChangeCursor()} {
		other := listen(t, gateways[1], servicetest.As("token:u"), change.Request{After: &cursor, Snapshot: true})
		if got := other.settle(f); got != "ADDED a/y" || other.resets > 0 {
			t.Errorf("at another gateway after %s: %q, %d resets", cursor, got, other.resets)
		}
	}
	f.Role("r", reads([]string{"b"}, nil))
	for _, cursor := range []string{l.cursor, *page.ChangeCursor()} {
		other := listen(t, gateways[1], servicetest.As("token:u"), change.Request{After: &cursor, Snapshot: true})
		if got := other.settle(f); got != "" || other.resets != 1 {
			t.Errorf("with other rights after %s: %q, %d resets", cursor, got, other.resets)
		}
		_, err := gateways[1].Feed.Changes(access.WithCaller(t.Context(), servicetest.As("token:u")), change.Request{After: &cursor})
		if e := servicetest.WantCode(t, err, failure.CodePositionExpired); !strings.Contains(e.Message, "what you may see has changed") {
			t.Error(e.Message)
		}
	}
	unlimited := listen(t, f, servicetest.Admin(), change.Request{})
	if unlimited.settle(f); strings.Contains(unlimited.cursor, ".") {
		t.Errorf("cursor of an administrator: %s", unlimited.cursor)
	}
}

func TestRights_ATransitionOfAKindThatIsNotInMemoryBeginsAnew(t *testing.T) {
	f := watched(t, servicetest.OpenMemory(t), -1)
	f.Role("r", reads([]string{"a"}, nil))
	f.Bind("b", access.Binding{Roles: []string{"r"}, Users: []string{"token:u"}, Namespaces: []string{"*"}})
	f.UpsertWidget(servicetest.WidgetIn("a", "x"), "x")
	f.UpsertWidget(servicetest.WidgetIn("b", "x"), "x")
	with := listen(t, f, servicetest.As("token:u"), change.Request{Snapshot: true})
	without := listen(t, f, servicetest.As("token:u"), change.Request{})
	with.settle(f)
	without.settle(f)
	f.Role("r", reads([]string{"b"}, nil))
	if got := with.settle(f); got != "SNAPSHOT b/x" || with.resets != 2 {
		t.Errorf("told %q, %d resets", got, with.resets)
	}
	var err error
	for err == nil {
		err = without.take()
	}
	servicetest.WantCode(t, err, failure.CodePositionExpired)
}
