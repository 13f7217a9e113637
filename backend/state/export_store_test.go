package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
)

func TestExport_IsTheSameAfterAMoveToAnyOtherStore(t *testing.T) {
	keys := ring(t, "k")
	stores := map[string]func(testing.TB) backend.Store{
		"memory":           openMemory,
		"embedded":         openBolt,
		"Redis":            func(t testing.TB) backend.Store { return openRedis(t, 1) },
		"Redis, 16 shards": func(t testing.TB) backend.Store { return openRedis(t, 16) },
	}
	for from := range stores {
		source := stores[from](t)
		furnish(t, source, keys)
		file := export(t, source, keys, Sealed)
		for to := range stores {
			t.Run(from+" to "+to, func(t *testing.T) {
				store := stores[to](t)
				if err := fill(t.Context(), store, keys, file); err != nil {
					t.Fatal(err)
				}
				same(t, export(t, store, keys, Sealed), file, keys)
			})
		}
	}
}

func TestExport_HasNoSecretThatTheKeysDoNotOpen(t *testing.T) {
	store := openMemory(t)
	keys := ring(t, "k")
	furnish(t, store, nil) // stored in plain form: the keys are new
	has := func(file []byte) bool { return strings.Contains(strings.Join(unzipped(t, file), "\n"), planted) }
	if file := export(t, store, keys, Sealed); has(file) {
		t.Error("a sealed file has the secret")
	}
	none := export(t, store, nil, None)
	if has(none) {
		t.Error("a file without secrets has the secret")
	}
	if !has(export(t, store, nil, Plain)) {
		t.Error("a plain file lacks the secret")
	}
	_, err := Export(t.Context(), ExportConfig{Store: store, Keys: ring(t, "k").Plain()}, io.Discard)
	if !errors.Is(err, ErrNoKeys) {
		t.Errorf("with keys that decrypt alone: %v", err)
	}
	var written bytes.Buffer
	if _, err := Export(t.Context(), ExportConfig{Store: store}, &written); !errors.Is(err, ErrNoKeys) || written.Len() > 0 {
		t.Errorf("without keys: %v, %d bytes", err, written.Len())
	}
	got := contents(t, none, nil)
	if !strings.HasSuffix(got["_sensitive.Secret/default/s"], " j{}") || !strings.HasSuffix(got["Mailbox/default/m"], `j{"spec":{"user":"u"}}`) {
		t.Errorf("%s\n%s", got["_sensitive.Secret/default/s"], got["Mailbox/default/m"])
	}
}

func TestExport_RefusesAKindThatItDoesNotKnow(t *testing.T) {
	store := openMemory(t)
	apply(t, store, put(backend.Key{Kind: "_later", Name: "x"}, `{}`))
	if _, err := Export(t.Context(), ExportConfig{Store: store}, io.Discard); !errors.Is(err, backend.ErrFormat) {
		t.Errorf("%v", err)
	}
}

