package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/memory"
)

// furnished returns a file of a store that has a record of each sort.
func furnished(t testing.TB) []byte {
	t.Helper()
	store := openMemory(t)
	furnish(t, store, ring(t, "k"))
	return export(t, store, ring(t, "k"), Sealed)
}

func TestBootstrap_LeavesAStoreWithResourcesAlone(t *testing.T) {
	file := furnished(t)
	for _, kind := range []string{"Net", "_sensitive.Net"} {
		store := openMemory(t)
		apply(t, store, put(key(kind, "a"), `{}`))
		if err := fill(t.Context(), store, ring(t, "k"), file); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestBootstrap_LeavesAStoreThatWasFilledAsItIs(t *testing.T) {
	store := openMemory(t)
	if err := fill(t.Context(), store, ring(t, "k"), furnished(t)); err != nil {
		t.Fatal(err)
	}
	apply(t, store, backend.Action{Key: key("Net", "a"), Op: backend.OpDelete})
	filled, err := Bootstrap(t.Context(), BootstrapConfig{Store: store, Open: func() (io.ReadCloser, error) {
		return nil, errors.New("the file is gone")
	}})
	if filled || err != nil || Whole(t.Context(), store) != nil {
		t.Errorf("%v %v", filled, err)
	}
	if got, err := store.Get(t.Context(), key("Net", "a")); err != nil || got[0] != nil {
		t.Errorf("%v %v", got, err)
	}
}

func TestBootstrap_ChecksAllBeforeItBegins(t *testing.T) {
	file := furnished(t)
	changed := bytes.Clone(file)
	changed[len(file)/2] ^= 1
	shards := openRedis(t, 16)
	for name, c := range map[string]struct {
		store backend.Store
		keys  string
		file  []byte
		says  string
	}{
		"a file that is cut":      {openMemory(t), "k", file[:len(file)-3], "it has no end line"},
		"a file that is changed":  {openMemory(t), "k", changed, "its checksum does not match"},
		"a key that is not given": {openMemory(t), "other", file, "encrypted with the key k, which is not given"},
		"a guarded reference to a GLOBAL kind in a store with shards": {shards, "k", guardedFile(t), "use one with one shard"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fill(t.Context(), c.store, ring(t, c.keys), c.file)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			if record, stored, err := readRecord(t.Context(), c.store); stored != nil || err != nil {
				t.Errorf("it has begun: %+v %v", record, err)
			}
		})
	}
}

// guardedFile returns a file with resources that are bound to a GLOBAL one.
func guardedFile(t *testing.T) []byte {
	store := openMemory(t)
	zone := backend.Key{Kind: "Zone", Name: "z"}
	apply(t, store, put(zone, `{}`))
	for i := range 20 {
		a := put(backend.Key{Kind: "Net", Namespace: fmt.Sprint("ns-", i), Name: "a"}, `{}`)
		a.Put.Declared = "d"
		a.Put.Refs = []backend.Ref{{Key: zone, Bound: true}}
		apply(t, store, a)
	}
	return export(t, store, nil, Sealed)
}

func TestBootstrap_RefusesTheCataloguesThatTheOldStoreRefused(t *testing.T) {
	store := openMemory(t)
	if err := fill(t.Context(), store, ring(t, "k"), furnished(t)); err != nil {
		t.Fatal(err)
	}
	shown := kinds()
	for i := range shown {
		for j := range shown[i].Spec.Fields {
			shown[i].Spec.Fields[j].WriteOnly = false
		}
	}
	var refused *catalogue.RefusedError
	err := catalogue.Gate{Store: store}.Accept(t.Context(), catalogue.Candidate{Kinds: shown})
	if !errors.As(err, &refused) {
		t.Errorf("what was once @writeOnly would be shown: %v", err)
	}
	if err := (catalogue.Gate{Store: store}).Accept(t.Context(), catalogue.Candidate{Kinds: kinds()}); err != nil {
		t.Errorf("%v", err)
	}
}

func TestBootstrap_WithoutSecretsBeginsWithEmptyOnes(t *testing.T) {
	source, store := openMemory(t), openMemory(t)
	furnish(t, source, ring(t, "k"))
	if err := fill(t.Context(), store, nil, export(t, source, nil, None)); err != nil {
		t.Fatal(err)
	}
	if err := (catalogue.Gate{Store: store}).Accept(t.Context(), catalogue.Candidate{Kinds: kinds()}); err != nil {
		t.Errorf("the store does not begin: %v", err)
	}
}

func TestBootstrap_FillsAStoreThatAGatewayHasServedWithoutResources(t *testing.T) {
	source, store, keys := openMemory(t), openMemory(t), ring(t, "k")
	furnish(t, source, keys)
	acceptKinds(t, store)
	apply(t, store, put(backend.Key{Kind: reconcileKind, Name: "shard-0"}, `{}`))
	file := export(t, source, keys, Sealed)
	if err := fill(t.Context(), store, keys, file); err != nil {
		t.Fatal(err)
	}
	same(t, export(t, store, keys, Sealed), file, keys)
}

func TestBootstrap_SealsPlainSecretsWithTheKeysOfTheStore(t *testing.T) {
	source, store, keys := openMemory(t), openMemory(t), ring(t, "new")
	furnish(t, source, nil)
	if err := fill(t.Context(), store, keys, export(t, source, nil, Plain)); err != nil {
		t.Fatal(err)
	}
	got, err := store.Get(t.Context(), key("Secret", "s").Sensitive())
	if err != nil || got[0] == nil || !keys.Current(got[0].Body) {
		t.Fatalf("%v %v", got, err)
	}
	if body, err := keys.Open(got[0].Key, got[0].UID, got[0].Body); err != nil || !bytes.Contains(body, []byte(planted)) {
		t.Errorf("%s %v", body, err)
	}
}

// manyFile returns a file with many resources in several namespaces, and how many.
func manyFile(t testing.TB) (file []byte, count int) {
	store := openMemory(t)
	for ns := range 5 {
		for i := 0; i < 300; i += 50 {
			var actions []backend.Action
			for j := range 50 {
				k := backend.Key{Kind: "Net", Namespace: fmt.Sprint("ns-", ns), Name: fmt.Sprintf("n%03d", i+j)}
				actions = append(actions, put(k, `{"spec":{}}`))
			}
			apply(t, store, actions...)
		}
	}
	return export(t, store, nil, Sealed), 1500
}

// killed is a store whose handle is taken away after some batches, as that of a process that is killed.
type killed struct {
	backend.Store
	left atomic.Int32
}

var errKilled = errors.New("killed")

func (k *killed) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if k.left.Add(-1) < 0 {
		return backend.Result{}, errKilled
	}
	return k.Store.Apply(ctx, b)
}

