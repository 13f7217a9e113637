package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/keyring"
)

// ExportConfig configures an [Export].
type ExportConfig struct {
	// Store is the store to export. Required.
	Store backend.Store
	// Keys encrypt secrets in the file, and decrypt secrets of the store.
	Keys *keyring.Keyring
	// Secrets is the form of secrets in the file. Default: Sealed, which requires Keys if there are secrets.
	Secrets Secrecy
	// Release is the release of this program, for the header.
	Release string
	// Repeatable gives the same identity to all files that are made from one state of the store. Then a bootstrap that
	// was begun with one of them can be continued with another one. The store must not change during the export.
	Repeatable bool
	// Progress is called from time to time with the number of lines. Default: no calls.
	Progress func(lines int)
	// pending is the maximum size in bytes of the lines that wait to be written. Default: [defaultPending].
	pending int
}

// ErrNoKeys means that there are secrets, but no key to encrypt them.
var ErrNoKeys = errors.New("there are secrets, and no key that seals them")

// errMeanwhile means that another catalogue was accepted during the export.
var errMeanwhile = errors.New("another catalogue was accepted while the store was exported; export again")

const (
	// exportPage is the number of records that are read at a time.
	exportPage = 500
	// defaultPending is the default of ExportConfig.pending.
	defaultPending = 8 << 20
	// maxRounds is the maximum number of rounds in which changed sensitive values are read.
	maxRounds = 1000
)

// Export writes the contents of a store at one position to w. If it returns an error, what was written is not valid.
func Export(ctx context.Context, cfg ExportConfig, w io.Writer) (End, error) {
	e := &exporter{
		ExportConfig: cfg,
		store:        cfg.Store,
		unsettled:    map[backend.Key]logged{},
		changed:      map[backend.Key]Line{},
		keys:         map[string]bool{},
	}
	if e.pending == 0 {
		e.pending = defaultPending
	}
	if e.Secrets == "" {
		e.Secrets = Sealed
	}
	end, err := e.export(ctx, w)
	switch {
	case errors.Is(err, backend.ErrPositionExpired):
		err = fmt.Errorf("export: the log has no longer what was changed meanwhile; export again, or raise retain-entries, retain-bytes or retain-age: %w", err)
	case err != nil:
		err = fmt.Errorf("export: %w", err)
	}
	return end, err
}

// exporter is the state of an export.
//
//	           page by page                       in rounds
//	records ----------------+   +-- sensitive values that have changed ---+
//	                        |   |                                         |
//	log   ---- after each --+---+-- until all of them are as old as it is-+--> end line
//
// If a record changes after it was written, a further line is written for it. A change before that needs no line,
// because the record is read later. Further lines wait in memory until there are many of them, or until all records are
// written. A new change of a record replaces its waiting line. Therefore an export to a slow client ends, even if some
// records change faster than the client reads.
type exporter struct {
	ExportConfig
	store  backend.Store
	secret catalogue.WriteOnly
	to     *Writer
	end    End

	changes backend.Watcher
	// position is the position up to which the log was read.
	position backend.Position
	// shard is the shard that is being read. last is the encoded key of the last record that was read from it.
	shard int
	last  []byte
	// unsettled maps each resource that has changed after its sensitive values were read to its last change.
	unsettled map[backend.Key]logged
	// changed has the further lines that wait to be written. changedBytes is their total size.
	changed      map[backend.Key]Line
	changedBytes int
	// keys are the ids of the keys with which something in the file is encrypted.
	keys map[string]bool
}

// logged is the last change of a resource in the log.
type logged struct {
	deleted   bool
	expiresAt time.Time
}

