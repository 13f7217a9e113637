package service

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

const (
	// resealPage is how many records are read at a time.
	resealPage = 64
	// minResealPause and maxResealPause bound the pauses while the store does not answer.
	minResealPause = 200 * time.Millisecond
	maxResealPause = 5 * time.Second
)

// Sealed returns the sorted ids of the keys that encrypt sensitive values of the given kinds. It reads only the first
// page of records of each kind, so it may not find all keys.
func Sealed(ctx context.Context, store backend.Store, kinds []string) ([]string, error) {
	var ids []string
	for _, kind := range kinds {
		page, err := store.Range(ctx, backend.Range{Kind: backend.SensitiveKind(kind), Limit: resealPage})
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

// reseal encrypts all sensitive values with the first key, so that the other keys can be removed. It writes values that
// are not encrypted or are encrypted with another key. Each record is written once, on the condition that it has not
// changed. Records that cannot be decrypted are left as they are. On a gateway without keys, reseal only logs a warning
// if values are encrypted. It returns when it is done or ctx ends.
func (s *Service) reseal(ctx context.Context) {
	log := s.cfg.Logger
	if s.cfg.Keys == nil {
		s.warnOfSealed(ctx)
		return
	}
	var done, left int
	for _, kind := range s.sensitiveKinds() {
		n, m, whole := s.resealKind(ctx, kind)
		done += n
		left += m
		if !whole {
			return
		}
	}
	if s.cfg.Keys.ID() == "" {
		log.Info(
			"sensitive values are stored in plain form",
			zap.Int("decryptedNow", done),
			zap.Int("leftAsTheyAre", left),
		)
		return
	}
	log.Info(
		"sensitive values are encrypted",
		zap.String("key", s.cfg.Keys.ID()),
		zap.Int("encryptedNow", done),
		zap.Int("leftAsTheyAre", left),
	)
}

// warnOfSealed logs a warning with the ids of the keys that encrypt values. It is for a gateway that has no keys.
func (s *Service) warnOfSealed(ctx context.Context) {
	kinds := s.sensitiveKinds()
	backoff := wait.Backoff{Least: minResealPause, Most: maxResealPause}
	ids, err := Sealed(ctx, s.cfg.Store, kinds)
	for err != nil && backoff.Wait(ctx) {
		ids, err = Sealed(ctx, s.cfg.Store, kinds)
	}
	if err == nil && len(ids) > 0 {
		s.cfg.Logger.Warn("sensitive values are encrypted, and this gateway has no keys: what it writes is stored in plain form", zap.Strings("keys", ids))
	}
}

// resealKind encrypts the records of a kind. done is the number of records that it has written. left is the number of
// records that it could not write. whole is false if ctx ended before all records were read.
func (s *Service) resealKind(ctx context.Context, kind string) (done, left int, whole bool) {
	backoff := wait.Backoff{Least: minResealPause, Most: maxResealPause}
	r := backend.Range{Kind: backend.SensitiveKind(kind), Limit: resealPage}
	for more := true; more; {
		page, err := s.cfg.Store.Range(ctx, r)
		if err == nil {
			var n, m int
			n, m, err = s.resealAll(ctx, page.Resources)
			done += n
			if err == nil {
				left += m + len(page.Unreadable) // the store has logged each that does not decode
			}
		}
		if err != nil { // read the page again; records that were written are skipped
			if !backoff.Wait(ctx) {
				return done, left, false
			}
			continue
		}
		backoff.Reset()
		r, more = r.After(page)
	}
	return done, left, true
}

// resealAll encrypts the given records. done and left are as in resealKind.
func (s *Service) resealAll(ctx context.Context, records []*backend.Resource) (done, left int, err error) {
	for _, r := range records {
		changed, err := s.resealOne(ctx, r)
		switch {
		case err == nil && changed:
			done++
		case err == nil:
		case errors.Is(err, backend.ErrConflict), errors.Is(err, backend.ErrNotFound):
			// Another writer has encrypted or deleted the record.
		case errors.Is(err, backend.ErrEncrypted), errors.Is(err, backend.ErrUnreadable),
			errors.Is(err, backend.ErrTooLarge):
			left++
			s.cfg.Logger.Warn(
				"sensitive values are left as they are stored",
				zap.Stringer("key", r.Key),
				zap.Error(err),
			)
		default:
			return done, left, err
		}
	}
	return done, left, nil
}

// resealOne encrypts a record, unless it is already encrypted with the first key. It first decrypts the record in each
// case, because another key may have the id of the first key.
func (s *Service) resealOne(ctx context.Context, r *backend.Resource) (changed bool, err error) {
	plain, err := s.cfg.Keys.Open(r.Key, r.UID, r.Body)
	if err != nil || s.cfg.Keys.Current(r.Body) {
		return false, err
	}
	sealed, err := s.cfg.Keys.Seal(r.Key, r.UID, plain)
	if err != nil {
		return false, fmt.Errorf("reseal: %w", err)
	}
	_, err = s.cfg.Store.Apply(ctx, backend.Batch{
		RequestID: s.cfg.NewID(), Deadline: s.clock().Add(s.cfg.WriteTimeout),
		Actions: []backend.Action{{
			Key: r.Key, Op: backend.OpPut,
			If:  backend.Condition{Presence: backend.Present, Revision: r.Revision, UID: r.UID},
			Put: backend.Put{UID: r.UID, ExpiresAt: r.ExpiresAt, Body: sealed},
		}},
	})
	return true, err
}
