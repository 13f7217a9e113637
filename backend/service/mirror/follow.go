package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// pollTime is how long a call for changes may wait for a change.
	pollTime = 20 * time.Second
	// leastPoll is the minimum pause between two calls for changes, for a service that answers without waiting.
	leastPoll = 500 * time.Millisecond
	// The shortest and the longest pause after a failure.
	minRetryPause = 100 * time.Millisecond
	maxRetryPause = 5 * time.Second
)

// follow follows the service's changes until ctx ends. Failures are logged and retried.
func (m *Mirror) follow(ctx context.Context) {
	m.retry(ctx, "following a service", m.followChanges)
}

// retry calls do until ctx ends or the store is closed. It pauses after each call. what names the work in the log.
func (m *Mirror) retry(ctx context.Context, what string, do func(context.Context) error) {
	backoff := wait.Backoff{Least: minRetryPause, Most: maxRetryPause}
	for {
		begin := time.Now()
		err := do(ctx)
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return
		}
		if time.Since(begin) > maxRetryPause {
			backoff.Reset()
		}
		m.logOnce.Warn(what+" failed and is tried again", zap.Error(err))
		if !backoff.Wait(ctx) {
			return
		}
	}
}

// followChanges reads the description of the service and then its changes. It asks for the current position of the
// service, requests a comparison of all kinds, and reads the changes after the position. If the service cannot continue
// from a position, followChanges begins again with a new position and a new comparison. After a failed call it
// continues from the last position. If the service announces no changes, followChanges requests one comparison and
// calls redescribe.
func (m *Mirror) followChanges(ctx context.Context) error {
	d, err := m.describe(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(m.kindsOf(*d), func(k owner.Kind) bool { return k.Changes }) {
		signal(m.compareNow) // and then every UnfollowedInterval
		return m.redescribe(ctx)
	}
	at, err := m.changes(ctx, "", 0)
	if err != nil {
		m.compareOnce.Do(func() { signal(m.compareNow) }) // even if changes cannot be followed
		return err
	}
	signal(m.compareNow)
	backoff := wait.Backoff{Least: minRetryPause, Most: maxRetryPause}
	poll := pollTime
	for {
		started := time.Now()
		next, err := m.changes(ctx, at.Position, poll)
		hurried := time.Since(started) < leastPoll && (len(next.Keys) == 0 || next.Position == at.Position)
		switch {
		case ctx.Err() != nil, errors.Is(err, owner.ErrUnimplemented):
			return err
		case err != nil:
			m.logOnce.Warn("asking a service for changes failed and is tried again", zap.Error(err))
			if !backoff.Wait(ctx) {
				return ctx.Err()
			}
			_, _ = m.describe(ctx) // the service may have been updated; describe notes its failures
			poll = 0               // do not wait for changes, to learn soon whether it answers again
			continue
		case next.Expired:
			m.log.Info("the service cannot go on from a position, so everything is compared")
			if next, err = m.changes(ctx, "", 0); err != nil {
				return err
			}
			signal(m.compareNow)
		case hurried && !wait.For(ctx, leastPoll): // the service does not wait, or repeats its answer
			return ctx.Err()
		}
		backoff.Reset()
		poll = pollTime
		m.look(ctx, next.Keys...)
		at = next
	}
}

// redescribe reads the description of a service that announces no changes, at intervals. It returns an error if the
// service now announces changes, or if the description cannot be read.
func (m *Mirror) redescribe(ctx context.Context) error {
	for wait.For(ctx, UnfollowedInterval) {
		d, err := m.describe(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(m.kindsOf(*d), func(k owner.Kind) bool { return k.Changes }) {
			return errors.New("the service has begun to tell of changes")
		}
	}
	return ctx.Err()
}

// kindsOf returns the kinds of a description that are in the catalogue.
func (m *Mirror) kindsOf(d owner.Description) (out []owner.Kind) {
	for _, k := range m.kinds {
		if can, known := capabilities(d, k.Name); known {
			out = append(out, can)
		}
	}
	return out
}

// changes reads the changes after a position. If there are none, the service waits for a change for at most poll.
func (m *Mirror) changes(ctx context.Context, position string, poll time.Duration) (owner.Changes, error) {
	asking, cancel := context.WithTimeout(access.WithoutCaller(ctx), poll+callTimeout)
	defer cancel()
	out, err := m.service.Changes(asking, position, poll)
	m.noteAnswer(ctx, changesCall, err)
	return out, err
}

// followAdded follows the changes of records in the store. It calls look for each resource that another gateway has
// added, and remembers which records were deleted.
func (m *Mirror) followAdded(ctx context.Context) {
	m.retry(ctx, "following what others have mirrored", func(ctx context.Context) error {
		at, err := m.own.Store.Position(ctx)
		if err != nil {
			return err
		}
		w, err := m.own.Hub.Watch(ctx, hub.Watch{
			From: at, Covers: func(key backend.Key) bool { return m.kind(key.Kind) != nil },
		})
		if err != nil {
			return err
		}
		defer w.Close()
		for {
			d, err := w.Next(ctx)
			if err != nil {
				if errors.Is(err, backend.ErrLagged) || errors.Is(err, backend.ErrPositionExpired) {
					signal(m.compareNow) // to find what was missed
				}
				return err
			}
			for i := range d.Events {
				switch e := &d.Events[i]; {
				case e.Type == backend.Deleted:
					m.deleted.note(e.Resource.Key)
				case e.Type == backend.Added && !strings.HasPrefix(e.RequestID, m.own.Tag):
					m.look(ctx, e.Resource.Key)
				}
			}
		}
	})
}
