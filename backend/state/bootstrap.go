package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/internal/wait"
)

// BootstrapConfig configures a [Bootstrap].
type BootstrapConfig struct {
	// Store is the store to fill. Required.
	Store backend.Store
	// Open opens the file. Required. It is called twice, or not at all if the store was filled before.
	Open func() (io.ReadCloser, error)
	// Checked is the result of [Check] for the file. Default: the file is checked before anything is written.
	Checked *Checked
	// Shared is set if other gateways may serve the store at the same time. Then a store that was ever served by a
	// gateway is refused, even if it has no resources, because the gateway may write to it at any time.
	Shared bool
	// Keys decrypt the encrypted records of the file, and encrypt the values of sensitive kinds in the store.
	Keys *keyring.Keyring
	// Logger receives a message when the store was filled. Default: no log.
	Logger *zap.Logger
	// Progress is called from time to time with the number of lines stored so far and the number of all lines. Default:
	// no calls.
	Progress func(done, of int)
	// Filled is called with the number of resources when the store is filled. Default: no call.
	Filled func(resources int)
	// lease limits the age of the last read of the bootstrap's record: a batch that cannot be conditional on the record
	// must be applied within this time after the read. Default: [defaultLease].
	lease time.Duration
}

// ErrBegun means that a bootstrap of the store was begun but not completed.
var ErrBegun = errors.New("a bootstrap of the store has begun and not ended: start again with the same --bootstrap file, or with an empty store")

// ErrNotEmpty means that the store to fill has resources.
var ErrNotEmpty = errors.New("the store has resources, and a bootstrap fills an empty one only: choose another store, or leave --bootstrap out")

// ErrServed means that the store to fill has no resources, but was served by a gateway.
var ErrServed = errors.New("the store has no resources, but gateways have served it, and one may write to it now: stop them all, then empty the store, or choose another redis-prefix")

// The states of the record of a bootstrap in the store:
//
//	(none) --begin--> begun --all records are stored--> ending --a lease later--> done
//
// Several gateways may fill the store from the same file at the same time. Each puts records only if they are absent.
// As soon as one gateway serves the store, none may put records any more, because an absent record may have been
// deleted by a caller. In the shard of the bootstrap's record, this is ensured by a condition: each batch requires the
// revision of that record. In other shards, a batch must be applied within a lease after its gateway has read the
// record. The state `ending` lasts for one lease, so that all such batches have been applied or refused.
const (
	stateBegun  = "begun"
	stateEnding = "ending"
	stateDone   = "done"
)

const (
	// bootstrapFormat is the version of the record.
	bootstrapFormat = 1
	// defaultLease is the default of BootstrapConfig.lease.
	defaultLease = 5 * time.Second
	// writeTimeout is how long the store may take to begin to write the record, or a batch that is conditional on it.
	writeTimeout = 10 * time.Second
	// restoreBytes is the maximum size of a batch in bytes.
	restoreBytes = 1 << 20
	// restoreWorkers is the number of batches that are sent at the same time.
	restoreWorkers = 8
	// patience is how long a batch is repeated while the store does not answer.
	patience = time.Minute
)

func bootstrapKey() backend.Key { return backend.Key{Kind: bootstrapKind, Name: "store"} }

// bootstrapRecord is the record of a bootstrap in the store. It is internal, so it has no log entries.
type bootstrapRecord struct {
	Format int    `json:"format"`
	State  string `json:"state"`
	// File identifies the file, see [Checked.identity].
	File string `json:"file"`
}

// readRecord returns the record of a store and the stored resource, which is nil if there is no record.
func readRecord(ctx context.Context, store backend.Store) (out bootstrapRecord, stored *backend.Resource, err error) {
	got, err := store.Get(ctx, bootstrapKey())
	if err != nil || got[0] == nil {
		return out, nil, err
	}
	raw, err := backend.DecodeBody(got[0].Body)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	switch {
	case err != nil:
		return out, nil, fmt.Errorf("the record of a bootstrap: %w: %w", backend.ErrUnreadable, err)
	case out.Format != bootstrapFormat:
		return out, nil, backend.FormatErrorf("the record of a bootstrap has format %d, this release knows %d", out.Format, bootstrapFormat)
	}
	return out, got[0], nil
}

// Whole returns [ErrBegun] if a bootstrap of the store was begun but not completed. Such a store must not be served.
func Whole(ctx context.Context, store backend.Store) error {
	record, stored, err := readRecord(ctx, store)
	if err == nil && stored != nil && record.State != stateDone {
		err = ErrBegun
	}
	return err
}

