package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sluicegw/sluice/backend"
)

const (
	// recordFormat is the version of the format of the record.
	recordFormat = 1
	// claimTime is how long a scan counts as running after its last page.
	claimTime = 2 * time.Second
	// maxRecordWrites is the maximum number of attempts to change a record that other gateways change at the same time.
	maxRecordWrites = 16
)

// record is the record of a shard, which all gateways share.
type record struct {
	Format int `json:"format"`
	// Position is the position up to which all changes were handled; empty if none were.
	Position string `json:"position,omitempty"`
	// Saved is when the position was saved, by the clock of the store.
	Saved time.Time `json:"saved,omitzero"`
	// Scanned maps the name of a kind to the fingerprint of its last complete scan.
	Scanned map[string]string `json:"judged,omitempty"`
	// Scan is the scan that is running; nil if there is none.
	Scan *scan `json:"scan,omitempty"`
	// Swept is when pending deletions were last scanned, by the clock of the store.
	Swept time.Time `json:"swept,omitzero"`
}

// scan is a scan of a kind.
type scan struct {
	Kind string `json:"kind"`
	// By is the fingerprint of the kind for this scan.
	By string `json:"by"`
	// Start is the sort key after the last scanned resource. It is empty at the beginning.
	Start []byte `json:"start,omitempty"`
	// Holder is the gateway that runs the scan. Until is when the gateway's claim ends, by the clock of the store.
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// forget removes the fingerprints for which stale returns true, so that their kinds are scanned again. It reports
// whether it has removed any.
func (rec *record) forget(stale func(kind, fingerprint string) bool) bool {
	n, scan := len(rec.Scanned), rec.Scan
	maps.DeleteFunc(rec.Scanned, stale)
	if scan != nil && stale(scan.Kind, scan.By) {
		rec.Scan = nil
	}
	return len(rec.Scanned) < n || rec.Scan != scan
}

func recordKey(shard int) backend.Key {
	return backend.Key{Kind: "_reconcile", Name: fmt.Sprintf("shard-%d", shard)}
}

// read reads the record of a shard. If the record cannot be decoded, the result is empty. Then all kinds are scanned.
func (r *Reconciler) read(ctx context.Context, shard int) (rec record, current backend.Condition, err error) {
	current, err = r.getRecord(ctx, recordKey(shard), &rec)
	switch {
	case errors.Is(err, backend.ErrUnreadable):
		return record{}, current, nil
	case err == nil && rec.Format > recordFormat:
		err = backend.FormatErrorf("record of shard %d in format %d, %d wanted", shard, rec.Format, recordFormat)
	}
	return rec, current, err
}

// update calls change to change the record of a shard. If change returns false, nothing is stored.
func (r *Reconciler) update(ctx context.Context, shard int, change func(*record) bool) error {
	return r.editRecord(ctx, recordKey(shard), func() (any, backend.Condition, error) {
		rec, current, err := r.read(ctx, shard)
		if err != nil || !change(&rec) {
			return nil, current, err
		}
		rec.Format = recordFormat
		return rec, current, nil
	})
}

// editRecord stores the record that edit returns, on the condition that edit also returns. It does not store a nil
// record. If another gateway has changed the record meanwhile, it calls edit again.
func (r *Reconciler) editRecord(
	ctx context.Context, key backend.Key, edit func() (rec any, current backend.Condition, err error),
) error {
	for range maxRecordWrites {
		rec, current, err := edit()
		if err != nil || rec == nil {
			return err
		}
		err = r.putRecord(ctx, key, current, rec)
		var failed *backend.ConditionError
		if !errors.As(err, &failed) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// getRecord reads an internal record into rec, if the record exists. current is the condition for replacing the record.
// It is valid even if the record cannot be read.
func (r *Reconciler) getRecord(ctx context.Context, key backend.Key, rec any) (current backend.Condition, err error) {
	got, err := r.cfg.Store.Get(ctx, key)
	switch {
	case errors.Is(err, backend.ErrUnreadable):
		return backend.Condition{Presence: backend.Present}, err
	case err != nil:
		return current, err
	case got[0] == nil:
		return backend.Condition{Presence: backend.Absent}, nil
	}
	raw, err := backend.DecodeBody(got[0].Body)
	if err == nil {
		if err = json.Unmarshal(raw, rec); err != nil {
			err = fmt.Errorf("%s: %w: %w", key, backend.ErrUnreadable, err)
		}
	}
	return backend.Condition{Presence: backend.Present, Revision: got[0].Revision}, err
}

// putRecord stores an internal record.
func (r *Reconciler) putRecord(ctx context.Context, key backend.Key, current backend.Condition, rec any) error {
	raw, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	_, err = r.cfg.Store.Apply(ctx, backend.Batch{
		RequestID: r.cfg.NewID(), Deadline: r.cfg.Clock().Add(r.cfg.WriteTimeout),
		Actions: []backend.Action{
			{
				Key: key,
				If:  current,
				Op:  backend.OpPut,
				Put: backend.Put{UID: r.cfg.NewID(), Body: backend.EncodeBody(raw)},
			},
		},
	})
	return err
}
