package redis_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// sumWorld is a store with one resource whose record uses every field.
type sumWorld struct {
	*testing.T
	*redis.Store
	client goredis.UniversalClient
	prefix string
	begin  backend.Position
	key    backend.Key
}

func newSumWorld(t *testing.T) *sumWorld {
	t.Helper()
	s := server.Server(t)
	w := &sumWorld{T: t, client: s.Client(), prefix: redistest.Prefix(), key: backend.Key{Kind: "Net", Namespace: "ns", Name: "all"}}
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Prefix: w.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	w.Store = st
	if w.begin, err = st.Position(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *sumWorld) item(k backend.Key) string { return w.prefix + "i:{0}:" + string(k.Append(nil)) }

// put writes the resource with a body. change is empty for the first put.
func (w *sumWorld) put(body, change string, at backend.Revision) backend.Revision {
	w.Helper()
	a := backend.Action{Key: w.key, Op: backend.OpPut, If: backend.Condition{Revision: at}, Put: backend.Put{
		UID: "uid", Body: backend.EncodeBody([]byte(body)), ExpiresAt: w.Now().Add(time.Hour), Declared: "declared",
		Finalizers: new(1), Refs: []backend.Ref{toTarget(w.key)}, Change: []byte(change),
	}}
	res, err := w.Apply(w.Context(), batchOf(w.Store, a))
	if err != nil {
		w.Fatal(err)
	}
	return res.Revisions[0]
}

// entries returns the log, without the entries that begin epochs.
func (w *sumWorld) entries() []goredis.XMessage {
	w.Helper()
	all, err := w.client.XRange(w.Context(), w.prefix+"c:{0}", "-", "+").Result()
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(all, func(m goredis.XMessage) bool { return strings.HasSuffix(m.ID, "-0") })
}

func flipped(text string, bit int) string {
	b := []byte(text)
	b[bit/8] ^= 1 << (bit % 8)
	return string(b)
}

func TestSum_AnyFlippedBitOfARecordIsFound(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	w.put(`{"spec":{}}`, "", backend.Revision{})
	record := w.client.Get(t.Context(), w.item(w.key)).Val()
	if _, err := redis.DecodeRecord(w.key, record); err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(record) {
		for name, decode := range map[string]func(backend.Key, string) (*backend.Resource, error){
			"whole": redis.DecodeRecord, "bare": redis.DecodeBare,
		} {
			if _, err := decode(w.key, flipped(record, bit)); !errors.Is(err, backend.ErrUnreadable) {
				t.Fatalf("%s, with bit %d flipped: %v", name, bit, err)
			}
		}
	}
	other := w.key
	other.Name = "other"
	if _, err := redis.DecodeRecord(other, record); !errors.Is(err, backend.ErrUnreadable) {
		t.Errorf("under the key of another: %v", err)
	}
}

func TestSum_AnyFlippedBitOfALogEntryIsFound(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	first := w.put(`{"spec":{}}`, "", backend.Revision{})
	w.put(`{"spec":{"a":1}}`, "a change", first)
	for _, m := range w.entries() {
		want, ok, err := redis.DecodeEntry(m.ID, m.Values)
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		for field, value := range m.Values {
			text := value.(string)
			for bit := range 8 * len(text) {
				m.Values[field] = flipped(text, bit)
				if e, ok, err := redis.DecodeEntry(m.ID, m.Values); !errors.Is(err, backend.ErrPositionExpired) {
					t.Fatalf("with bit %d of %q flipped: %v, %v, %v", bit, field, e, ok, err)
				}
			}
			m.Values[field] = text
			if text == "" {
				continue
			}
			delete(m.Values, field)
			if _, _, err := redis.DecodeEntry(m.ID, m.Values); !errors.Is(err, backend.ErrPositionExpired) {
				t.Errorf("without %q: %v", field, err)
			}
			m.Values[field] = text
		}
		if _, _, err := redis.DecodeEntry(m.ID+"0", m.Values); !errors.Is(err, backend.ErrPositionExpired) {
			t.Errorf("under another revision: %v", err)
		}
		if again, _, err := redis.DecodeEntry(m.ID, m.Values); err != nil || !cmp.Equal(again, want) {
			t.Errorf("the entry is left as %v, %v", again, err)
		}
	}
}

// The script judges by the header, so a flipped bit of it must not let a batch through.
func TestSum_TheScriptJudgesNothingByADamagedHeader(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	w.put(`{"spec":{}}`, "", backend.Revision{})
	record := w.client.Get(t.Context(), w.item(w.key)).Val()
	header := len(record) - len(backend.EncodeBody([]byte(`{"spec":{}}`)))
	del := backend.Action{Key: w.key, Op: backend.OpDelete, If: backend.Condition{Unfinalized: true, Unreferenced: true}}
	for bit := range 8 * header {
		w.client.Set(t.Context(), w.item(w.key), flipped(record, bit), 0)
		_, err := w.Apply(t.Context(), batchOf(w.Store, del))
		if !errors.Is(err, backend.ErrUnreadable) {
			t.Fatalf("with bit %d flipped: %v", bit, err)
		}
	}
	w.client.Set(t.Context(), w.item(w.key), record, 0)
	if _, err := w.Apply(t.Context(), batchOf(w.Store, del)); !errors.Is(err, backend.ErrFinalized) {
		t.Errorf("without damage: %v", err)
	}
}

func TestSum_AResourceWithADamagedBodyIsUnreadableAndCanBeDeleted(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	w.put(`{"spec":{}}`, "", backend.Revision{})
	record := w.client.Get(t.Context(), w.item(w.key)).Val()
	w.client.Set(t.Context(), w.item(w.key), flipped(record, 8*len(record)-3), 0)
	if _, err := w.Get(t.Context(), w.key); !errors.Is(err, backend.ErrUnreadable) {
		t.Errorf("it is read: %v", err)
	}
	page, err := w.Range(t.Context(), backend.Range{Kind: "Net", Limit: 10})
	if err != nil || len(page.Resources) != 0 || !slices.Equal(page.Unreadable, []backend.Key{w.key}) || w.Unreadable() != 1 {
		t.Errorf("a range: %v, %v; %d are counted", page, err, w.Unreadable())
	}
	check := batchOf(w.Store, backend.Action{Key: w.key, Op: backend.OpCheck, If: backend.Condition{Presence: backend.Present}},
		backend.Action{Key: backend.Key{Kind: "Net", Namespace: "ns", Name: "b"}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}})
	if res, err := w.Apply(t.Context(), check); err != nil || res.Resources[0] != nil {
		t.Errorf("a check that it is there: %v, %v", res, err)
	}
	res, err := w.Apply(t.Context(), batchOf(w.Store, backend.Action{Key: w.key, Op: backend.OpDelete}))
	if err != nil || !cmp.Equal(res.Resources[0], &backend.Resource{Key: w.key}) {
		t.Errorf("its delete: %v, %v", res.Resources, err)
	}
	events := changes(t, w.Store, w.begin, "Net")
	if last := events[len(events)-1]; last.Type != backend.Deleted || !cmp.Equal(last.Resource, &backend.Resource{Key: w.key}) {
		t.Errorf("the log has %+v", last)
	}
	if err := w.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// What leads to a resource is in the index as well. No flipped bit of a member that a guard is read from drops the
// guard: but for those that hide the member among others, which only a check finds.
func TestSum_ABadReferenceDropsNoGuard(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	target := backend.Key{Kind: "Target", Namespace: "ns", Name: "t"}
	w.key.Name = "referrer"
	put := func(k backend.Key, refs ...backend.Ref) {
		a := backend.Action{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}")), Declared: "d", Refs: refs}}
		if _, err := w.Apply(t.Context(), batchOf(w.Store, a)); err != nil {
			t.Fatal(err)
		}
	}
	put(target)
	ref := backend.Ref{Key: target, Bound: true}
	put(w.key, ref)
	index := w.prefix + "x:{0}"
	member := string(backend.AppendRefKey([]byte("r"), ref, w.key))
	own := len(w.key.Append(nil))
	del := func() backend.Batch { // each has a deadline
		return batchOf(w.Store, backend.Action{Key: target, Op: backend.OpDelete, If: backend.Condition{Unreferenced: true}})
	}
	for bit := 8 * (len(member) - own); bit < 8*len(member); bit++ {
		w.client.ZRem(t.Context(), index, member)
		w.client.ZAdd(t.Context(), index, goredis.Z{Member: flipped(member, bit)})
		if _, err := w.Apply(t.Context(), del()); !errors.Is(err, backend.ErrReferenced) {
			t.Fatalf("with bit %d flipped: %v", bit, err)
		}
		w.client.ZRem(t.Context(), index, flipped(member, bit))
		w.client.ZAdd(t.Context(), index, goredis.Z{Member: member})
	}
	for bit := range 8 * (len(member) - own) {
		w.client.ZRem(t.Context(), index, member)
		w.client.ZAdd(t.Context(), index, goredis.Z{Member: flipped(member, bit)})
		if err := w.Check(t.Context()); err == nil {
			t.Fatalf("with bit %d flipped the check finds nothing", bit)
		}
		w.client.ZRem(t.Context(), index, flipped(member, bit))
		w.client.ZAdd(t.Context(), index, goredis.Z{Member: member})
	}
}

// A flipped bit of a member of the expiries lets nothing expire early, and does not come up in every purge.
func TestSum_ABadExpiryRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	w.put("{}", "", backend.Revision{})
	index := w.prefix + "x:{0}"
	due := goredis.ZRangeArgs{Key: index, ByLex: true, Start: "[x", Stop: "(y"}
	member := w.client.ZRangeArgs(t.Context(), due).Val()[0]
	for bit := 8; bit < 8*len(member); bit++ {
		w.client.ZRem(t.Context(), index, member)
		w.client.ZAdd(t.Context(), index, goredis.Z{Member: flipped(member, bit)})
		for range 2 {
			if n, err := w.Purge(t.Context()); n != 0 || err != nil {
				t.Fatalf("with bit %d flipped, %d are purged, %v", bit, n, err)
			}
		}
		w.client.ZRem(t.Context(), index, flipped(member, bit))
		w.client.ZAdd(t.Context(), index, goredis.Z{Member: member})
	}
	if got, err := w.Get(t.Context(), w.key); err != nil || got[0] == nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestSum_NoStoreServesAChangedValue flips bits anywhere in the values of a store, again and again. Whatever is served
// then is what was written.
func TestSum_NoStoreServesAChangedValue(t *testing.T) {
	t.Parallel()
	w := newSumWorld(t)
	want := map[backend.Key]*backend.Resource{}
	for i := range 40 {
		w.key.Name = fmt.Sprint("k", i)
		rev := w.put(fmt.Sprintf(`{"spec":{"title":%q}}`, strings.Repeat(w.key.Name, 20)), "", backend.Revision{})
		if i%2 == 0 {
			w.put(fmt.Sprintf(`{"spec":{"title":%q}}`, strings.Repeat(w.key.Name, 21)), "a change", rev)
		}
		got, err := w.Get(t.Context(), w.key)
		if err != nil {
			t.Fatal(err)
		}
		want[w.key] = got[0]
	}
	stores := 200
	if testing.Short() {
		stores = 30
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	unreadable, served := 0, 0
	for range stores {
		broken := map[backend.Key]bool{}
		pipe := w.client.Pipeline()
		var restore []func()
		for k := range want {
			if rnd.IntN(5) > 0 {
				continue
			}
			broken[k] = true
			record := w.client.Get(t.Context(), w.item(k)).Val()
			bad := record
			for range 1 + rnd.IntN(3) {
				bad = flipped(bad, rnd.IntN(8*len(bad)))
			}
			if bad == record {
				broken[k] = false
			}
			pipe.Set(t.Context(), w.item(k), bad, 0)
			restore = append(restore, func() { w.client.Set(t.Context(), w.item(k), record, 0) })
		}
		if _, err := pipe.Exec(t.Context()); err != nil && len(restore) > 0 {
			t.Fatal(err)
		}
		page, err := w.Range(t.Context(), backend.Range{Kind: "Net", Limit: backend.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Resources {
			served++
			if !cmp.Equal(r, want[r.Key]) {
				t.Errorf("seed %d: %s is served as %v", seed, r.Key, r)
			}
			delete(broken, r.Key)
		}
		for _, k := range page.Unreadable {
			unreadable++
			delete(broken, k)
		}
		if len(broken) > 0 {
			t.Errorf("seed %d: %v are missing without a sign", seed, broken)
		}
		for _, undo := range restore {
			undo()
		}
	}
	t.Logf("%d resources were served and %d reported as unreadable", served, unreadable)
}