func (e *exporter) export(ctx context.Context, w io.Writer) (end End, err error) {
	if err := Whole(ctx, e.store); err != nil {
		return end, err
	}
	if e.secret, err = catalogue.WriteOnlyOf(ctx, e.store); err != nil {
		return end, err
	}
	if err := e.checkKeys(ctx); err != nil {
		return end, err
	}
	if e.position, err = e.store.Position(ctx); err != nil {
		return end, err
	}
	if e.changes, err = e.store.Watch(ctx, backend.Watch{From: e.position, MaxLag: math.MaxInt32}); err != nil {
		return end, err
	}
	defer e.changes.Close()
	if e.to, err = NewWriter(w, e.header()); err != nil {
		return end, err
	}
	for e.shard = range e.position.Shards() {
		if err := e.readShard(ctx); err != nil {
			return end, err
		}
	}
	e.shard++
	if err := e.settle(ctx); err != nil {
		return end, err
	}
	if err := e.writeChanged(); err != nil {
		return end, err
	}
	if err := e.readLast(ctx); err != nil {
		return end, err
	}
	e.end.Position = e.position.String()
	e.end.Keys = slices.Sorted(maps.Keys(e.keys))
	return e.to.Close(e.end)
}

func (e *exporter) header() Header {
	h := Header{
		Release:   e.Release,
		WrittenAt: backend.ClockOf(e.store)().UTC(),
		Catalogue: e.secret.Newest,
		Secrets:   e.Secrets,
	}
	if e.Secrets == Sealed {
		h.Key = e.Keys.ID()
	}
	if e.Repeatable {
		h.Source = "position " + e.position.String()
	}
	return h
}

// checkKeys returns an error if there are secrets, but no key to encrypt them.
func (e *exporter) checkKeys(ctx context.Context) error {
	if e.Secrets != Sealed || e.Keys.ID() != "" {
		return nil
	}
	prefix := backend.AppendStringPrefix(nil, backend.SensitiveKind(""))
	at, err := e.store.Position(ctx)
	if err != nil {
		return err
	}
	var ranges []backend.Range
	for i := range at.Shards() {
		ranges = append(ranges, backend.Range{
			Shard: i + 1, Start: prefix, End: backend.StringPrefixEnd(prefix), Limit: 1,
		})
	}
	for _, kind := range e.secret.KindsInside() {
		ranges = append(ranges, backend.Range{Kind: kind, Limit: 1})
	}
	for _, r := range ranges {
		page, err := e.store.Range(ctx, r)
		if err != nil {
			return err
		}
		if len(page.Resources)+len(page.Unreadable) > 0 {
			return ErrNoKeys
		}
	}
	return nil
}

// readShard writes the records of a shard. It reads them page by page, and reads the log after each page.
func (e *exporter) readShard(ctx context.Context) error {
	r := backend.Range{Shard: e.shard + 1, Limit: exportPage}
	e.last = nil
	for more := true; more; {
		page, err := e.store.Range(ctx, r)
		if err != nil {
			return err
		}
		for _, one := range page.Resources {
			if err := e.write(one, Line{Resource: one}); err != nil {
				return err
			}
		}
		for _, key := range page.Unreadable {
			if err := e.writeUnreadable(key, false); err != nil {
				return err
			}
		}
		r, more = r.After(page)
		e.last = r.Start
		if !more {
			e.last = backend.PrefixEnd(nil)
		}
		if err := e.follow(ctx); err != nil {
			return err
		}
		if e.Progress != nil {
			e.Progress(e.to.count)
		}
	}
	return nil
}

// passed reports whether the reading of records has gone past a key, so that a change of its record needs a further
// line.
func (e *exporter) passed(key backend.Key) bool {
	shard := backend.ShardOf(e.store, key.Namespace)
	return shard < e.shard || shard == e.shard && bytes.Compare(key.Append(nil), e.last) < 0
}

// follow reads the log up to its end, so that all changes that were made before the call are known.
func (e *exporter) follow(ctx context.Context) error {
	head, err := e.store.Position(ctx)
	if err != nil {
		return err
	}
	for !e.position.Covers(head) {
		d, err := e.changes.Next(ctx)
		if err != nil {
			return err
		}
		for i := range d.Events {
			if err := e.change(&d.Events[i]); err != nil {
				return err
			}
		}
		e.position = d.Position
	}
	return nil
}