func TestExport_IsRefusedOnceTheLogIsGone(t *testing.T) {
	store, err := memory.Open(memory.Config{LogEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for i := range 2 * exportPage {
		apply(t, store, put(key("Net", fmt.Sprint(i)), `{}`))
	}
	writes := &meanwhile{Store: store, write: func() {
		for range 600 {
			apply(t, store, put(key("Net", "0"), `{"spec":{}}`))
		}
	}}
	_, err = Export(t.Context(), ExportConfig{Store: writes}, io.Discard)
	if !errors.Is(err, backend.ErrPositionExpired) || !strings.Contains(err.Error(), "retain-entries") {
		t.Errorf("%v", err)
	}
}

// TestExport_EndsWhileChangesAreMoreThanItsClientTakes makes ten bytes of changes for each byte that the client takes.
// The log has no more of them than come while the client takes a page.
func TestExport_EndsWhileChangesAreMoreThanItsClientTakes(t *testing.T) {
	store, err := memory.Open(memory.Config{LogEntries: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	random := rand.New(rand.NewPCG(1, 1))
	body := func(bytes int) string { // of which gzip makes at least half as many
		text := make([]byte, bytes/2)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		return fmt.Sprintf(`{"spec":{"mtu":"%x"}}`, text)
	}
	const hot = 20
	for i := range 4 * exportPage {
		apply(t, store, put(key("Net", fmt.Sprintf("%04d", i)), body(200)))
	}
	debt, changes := 0, 0
	client := writerFunc(func(p []byte) (int, error) {
		for debt += 10 * len(p); debt > 0; debt -= 200 {
			apply(t, store, put(key("Net", fmt.Sprintf("%04d", changes%hot)), body(200)))
			changes++
		}
		return len(p), nil
	})
	var file bytes.Buffer
	end, err := Export(t.Context(), ExportConfig{Store: store}, io.MultiWriter(&file, client))
	if err != nil {
		t.Fatal(err)
	}
	if end.Changes != hot || changes < 100*hot {
		t.Errorf("the file has %d changes of %d", end.Changes, changes)
	}
	checkPosition(t, store, file.Bytes())
}

// writerFunc is a function that is an [io.Writer].
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// meanwhile is a store that others write to while it is read.
type meanwhile struct {
	backend.Store
	write func()
}

func (m *meanwhile) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	page, err := m.Store.Range(ctx, r)
	m.write()
	return page, err
}

// TestExport_IsOneStateWhileOthersWrite writes resources and their sensitive values together, and expects the file to
// have them of one time, and all of them as they were at its position.
func TestExport_IsOneStateWhileOthersWrite(t *testing.T) {
	for name, open := range map[string]func(testing.TB) backend.Store{
		"memory": openMemory, "embedded": openBolt, "Redis": func(t testing.TB) backend.Store { return openRedis(t, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			acceptKinds(t, store)
			const most = 700
			for i := range most {
				writeNumbered(t, store, i, 0)
			}
			ctx, stop := context.WithCancel(t.Context())
			var writing sync.WaitGroup
			defer writing.Wait()
			defer stop()
			var written atomic.Int64
			begun := make(chan struct{})
			for w := range 3 {
				writing.Go(func() {
					// An export ends only if secrets change less often than it can read them.
					for n := 1; n <= 2*most && ctx.Err() == nil; n++ {
						writeNumbered(t, store, (n*7919+w*31)%most, n)
						if written.Add(1) == 1 {
							close(begun)
						}
					}
				})
			}
			<-begun
			var out bytes.Buffer
			// Few changes fit, so most are written before others follow.
			cfg := ExportConfig{Store: store, Keys: ring(t, "k"), pending: 4096}
			if _, err := Export(t.Context(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			file := out.Bytes()
			stop()
			writing.Wait()
			checkNumbered(t, file)
			checkPosition(t, store, file)
		})
	}
}

// writeNumbered writes the i-th resource with a number, or removes it.
func writeNumbered(t testing.TB, store backend.Store, i, n int) {
	body := fmt.Sprintf(`{"spec":{"n":%d}}`, n)
	actions := []backend.Action{put(key("Net", fmt.Sprint(i)), body)}
	if i%3 == 0 {
		at := key("Secret", fmt.Sprint(i))
		actions = []backend.Action{put(at, body), put(at.Sensitive(), body)}
	}
	if n%10 == 9 {
		for j := range actions {
			actions[j].Op = backend.OpDelete
			actions[j].Put = backend.Put{}
		}
	}
	_, err := store.Apply(t.Context(), batchOf(store, actions...))
	if err != nil && !errors.Is(err, backend.ErrNotFound) {
		t.Error(err)
	}
}

// checkNumbered expects sensitive values to be as old as their resources.
func checkNumbered(t *testing.T, file []byte) {
	t.Helper()
	keys := ring(t, "k")
	all := contents(t, file, keys)
	bodyOf := func(line string) string { return line[strings.LastIndex(line, "j{"):] }
	secrets := 0
	for name, line := range all {
		rest, isSecret := strings.CutPrefix(name, "Secret/")
		if isSecret {
			secrets++
			values, ok := all["_sensitive.Secret/"+rest]
			if !ok || bodyOf(values) != bodyOf(line) {
				t.Errorf("%s\nhas the values\n%s", line, values)
			}
		}
		if rest, isValues := strings.CutPrefix(name, "_sensitive.Secret/"); isValues && all["Secret/"+rest] == "" {
			t.Errorf("%s has no resource", name)
		}
	}
	if secrets == 0 {
		t.Error("there are no secrets")
	}
}

// checkPosition expects a file to have each resource as it was at its position.
func checkPosition(t *testing.T, store backend.Store, file []byte) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	has := map[backend.Key]backend.Revision{}
	for {
		l, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if verdictOf(l.Resource.Kind) != moved {
			continue
		}
		if has[l.Resource.Key] = l.Resource.Revision; l.Deleted {
			delete(has, l.Resource.Key)
		}
	}
	at, err := backend.ParsePosition(r.End().Position)
	if err != nil {
		t.Fatal(err)
	}
	changed := changedSince(t, store, at)
	for shard := range at.Shards() {
		for page, err := range backend.Pages(t.Context(), store, backend.Range{Shard: shard + 1, Limit: 100}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range page.Resources {
				if verdictOf(one.Kind) == moved && !changed[one.Key] && has[one.Key] != one.Revision {
					t.Errorf("%s is stored at %s, and the file has %s", one.Key, one.Revision, has[one.Key])
				}
				if !changed[one.Key] {
					delete(has, one.Key)
				}
			}
		}
	}
	for key, revision := range has {
		if !changed[key] {
			t.Errorf("the file has %s at %s, which was deleted before", key, revision)
		}
	}
}

// changedSince returns the keys that have changed since a position.
func changedSince(t *testing.T, store backend.Store, at backend.Position) map[backend.Key]bool {
	t.Helper()
	w, err := store.Watch(t.Context(), backend.Watch{From: at})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out := map[backend.Key]bool{}
	for {
		d, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Events {
			out[d.Events[i].Resource.Key] = true
		}
		if d.CaughtUp {
			return out
		}
	}
}

func TestExport_RefusesAStoreThatIsFilledInPart(t *testing.T) {
	file, _ := manyFile(t)
	store := openMemory(t)
	broken := &killed{Store: store}
	broken.left.Store(3)
	if err := fill(t.Context(), broken, nil, file); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Export(t.Context(), ExportConfig{Store: store}, &out); !errors.Is(err, ErrBegun) || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}
