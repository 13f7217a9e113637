package kit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

func changePromises() []promise {
	return []promise{
		{
			name: "changes-present", says: "Changes without a position answers the present one at once",
			needs: []capability{changes}, test: changesPresent,
		},
		{
			name: "changes-reported", says: "the key of each create, change and delete is reported after every earlier position",
			needs: []capability{changes, writes}, test: changesReported,
		},
		{
			name: "changes-parallel", says: "no change is passed over, whoever else writes meanwhile",
			needs: []capability{changes, writes}, test: changesParallel,
		},
		{
			name: "changes-wait", says: "Changes waits while nothing changes, and answers when something does",
			needs: []capability{changes, writes}, test: changesWait,
		},
		{
			name: "changes-unknown", says: "an unknown position is expired, and is no error",
			needs: []capability{changes}, test: changesUnknown,
		},
	}
}

// present returns the current position of the service.
func (t *trial) present(ctx context.Context) (string, error) {
	c, err := t.Service.Changes(ctx, "", 0)
	if err != nil {
		return "", fmt.Errorf("Changes without a position: %w", err)
	}
	if c.Position == "" {
		return "", errors.New("Changes without a position answers none")
	}
	return c.Position, nil
}

// follow reads changes after a position until all keys have occurred. It returns the last position.
func (t *trial) follow(ctx context.Context, position string, keys ...backend.Key) (string, error) {
	missing := map[backend.Key]bool{}
	for _, key := range keys {
		missing[key] = true
	}
	end := time.Now().Add(t.Patience)
	for len(missing) > 0 {
		c, err := t.Service.Changes(ctx, position, t.Patience/10)
		if err != nil {
			return "", fmt.Errorf("Changes after %q: %w", position, err)
		}
		if c.Expired {
			return "", fmt.Errorf("the position %q is expired, though it was returned a moment ago", position)
		}
		before := len(missing)
		for _, key := range c.Keys {
			delete(missing, key)
		}
		if len(missing) < before {
			end = time.Now().Add(t.Patience)
		}
		if len(missing) > 0 && time.Now().After(end) {
			return "", fmt.Errorf("%d of %d keys have not come after the position %q within %v, such as %s",
				len(missing), len(keys), position, t.Patience, anyOf(missing))
		}
		if len(c.Keys) == 0 {
			t.pause(ctx) // a service that does not wait must not be asked without pause
		}
		position = c.Position
	}
	return position, nil
}

func anyOf(keys map[backend.Key]bool) backend.Key {
	for key := range keys {
		return key
	}
	return backend.Key{}
}

func changesPresent(ctx context.Context, t *trial) error {
	position, err := t.present(ctx)
	if err != nil {
		return err
	}
	c, err := t.Service.Changes(ctx, position, 0)
	if err == nil && c.Expired {
		err = fmt.Errorf("the present position %q is expired", position)
	}
	if err == nil && c.Position == "" {
		err = fmt.Errorf("Changes after %q answers no position", position)
	}
	return err
}

func changesReported(ctx context.Context, t *trial) error {
	first, err := t.present(ctx)
	if err != nil {
		return err
	}
	key := t.key()
	positions := []string{first}
	expectChange := func(what string) error {
		var last string
		for _, position := range positions {
			last, err = t.follow(ctx, position, key)
			if err != nil {
				return fmt.Errorf("after a %s: %w", what, err)
			}
		}
		positions = append(positions, last)
		return nil
	}
	r, err := t.create(ctx, key)
	if err != nil {
		return err
	}
	if err := expectChange("create"); err != nil {
		return err
	}
	for version := 2; version < 5; version++ {
		r, err = t.update(ctx, r, version)
		if err != nil {
			return err
		}
		if err := expectChange("change"); err != nil {
			return err
		}
	}
	if err := t.remove(ctx, r); err != nil {
		return err
	}
	return expectChange("delete")
}

// changesParallel creates many resources at the same time while another goroutine follows the changes. It finds
// services that assign the number of a position before the change is visible. Their followers miss changes that become
// visible late.
func changesParallel(ctx context.Context, t *trial) error {
	const each = 12
	position, err := t.present(ctx)
	if err != nil {
		return err
	}
	var keys []backend.Key
	for range writers * each {
		keys = append(keys, t.key())
	}
	followed := make(chan error, 1)
	go func() {
		_, err := t.follow(ctx, position, keys...)
		followed <- err
	}()
	err = parallel(writers, func(i int) error {
		for _, key := range keys[i*each : (i+1)*each] {
			if _, err := t.create(ctx, key); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, <-followed)
}

func changesWait(ctx context.Context, t *trial) error {
	position, err := t.present(ctx)
	if err != nil {
		return err
	}
	const wait = 500 * time.Millisecond
	begin := time.Now()
	c, err := t.Service.Changes(ctx, position, wait)
	if err != nil {
		return fmt.Errorf("Changes while nothing changes: %w", err)
	}
	took := time.Since(begin)
	if took > wait+t.Patience {
		return fmt.Errorf("Changes was to wait %v and took %v", wait, took)
	}
	if len(c.Keys) == 0 && !c.Expired && c.Position == position && took < wait/2 {
		return fmt.Errorf("Changes was to wait %v and answered nothing after %v", wait, took)
	}
	key := t.key()
	answered := make(chan error, 1)
	begin = time.Now()
	go func() {
		_, err := t.followWaiting(ctx, c.Position, key)
		answered <- err
	}()
	_, err = t.create(ctx, key)
	err = errors.Join(err, <-answered)
	if took := time.Since(begin); err == nil && took >= t.Patience {
		err = fmt.Errorf("Changes waited %v though something changed", took)
	}
	return err
}

// followWaiting is like follow for one key. If a call has waited for t.Patience and nothing has changed, followWaiting
// returns an error.
func (t *trial) followWaiting(ctx context.Context, position string, key backend.Key) (owner.Changes, error) {
	for {
		c, err := t.Service.Changes(ctx, position, t.Patience)
		if err != nil {
			return c, fmt.Errorf("Changes after %q: %w", position, err)
		}
		for _, changed := range c.Keys {
			if changed == key {
				return c, nil
			}
		}
		if len(c.Keys) == 0 || c.Expired {
			return c, fmt.Errorf("Changes after %q has waited %v and not reported the change of %s", position, t.Patience, key)
		}
		position = c.Position
	}
}

func changesUnknown(ctx context.Context, t *trial) error {
	present, err := t.present(ctx)
	if err != nil {
		return err
	}
	for _, position := range []string{"sluice-test", "\u00e4:1", present + "x", present + "0000000", "-1", ":"} {
		c, err := t.Service.Changes(ctx, position, 0)
		if err != nil {
			return fmt.Errorf("Changes after the unknown position %q: %w", position, err)
		}
		if !c.Expired {
			return fmt.Errorf("the position %q, which was never told, is not expired", position)
		}
		if c.Position == "" {
			return fmt.Errorf("Changes after the unknown position %q answers none to go on from", position)
		}
		c, err = t.Service.Changes(ctx, c.Position, 0)
		if err != nil || c.Expired {
			return fmt.Errorf("the position that was answered to an expired one does not hold: %w", err)
		}
	}
	return nil
}