// Bootstrap fills a store without resources from a file, and reports whether it has done so. It does not change a store
// that was filled before, from this file or another one. After an interruption, the next call continues.
func Bootstrap(ctx context.Context, cfg BootstrapConfig) (filled bool, err error) {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	cfg.lease = cmp.Or(cfg.lease, defaultLease)
	record, stored, err := readRecord(ctx, cfg.Store)
	if err != nil || stored != nil && record.State == stateDone {
		return false, err
	}
	if stored == nil {
		if err := empty(ctx, cfg.Store); err != nil {
			return false, err
		}
	}
	shards, _ := cfg.Store.(backend.Sharder)
	b := &bootstrap{
		BootstrapConfig: cfg,
		to:              destination{shards: shards, keys: cfg.Keys},
		clock:           backend.ClockOf(cfg.Store),
		file:            cfg.Checked,
	}
	if b.file == nil {
		if b.file, err = Check(cfg.Open, cfg.Keys, shards); err != nil {
			return false, err
		}
	}
	if err := b.begin(ctx, record, stored); err != nil {
		return false, err
	}
	if err := b.restore(ctx); err != nil && !errors.Is(err, errDone) {
		return false, err
	}
	if err := b.finish(ctx); err != nil {
		return false, err
	}
	return true, nil
}

// CheckBootstrap returns the error with which [Bootstrap] would refuse the file or the store. It writes nothing. Use
// [Check] to check a file for a store that does not exist yet.
func CheckBootstrap(ctx context.Context, cfg BootstrapConfig) error {
	record, stored, err := readRecord(ctx, cfg.Store)
	if err != nil || stored != nil && record.State == stateDone {
		return err
	}
	if stored == nil {
		if err := empty(ctx, cfg.Store); err != nil {
			return err
		}
		if cfg.Shared {
			if err := unserved(ctx, cfg.Store); err != nil {
				return err
			}
		}
	}
	shards, _ := cfg.Store.(backend.Sharder)
	_, err = Check(cfg.Open, cfg.Keys, shards)
	return err
}

// unserved returns ErrServed if a gateway has served a store.
func unserved(ctx context.Context, store backend.Store) error {
	got, err := store.Get(ctx, catalogue.RecordKey())
	if err == nil && got[0] != nil {
		err = ErrServed
	}
	return err
}

// empty returns ErrNotEmpty if a store has resources.
func empty(ctx context.Context, store backend.Store) error {
	at, err := store.Position(ctx)
	if err != nil {
		return err
	}
	for shard := range at.Shards() {
		all := backend.Range{Shard: shard + 1, Limit: exportPage, KeysOnly: true}
		for page, err := range backend.Pages(ctx, store, all) {
			if err != nil {
				return err
			}
			if len(page.Unreadable) > 0 {
				return ErrNotEmpty
			}
			for _, one := range page.Resources {
				if v := verdictOf(one.Kind); v == moved || v == movedSensitive {
					return ErrNotEmpty
				}
			}
		}
	}
	return nil
}

type bootstrap struct {
	BootstrapConfig
	to    destination
	clock func() time.Time
	file  *Checked
	// resumed is set if some of the records are probably stored already.
	resumed bool
	// resources is the number of resources of the file that were stored, by this gateway or another one.
	resources int
	// begun is the revision of the record in the state begun.
	begun backend.Revision
	look  look
}

// errDone means that another gateway has completed the bootstrap.
var errDone = errors.New("the store is filled")

// begin creates the record, or continues with the existing one.
func (b *bootstrap) begin(ctx context.Context, record bootstrapRecord, stored *backend.Resource) error {
	b.resumed = stored != nil
	if stored == nil {
		want := bootstrapRecord{Format: bootstrapFormat, State: stateBegun, File: b.file.identity()}
		var unserved []backend.Action
		if b.Shared { // when a gateway starts, it creates this record before it looks for the record of the bootstrap
			unserved = []backend.Action{{Key: catalogue.RecordKey(), If: backend.Condition{Presence: backend.Absent}}}
		}
		failed := b.put(ctx, want, backend.Condition{Presence: backend.Absent}, unserved...)
		if failed != nil && !errors.Is(failed, backend.ErrExists) && !errors.Is(failed, backend.ErrUnknown) {
			return failed
		}
		b.resumed = failed != nil
		var err error
		if record, stored, err = readRecord(ctx, b.Store); err != nil {
			return err
		}
		if stored == nil {
			return absentReason(failed)
		}
	}
	if record.File != b.file.identity() {
		return fmt.Errorf("%w; it has begun with another file", ErrBegun)
	}
	b.begun = stored.Revision
	b.look.note(b.clock(), record.State == stateBegun)
	return nil
}