func TestBootstrap_GoesOnWhereItWasInterrupted(t *testing.T) {
	file, _ := manyFile(t)
	other := guardedFile(t)
	step := int32(1)
	if testing.Short() {
		step = 6
	}
	for left := int32(0); left < 26; left += step {
		store := openMemory(t)
		broken := &killed{Store: store}
		broken.left.Store(left)
		if err := fill(t.Context(), broken, nil, file); !errors.Is(err, errKilled) {
			t.Fatalf("after %d batches: %v", left, err)
		}
		if left == 0 {
			continue
		}
		if err := Whole(t.Context(), store); !errors.Is(err, ErrBegun) {
			t.Fatalf("after %d batches it is served: %v", left, err)
		}
		if err := fill(t.Context(), store, nil, other); !errors.Is(err, ErrBegun) {
			t.Fatalf("it goes on with another file: %v", err)
		}
		if err := fill(t.Context(), store, nil, file); err != nil {
			t.Fatal(err)
		}
		if err := Whole(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		same(t, export(t, store, nil, Sealed), file, nil)
	}
}

func TestBootstrap_TwoAtOnceFillTheStoreOnce(t *testing.T) {
	file, count := manyFile(t)
	for name, store := range map[string]backend.Store{"memory": openMemory(t), "Redis": openRedis(t, 1)} {
		t.Run(name, func(t *testing.T) {
			from, err := store.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if err := fill(t.Context(), store, nil, file); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			same(t, export(t, store, nil, Sealed), file, nil)
			if n := len(changedSince(t, store, from)); n != count {
				t.Errorf("%d resources were written, want %d", n, count)
			}
		})
	}
}

// held is a store of which one batch of records waits.
type held struct {
	backend.Store
	once    sync.Once
	caught  chan struct{}
	deliver chan struct{}
	failed  atomic.Pointer[error]
}

// Shard implements [backend.Sharder].
func (h *held) Shard(namespace string) int { return backend.ShardOf(h.Store, namespace) }

func (h *held) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	mine := false
	if len(b.Actions) > 2 {
		h.once.Do(func() { mine = true })
	}
	if mine {
		close(h.caught)
		<-h.deliver
	}
	res, err := h.Store.Apply(ctx, b)
	if mine {
		h.failed.Store(&err)
	}
	return res, err
}