// change adds a further line for a changed record, if the record was read before.
func (e *exporter) change(event *backend.Event) error {
	r := event.Resource
	if !e.passed(r.Key) {
		return nil
	}
	deleted := event.Type == backend.Deleted
	if e.secret.Apart(r.Kind) && e.passed(r.Key.Sensitive()) {
		e.unsettled[r.Key] = logged{deleted, r.ExpiresAt}
	}
	switch {
	case deleted:
		return e.addDeleted(r.Key, event.Revision)
	case len(r.Body) == 0:
		return e.addUnreadable(r.Key)
	}
	return e.addChanged(Line{Resource: r})
}

// settle reads the sensitive values of changed resources again, until all of them agree with the log up to the
// position.
func (e *exporter) settle(ctx context.Context) error {
	for range maxRounds {
		if err := e.follow(ctx); err != nil {
			return err
		}
		for key, last := range e.unsettled {
			settled, err := e.settleOne(ctx, key, last)
			if err != nil {
				return err
			}
			if settled {
				delete(e.unsettled, key)
			}
		}
		if len(e.unsettled) == 0 {
			return nil
		}
	}
	return errors.New("sensitive values change faster than they can be read; export again")
}

// settleOne adds a line with the present sensitive values of a resource. last is the last change of the resource that
// was read from the log. settleOne reports whether the resource has not changed since then. Sensitive values change
// only together with their resource.
func (e *exporter) settleOne(ctx context.Context, key backend.Key, last logged) (settled bool, err error) {
	at := key.Sensitive()
	values, err := e.store.Get(ctx, at)
	unreadable := errors.Is(err, backend.ErrUnreadable)
	if err != nil && !unreadable {
		return false, err
	}
	got, err := e.store.Get(ctx, key)
	damaged := errors.Is(err, backend.ErrUnreadable)
	if err != nil && !damaged {
		return false, err
	}
	switch {
	case unreadable:
		err = e.addUnreadable(at)
	case values[0] == nil:
		err = e.addDeleted(at, backend.Revision{})
	default:
		err = e.addChanged(Line{Resource: values[0]})
	}
	if err != nil || damaged {
		return err == nil, err
	}
	now := got[0]
	if now == nil {
		// An expired resource no longer exists, but the log has no entry about that until it is purged.
		expired := !last.expiresAt.IsZero() && !last.expiresAt.After(backend.ClockOf(e.store)())
		return last.deleted || expired, nil
	}
	seen := e.position.Shard(backend.ShardOf(e.store, key.Namespace))
	return now.Revision.Compare(seen) <= 0 && !last.deleted, nil
}

// readLast writes the records that the gateways keep about kinds. They are read after everything else, because they
// must not be older than the changes that they describe.
func (e *exporter) readLast(ctx context.Context) error {
	for _, kind := range []string{controllersKind, catalogueKind} {
		for page, err := range backend.Pages(ctx, e.store, backend.Range{Kind: kind, Limit: exportPage}) {
			if err != nil {
				return err
			}
			for _, one := range page.Resources {
				if err := e.add(Line{Resource: one}); err != nil {
					return err
				}
			}
			for _, key := range page.Unreadable {
				if err := e.add(Line{Resource: &backend.Resource{Key: key}, Unreadable: true}); err != nil {
					return err
				}
			}
		}
	}
	now, err := catalogue.WriteOnlyOf(ctx, e.store)
	if err == nil && now.Newest != e.secret.Newest {
		err = errMeanwhile
	}
	return err
}