// absentReason returns why the record could not be created. failed is the error of the attempt.
func absentReason(failed error) error {
	var condition *backend.ConditionError
	if errors.As(failed, &condition) && condition.Key == catalogue.RecordKey() {
		return ErrServed
	}
	return fmt.Errorf("the record of the bootstrap is gone: %w", backend.ErrUnavailable)
}

// put writes the record if its condition and all checks hold.
func (b *bootstrap) put(
	ctx context.Context, record bootstrapRecord, condition backend.Condition, checks ...backend.Action,
) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	action := backend.Action{
		Key: bootstrapKey(), If: condition, Op: backend.OpPut,
		Put: backend.Put{UID: bootstrapKind, Body: backend.EncodeBody(raw)},
	}
	_, err = b.Store.Apply(ctx, backend.Batch{
		RequestID: newID(), Deadline: b.clock().Add(writeTimeout), Actions: append(checks, action),
	})
	return err
}

func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}

// restore stores the records of the file.
func (b *bootstrap) restore(ctx context.Context) error {
	f, err := b.Open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in, err := NewReader(f)
	if err != nil {
		return err
	}
	workers, working := errgroup.WithContext(ctx)
	workers.SetLimit(restoreWorkers)
	pending := batches{send: func(batch []backend.Action) {
		workers.Go(func() error { return b.store(working, batch) })
	}}
	for n := 1; working.Err() == nil; n++ {
		l, failed := in.Next()
		if errors.Is(failed, io.EOF) {
			break
		}
		if err = failed; err != nil {
			break
		}
		if l.Deleted || l.Unreadable || !b.file.stands(n, &l) || l.Resource.ExpiredAt(b.clock()) {
			continue
		}
		var body []byte
		if body, err = b.to.body(l.Resource); err != nil {
			break
		}
		pending.add(restoring(l.Resource, body))
		if verdictOf(l.Resource.Kind) == moved {
			b.resources++
		}
		if b.Progress != nil && n%exportPage == 0 {
			b.Progress(n, b.file.end.Lines)
		}
	}
	if err == nil {
		pending.flush()
	}
	return cmp.Or(err, workers.Wait())
}

// batches collects actions on records of one namespace and sends them in batches.
type batches struct {
	send    func([]backend.Action)
	actions []backend.Action
	bytes   int
}

func (p *batches) add(a backend.Action) {
	size := (&backend.Resource{Key: a.Key, Refs: a.Put.Refs, Body: a.Put.Body}).Size()
	other := len(p.actions) > 0 && p.actions[0].Key.Namespace != a.Key.Namespace
	if other || len(p.actions) == backend.MaxWrites || p.bytes+size > restoreBytes {
		p.flush()
	}
	p.actions = append(p.actions, a)
	p.bytes += size
}

func (p *batches) flush() {
	if len(p.actions) > 0 {
		p.send(p.actions)
	}
	p.actions = nil
	p.bytes = 0
}

// The shortest and the longest pause before a batch is sent again.
const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

// store stores a batch of records, without those that are stored already. It repeats the batch while the store does not
// answer.
func (b *bootstrap) store(ctx context.Context, actions []backend.Action) error {
	begin := time.Now()
	backoff := wait.Backoff{Least: minPause, Most: maxPause}
	for again := b.resumed; ; again = true {
		if again {
			var err error
			if actions, err = b.missing(ctx, actions); err != nil || len(actions) == 0 {
				return err
			}
		}
		err := b.apply(ctx, actions)
		switch {
		case err == nil, errors.Is(err, errDone):
			return err
		case errors.Is(err, backend.ErrExists):
			continue // another gateway has stored it, or an attempt whose answer was lost
		case errors.Is(err, backend.ErrUnknown), errors.Is(err, backend.ErrUnavailable),
			errors.Is(err, backend.ErrDeadline):
		default:
			return err
		}
		if time.Since(begin) > patience || !backoff.Wait(ctx) {
			return err
		}
	}
}