func TestBootstrap_NothingComesBackThatWasDeletedOnceTheStoreIsServed(t *testing.T) {
	file, count := manyFile(t)
	for name, store := range map[string]backend.Store{
		"memory": openMemory(t), "Redis": openRedis(t, 1), "Redis, shards": openRedis(t, 4),
	} {
		t.Run(name, func(t *testing.T) {
			late := &held{Store: store, caught: make(chan struct{}), deliver: make(chan struct{})}
			ended := make(chan error, 1)
			go func() { ended <- fill(t.Context(), late, nil, file) }()
			<-late.caught
			if err := fill(t.Context(), store, nil, file); err != nil {
				t.Fatal(err)
			}
			// Everything is deleted as soon as the store may be served.
			removed := 0
			position, err := store.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for shard := range position.Shards() {
				for page, err := range backend.Pages(t.Context(), store, backend.Range{Shard: shard + 1, Limit: 100}) {
					if err != nil {
						t.Fatal(err)
					}
					for _, one := range page.Resources {
						if !one.Internal() {
							apply(t, store, backend.Action{Key: one.Key, Op: backend.OpDelete})
							removed++
						}
					}
				}
			}
			close(late.deliver)
			if err := <-ended; err != nil {
				t.Errorf("the other gateway: %v", err)
			}
			if failed := late.failed.Load(); failed == nil || *failed == nil {
				t.Error("the late batch was applied")
			}
			if err := empty(t.Context(), store); err != nil || removed != count {
				t.Errorf("%d were removed, %v", removed, err)
			}
		})
	}
}