// write writes a record, unless it is not exported or must be read last.
func (e *exporter) write(r *backend.Resource, l Line) error {
	switch verdictOf(r.Kind) {
	case left, movedLast:
		return nil
	case unknown:
		return unknownKindError(r.Key)
	}
	body, err := e.body(r)
	if err != nil {
		return err
	}
	out := *r
	out.Body = body
	l.Resource = &out
	if id := keyring.SealedWith(body); id != "" {
		e.keys[id] = true
	}
	return e.add(l)
}

// addChanged adds a further line to those that wait. It replaces a waiting line with the same key. If too many wait, it
// writes them.
func (e *exporter) addChanged(l Line) error {
	l.Later = true
	r := *l.Resource // a copy, which does not hold the memory of the page or delivery that it was in
	r.Body = bytes.Clone(r.Body)
	r.Refs = slices.Clone(r.Refs)
	l.Resource = &r
	if old, ok := e.changed[r.Key]; ok {
		e.changedBytes -= old.Resource.Size()
	}
	e.changed[r.Key] = l
	e.changedBytes += r.Size()
	if e.changedBytes < e.pending {
		return nil
	}
	return e.writeChanged()
}

func (e *exporter) addDeleted(key backend.Key, at backend.Revision) error {
	r := &backend.Resource{Key: key, Envelope: backend.Envelope{Revision: at}}
	return e.addChanged(Line{Resource: r, Deleted: true})
}

func (e *exporter) addUnreadable(key backend.Key) error {
	return e.addChanged(Line{Resource: &backend.Resource{Key: key}, Unreadable: true})
}

// writeChanged writes all further lines that wait.
func (e *exporter) writeChanged() error {
	for _, l := range e.changed {
		var err error
		switch {
		case l.Deleted:
			err = e.add(l)
		case l.Unreadable:
			err = e.writeUnreadable(l.Resource.Key, true)
		default:
			err = e.write(l.Resource, l)
		}
		if err != nil {
			return err
		}
	}
	clear(e.changed)
	e.changedBytes = 0
	return nil
}

// writeUnreadable writes a line for a record that cannot be decoded. key is zero if the key cannot be decoded either.
func (e *exporter) writeUnreadable(key backend.Key, later bool) error {
	if key != (backend.Key{}) && verdictOf(key.Kind) != moved && verdictOf(key.Kind) != movedSensitive {
		return nil
	}
	e.end.Unreadable++
	if key == (backend.Key{}) {
		return nil
	}
	return e.add(Line{Resource: &backend.Resource{Key: key}, Unreadable: true, Later: later})
}

// add writes a line and counts it.
func (e *exporter) add(l Line) error {
	if l.Later {
		e.end.Changes++
	} else {
		e.end.Records++
	}
	return e.to.Write(l)
}

// body returns the body of a record in the form in which the file has it.
func (e *exporter) body(r *backend.Resource) ([]byte, error) {
	apart := verdictOf(r.Kind) == movedSensitive
	if !apart && !e.secret.Inside(r.Kind) {
		return r.Body, nil
	}
	if e.Secrets == None {
		return e.withoutSecrets(r, apart)
	}
	body, err := e.Keys.Open(r.Key, r.UID, r.Body)
	switch {
	case errors.Is(err, backend.ErrEncrypted): // it cannot be decrypted, so it stays as it is stored
		return r.Body, nil
	case err != nil:
		return nil, fmt.Errorf("record %s: %w", r.Key, err)
	case e.Secrets == Plain:
		return body, nil
	case e.Keys.ID() == "":
		return nil, ErrNoKeys
	case e.Keys.Current(r.Body):
		return r.Body, nil
	}
	return e.Keys.Seal(r.Key, r.UID, body)
}

// withoutSecrets returns the body of a record without its secrets. apart reports whether the record has nothing but
// secrets.
func (e *exporter) withoutSecrets(r *backend.Resource, apart bool) ([]byte, error) {
	if apart {
		return backend.EncodeBody([]byte("{}")), nil
	}
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", r.Key, err)
	}
	return backend.EncodeBody(e.secret.Without(r.Kind, raw)), nil
}
