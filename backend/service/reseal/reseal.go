// Package reseal brings what is stored of sensitive values into the form in which a
// gateway stores them: encrypted with its first key, so that the keys before it can be
// taken away.
package reseal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/internal/wait"
)

// Config of a pass. All fields are required.
type Config struct {
	Store backend.Store
	// Kinds are the names of the sensitive kinds.
	Kinds []string
	// Keys encrypt; nil is none: nothing is written, and what is encrypted is told of.
	Keys   *keyring.Keyring
	Logger *zap.Logger
	// Clock is that of the store.
	Clock func() time.Time
	// NewID makes request ids.
	NewID func() string
	// WriteTimeout is how long the store may take to begin a batch.
	WriteTimeout time.Duration
	// Retry is how long to wait after the store did not answer.
	Retry time.Duration
}

// pageSize is how many records are read at a time.
const pageSize = 64

// Sealed returns the ids of the keys that have encrypted records of some kinds, in order.
// It looks at the first records of each kind.
func Sealed(ctx context.Context, store backend.Store, kinds []string) ([]string, error) {
	var ids []string
	for _, kind := range kinds {
		page, err := store.Range(ctx, backend.Range{Kind: backend.SensitiveKind(kind), Limit: pageSize})
		if err != nil {
			return nil, err
		}
		for _, r := range page.Resources {
			var none *keyring.Keyring
			var sealed *keyring.Error
			if _, err := none.Open(r.Key, r.UID, r.Body); errors.As(err, &sealed) && !slices.Contains(ids, sealed.ID) {
				ids = append(ids, sealed.ID)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// warn says that there are values which a gateway without keys cannot decrypt.
func (cfg Config) warn(ctx context.Context) error {
	for {
		ids, err := Sealed(ctx, cfg.Store, cfg.Kinds)
		switch {
		case err == nil && len(ids) > 0:
			cfg.Logger.Warn("sensitive values are encrypted, and this gateway has no keys: what it writes is stored in plain form", zap.Strings("keys", ids))
			return nil
		case err == nil || !wait.For(ctx, cfg.Retry):
			return nil
		}
	}
}

// Run encrypts all that is stored in another form once, each record on the condition
// that nobody has written it since it was read. What it cannot decrypt it leaves. It
// returns when it is done or ctx ends, which is no error.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Keys == nil {
		return cfg.warn(ctx)
	}
	var done, left int
	for _, kind := range cfg.Kinds {
		r := backend.Range{Kind: backend.SensitiveKind(kind), Limit: pageSize}
		for {
			page, err := cfg.Store.Range(ctx, r)
			if err == nil {
				var n, m int
				n, m, err = cfg.page(ctx, page.Resources)
				if done += n; err == nil {
					left += m + len(page.Unreadable) // the store has logged each that does not decode
				}
			}
			if err != nil { // the page is read again: what is done is passed over
				if !wait.For(ctx, cfg.Retry) {
					return nil
				}
				continue
			}
			if !page.More || len(page.Resources) == 0 {
				break
			}
			last := page.Resources[len(page.Resources)-1]
			r.Start = backend.Successor(backend.OrderTuple(last.Namespace, last.Name))
		}
	}
	if cfg.Keys.ID() == "" {
		cfg.Logger.Info("sensitive values are stored in plain form", zap.Int("decryptedNow", done), zap.Int("leftAsTheyAre", left))
		return nil
	}
	cfg.Logger.Info("sensitive values are encrypted", zap.String("key", cfg.Keys.ID()), zap.Int("encryptedNow", done), zap.Int("leftAsTheyAre", left))
	return nil
}

// page encrypts records, and says how many, and how many it had to leave.
func (cfg Config) page(ctx context.Context, records []*backend.Resource) (done, left int, err error) {
	for _, r := range records {
		switch err := cfg.one(ctx, r); {
		case err == nil:
			done++
		case errors.Is(err, errCurrent):
		case errors.Is(err, backend.ErrConflict), errors.Is(err, backend.ErrNotFound):
			// Who wrote it meanwhile has encrypted it, or deleted it.
		case errors.Is(err, backend.ErrEncrypted), errors.Is(err, backend.ErrUnreadable), errors.Is(err, backend.ErrTooLarge):
			left++
			cfg.Logger.Warn("sensitive values are left as they are stored", zap.Stringer("key", r.Key), zap.Error(err))
		default:
			return done, left, err
		}
	}
	return done, left, nil
}

// errCurrent: a record has the form in which it is stored now.
var errCurrent = errors.New("current")

// one encrypts a record. It decrypts one that is current, too: the key that has its id
// may be another.
func (cfg Config) one(ctx context.Context, r *backend.Resource) error {
	plain, err := cfg.Keys.Open(r.Key, r.UID, r.Body)
	if err != nil {
		return err
	}
	if cfg.Keys.Current(r.Body) {
		return errCurrent
	}
	sealed, err := cfg.Keys.Seal(r.Key, r.UID, plain)
	if err != nil {
		return fmt.Errorf("reseal: %w", err)
	}
	_, err = cfg.Store.Apply(ctx, backend.Batch{
		RequestID: cfg.NewID(), Deadline: cfg.Clock().Add(cfg.WriteTimeout),
		Actions: []backend.Action{{
			Key: r.Key, Op: backend.OpPut,
			If:  backend.Condition{Presence: backend.Present, Revision: r.Revision, UID: r.UID},
			Put: backend.Put{UID: r.UID, ExpiresAt: r.ExpiresAt, Body: sealed},
		}},
	})
	return err
}
