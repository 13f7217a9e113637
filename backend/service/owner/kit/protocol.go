package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

func protocolPromises() []promise {
	return []promise{
		{
			name: "unknown-fields", says: "fields of a request that the service does not know are ignored", shared: true,
			test: unknownFields,
		},
		{
			name: "restart", says: "after a restart all is there, and positions hold or are expired", shared: true,
			needs: []capability{writes}, test: restarts,
		},
	}
}

func unknownFields(ctx context.Context, t *trial) error {
	if t.Raw == nil {
		return skip("the service is not asked in the JSON form")
	}
	for _, call := range []struct {
		name string
		body map[string]any
		has  string
	}{
		{"Describe", map[string]any{}, "kinds"},
		{"Get", map[string]any{"keys": []any{map[string]any{"kind": t.kind.Name, "name": t.key().Name, "later": 1}}}, "got"},
		{"List", map[string]any{"kind": t.kind.Name, "pageSize": 1}, ""},
	} {
		call.body["sluiceTest"] = map[string]any{"of": []any{"a later version"}}
		raw, err := json.Marshal(call.body)
		if err != nil {
			return err
		}
		answer, err := t.Raw(ctx, call.name, raw)
		if err != nil {
			return fmt.Errorf("%s with a field that no service knows: %w", call.name, err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(answer, &fields); err != nil {
			return fmt.Errorf("%s answers no JSON object: %w", call.name, err)
		}
		if _, there := fields[call.has]; call.has != "" && !there {
			return fmt.Errorf("%s answers no %s to a request with a field that no service knows", call.name, call.has)
		}
	}
	return nil
}

func restarts(ctx context.Context, t *trial) error {
	if t.Restart == nil {
		return skip("no command restarts the service")
	}
	position := ""
	var err error
	if t.kind.Changes {
		position, err = t.present(ctx)
		if err != nil {
			return err
		}
	}
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	if err := t.Restart(ctx); err != nil {
		return fmt.Errorf("the command that restarts the service: %w", err)
	}
	err = t.eventually(ctx, func() error {
		if _, err := t.Service.Describe(ctx); err != nil {
			return err
		}
		_, err := t.get(ctx, r.Key) // the service may answer before its database does
		return err
	})
	if err != nil {
		return fmt.Errorf("the service does not answer %v after its restart: %w", t.Patience, err)
	}
	if err := t.stays(ctx, r, "a restart"); err != nil {
		return err
	}
	next, err := t.fresh(ctx)
	if err != nil {
		return fmt.Errorf("a create after a restart: %w", err)
	}
	if !t.kind.Changes {
		return t.stays(ctx, next, "a create after a restart")
	}
	c, err := t.Service.Changes(ctx, position, 0)
	switch {
	case err != nil:
		return fmt.Errorf("Changes after a position from before the restart: %w", err)
	case c.Expired && c.Position == "":
		return errors.New("an expired position is answered without one to go on from")
	case c.Expired:
		return nil
	}
	_, err = t.follow(ctx, position, r.Key, next.Key)
	if err != nil {
		err = fmt.Errorf("a position from before the restart is not expired: %w", err)
	}
	return err
}
