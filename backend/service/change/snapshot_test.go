package change_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestSnapshot_APageIsFollowedByNothingThatItShows changes resources after a snapshot has taken
// its position and before it reads its first page: the log has changes that the page
// shows, or that are older.
func TestSnapshot_APageIsFollowedByNothingThatItShows(t *testing.T) {
	light := map[string]any{"spec": map[string]any{"weight": map[string]any{"lt": 300}}}
	for name, c := range map[string]struct {
		filter any
		want   string
	}{
		"of all":    {nil, "RESET; SNAPSHOT again; SNAPSHOT changed; SNAPSHOT heavy; SNAPSHOT lighter; SNAPSHOT new; IN_SYNC; DELETED again; MODIFIED changed; "},
		"of a part": {light, "RESET; SNAPSHOT again; SNAPSHOT changed; SNAPSHOT lighter; SNAPSHOT new; IN_SYNC; DELETED again; MODIFIED changed; "},
	} {
		for source, open := range map[string]func(*testing.T) *servicetest.Fixture{"from the store": servicetest.Setup, "from the index": servicetest.SetupIndexed} {
			t.Run(name+" "+source, func(t *testing.T) {
				f := open(t)
				write := func(name, spec string) {
					t.Helper()
					if _, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: servicetest.Named(name), Spec: map[string]any{"title": spec, "weight": map[string]int{"light": 100, "heavy": 400}[spec]}}); err != nil {
						t.Fatal(err)
					}
				}
				remove := func(name string) {
					t.Helper()
					if _, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: servicetest.Named(name)}); err != nil {
						t.Fatal(err)
					}
				}
				for _, name := range []string{"again", "changed", "gone", "heavy"} {
					write(name, "light")
				}
				write("lighter", "heavy")
				stream := f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: c.filter, Snapshot: true})
				got := servicetest.Take(t, stream, 1)
				write("changed", "heavy")
				write("heavy", "heavy")
				write("lighter", "light")
				remove("again")
				remove("gone")
				write("again", "light")
				write("new", "light")
				write("changed", "light")
				for synced := false; !synced; synced = got[len(got)-1].Type == change.InSync {
					got = append(got, servicetest.Take(t, stream, 1)...)
				}
				remove("again")
				f.Rewrite("changed", true, func(body map[string]any) { body["spec"].(map[string]any)["weight"] = 200 })
				if s := servicetest.Story(append(got, servicetest.Take(t, stream, 2)...)); s != c.want {
					t.Errorf("stream %s\nwant   %s", s, c.want)
				}
			})
		}
	}
}

// TestSnapshot_ASnapshotHasAllThatAFilterKeeps filters so that the index is read by the rows of
// the filter and not in the order of the names, for more than one step.
func TestSnapshot_ASnapshotHasAllThatAFilterKeeps(t *testing.T) {
	f := servicetest.SetupIndexed(t)
	const all, kept = 320, 230
	for i := range all {
		f.CreateWidget(fmt.Sprintf("n%03d", i*7%all), fmt.Sprintf(`{"title":"A","weight":%d}`, 100+i))
	}
	stream := f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"weight": map[string]any{"lt": 100 + kept}}}, Snapshot: true})
	got, last := 0, ""
	for synced := false; !synced; {
		for _, c := range servicetest.Take(t, stream, 1) {
			synced = c.Type == change.InSync
			if c.Type != change.Snapshot {
				continue
			}
			if got++; c.Stored.Name <= last {
				t.Errorf("%s comes after %s", c.Stored.Name, last)
			}
			last = c.Stored.Name
		}
	}
	if got != kept {
		t.Errorf("%d resources, want %d", got, kept)
	}
}