// apply sends a batch once. It returns errDone if another gateway has completed the bootstrap.
func (b *bootstrap) apply(ctx context.Context, actions []backend.Action) error {
	batch := backend.Batch{RequestID: newID(), Deadline: b.clock().Add(writeTimeout), Actions: actions}
	if backend.SameShard(b.Store, actions[0].Key.Namespace, "") {
		check := backend.Action{Key: bootstrapKey(), If: backend.Condition{Revision: b.begun}}
		batch.Actions = append([]backend.Action{check}, actions...)
	} else {
		var err error
		if batch.Deadline, err = b.leased(ctx); err != nil {
			return err
		}
	}
	_, err := b.Store.Apply(ctx, batch)
	var failed *backend.ConditionError
	if errors.As(err, &failed) && failed.Key == bootstrapKey() {
		if failed.Current == nil {
			return backend.FormatErrorf("the store was emptied while it was filled")
		}
		return errDone
	}
	return err
}

// look is the result of the latest read of the bootstrap's record.
type look struct {
	mu    sync.Mutex // guards the rest
	at    time.Time  // by the store's clock, before it was read
	begun bool
}

// note sets when the record was read, and whether its state was stateBegun. The caller holds mu, unless no batch was
// sent yet.
func (l *look) note(at time.Time, begun bool) {
	l.at = at
	l.begun = begun
}

// leased returns the deadline for a batch that cannot be conditional on the record. It reads the record again if
// necessary, and returns errDone if the bootstrap was completed.
func (b *bootstrap) leased(ctx context.Context) (time.Time, error) {
	b.look.mu.Lock()
	defer b.look.mu.Unlock()
	if now := b.clock(); now.Sub(b.look.at) > b.lease/2 {
		record, stored, err := readRecord(ctx, b.Store)
		if err != nil {
			return time.Time{}, err
		}
		b.look.note(now, stored != nil && record.State == stateBegun && stored.Revision == b.begun)
	}
	if !b.look.begun {
		return time.Time{}, errDone
	}
	return b.look.at.Add(b.lease), nil
}

// missing returns the actions whose records are not stored yet, and all actions that may replace a record. It returns
// an error if the store has a different record that must not be replaced.
func (b *bootstrap) missing(ctx context.Context, actions []backend.Action) (out []backend.Action, err error) {
	keys := make([]backend.Key, len(actions))
	for i := range actions {
		keys[i] = actions[i].Key
	}
	for at := 0; at < len(keys); {
		got, err := b.Store.Get(ctx, keys[at:]...)
		if err != nil {
			return nil, err
		}
		for i, stored := range got {
			a := actions[at+i]
			switch {
			case stored == nil, a.If.Presence != backend.Absent:
				out = append(out, a)
			case stored.UID != a.Put.UID:
				return nil, fmt.Errorf("%s was stored by a gateway that serves the store meanwhile: stop it, empty the store and begin again", a.Key)
			}
		}
		at += len(got)
	}
	return out, nil
}

// finish completes the bootstrap after all records are stored.
func (b *bootstrap) finish(ctx context.Context) error {
	at, err := b.Store.Position(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	backoff := wait.Backoff{Least: minPause, Most: maxPause}
	for {
		done, err := b.advance(ctx, at.Shards() > 1)
		if done && err == nil {
			break
		}
		raced := err == nil || errors.Is(err, backend.ErrConflict)
		lost := errors.Is(err, backend.ErrUnknown) || errors.Is(err, backend.ErrUnavailable)
		if !raced && (!lost || time.Since(begin) > patience) {
			return err
		}
		if !backoff.Wait(ctx) {
			return ctx.Err()
		}
	}
	b.Logger.Info(
		"the store was filled; revisions are new, so streams cannot resume where they were",
		zap.Int("resources", b.resources), zap.Int("unreadable", b.file.end.Unreadable),
		zap.Time("writtenAt", b.file.header.WrittenAt),
	)
	if b.Filled != nil {
		b.Filled(b.resources)
	}
	return nil
}

// advance moves the record to its next state, and reports whether that is the last one. apart reports whether there
// were batches that were not conditional on the record.
func (b *bootstrap) advance(ctx context.Context, apart bool) (done bool, err error) {
	record, stored, err := readRecord(ctx, b.Store)
	switch {
	case err != nil:
		return false, err
	case stored == nil:
		return false, backend.FormatErrorf("the store was emptied while it was filled")
	case record.State == stateDone:
		return true, nil
	case apart && record.State == stateBegun:
		record.State = stateEnding
	case apart && b.clock().Before(stored.UpdatedAt.Add(b.lease)):
		return false, nil
	default:
		record.State = stateDone
	}
	return record.State == stateDone, b.put(ctx, record, backend.Condition{Revision: stored.Revision})
}