func TestBootstrap_LeavesOutWhatHasExpiredMeanwhile(t *testing.T) {
	source := openMemory(t)
	soon := put(key("Net", "soon"), `{}`)
	soon.Put.ExpiresAt = time.Now().Add(time.Hour)
	apply(t, source, soon, put(key("Net", "stays"), `{}`))
	file := export(t, source, nil, Sealed)
	store, err := memory.Open(memory.Config{Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := fill(t.Context(), store, nil, file); err != nil {
		t.Fatal(err)
	}
	got := contents(t, export(t, store, nil, Sealed), nil)
	if len(got) != 1 || got["Net/default/stays"] == "" {
		t.Errorf("%v", got)
	}
}

// TestBootstrap_KeepsMirrorsAsMirrors: the tag of the owner is in the file and in the new store, whose record of
// catalogues still has the owner.
func TestBootstrap_KeepsMirrorsAsMirrors(t *testing.T) {
	const mirrored = `{"version":"v1","metadata":{"generation":3,"updatedBy":"service:crm","owner":{"tag":"t-7"}},"spec":{"size":1}}`
	owned := kinds()
	owned[0].Service = "crm"
	source, store := openMemory(t), openMemory(t)
	if err := (catalogue.Gate{Store: source}).Accept(t.Context(), catalogue.Candidate{Kinds: owned}); err != nil {
		t.Fatal(err)
	}
	at := key(owned[0].Name, "a")
	apply(t, source, put(at, mirrored))
	if err := fill(t.Context(), store, ring(t, "k"), export(t, source, ring(t, "k"), Sealed)); err != nil {
		t.Fatal(err)
	}
	got, err := store.Get(t.Context(), at)
	if err != nil || got[0] == nil {
		t.Fatalf("%v %v", got, err)
	}
	if body, err := backend.DecodeBody(got[0].Body); err != nil || string(body) != mirrored {
		t.Errorf("%s %v", body, err)
	}
	var refused *catalogue.RefusedError
	err = catalogue.Gate{Store: store}.Accept(t.Context(), catalogue.Candidate{Kinds: kinds(), AllowBreaking: true})
	if !errors.As(err, &refused) || !refused.Owners {
		t.Errorf("a catalogue without the service: %v", err)
	}
	if err := (catalogue.Gate{Store: store}).Accept(t.Context(), catalogue.Candidate{Kinds: owned}); err != nil {
		t.Error(err)
	}
}

func TestBootstrap_RefusesASharedStoreThatAGatewayMayServe(t *testing.T) {
	store := openMemory(t)
	acceptKinds(t, store)
	file := furnished(t)
	cfg := BootstrapConfig{Store: store, Open: opener(file), Keys: ring(t, "k"), Shared: true}
	if _, err := Bootstrap(t.Context(), cfg); !errors.Is(err, ErrServed) {
		t.Errorf("%v", err)
	}
	if _, stored, err := readRecord(t.Context(), store); stored != nil || err != nil {
		t.Errorf("it has begun: %v", err)
	}
	// A bootstrap stores the catalogues of its file, too: that is no reason to refuse the next gateway.
	source := openMemory(t)
	acceptKinds(t, source)
	for i := range 20 { // each is a batch, and the gateway that begins again accepts any of them
		apply(t, source, put(backend.Key{Kind: "Net", Namespace: fmt.Sprint("ns-", i), Name: "a"}, `{"spec":{}}`))
	}
	cfg.Open = opener(export(t, source, nil, Sealed))
	store = openMemory(t)
	broken := &killed{Store: store}
	broken.left.Store(3)
	cfg.Store = broken
	if _, err := Bootstrap(t.Context(), cfg); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	acceptKinds(t, store)
	cfg.Store = store
	if filled, err := Bootstrap(t.Context(), cfg); !filled || err != nil {
		t.Errorf("%v %v", filled, err)
	}
}

func TestBootstrap_GoesOnWithAnotherFileOfTheSameSource(t *testing.T) {
	source := openMemory(t)
	apply(t, source, put(key("Net", "a"), `{}`), put(key("Net", "b"), `{}`))
	files := make([][]byte, 2)
	for i := range files {
		var out bytes.Buffer
		if _, err := Export(t.Context(), ExportConfig{Store: source, Repeatable: true}, &out); err != nil {
			t.Fatal(err)
		}
		files[i] = out.Bytes()
	}
	if bytes.Equal(files[0], files[1]) {
		t.Fatal("the files do not differ")
	}
	store := openMemory(t)
	broken := &killed{Store: store}
	broken.left.Store(1)
	if err := fill(t.Context(), broken, nil, files[0]); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if err := fill(t.Context(), store, nil, files[1]); err != nil {
		t.Fatal(err)
	}
	same(t, export(t, store, nil, Sealed), files[0], nil)
	apply(t, source, put(key("Net", "c"), `{}`))
	var later bytes.Buffer
	if _, err := Export(t.Context(), ExportConfig{Store: source, Repeatable: true}, &later); err != nil {
		t.Fatal(err)
	}
	store = openMemory(t)
	broken = &killed{Store: store}
	broken.left.Store(1)
	if err := fill(t.Context(), broken, nil, files[0]); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if err := fill(t.Context(), store, nil, later.Bytes()); !errors.Is(err, ErrBegun) {
		t.Errorf("it goes on with what was stored later: %v", err)
	}
}
