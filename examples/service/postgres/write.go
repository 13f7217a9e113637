package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// errUndone rolls back a transaction that must not change anything.
var errUndone = errors.New("nothing is to change")

// change calls decide in a transaction, with the resource that has the key. No other transaction changes the key
// meanwhile. The changes of decide are rolled back if dry is set, or the outcome is not DONE.
func (s *service) change(
	ctx context.Context, key backend.Key, dry bool, decide func(tx pgx.Tx, was *owner.Resource) (owner.Answer, error),
) (answer owner.Answer, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// This locks the row of the key until the end of the transaction, even if there is no resource with the key.
		_, err := tx.Exec(ctx, `insert into change values ($1, $2, $3, pg_current_xact_id())
			on conflict (kind, namespace, name) do update set transaction = pg_current_xact_id()`,
			key.Kind, key.Namespace, key.Name)
		if err != nil {
			return err
		}
		was, err := find(ctx, tx, key)
		if err != nil {
			return err
		}
		answer, err = decide(tx, was)
		if err != nil {
			return err
		}
		if dry || answer.Outcome != owner.Done {
			return errUndone
		}
		_, err = tx.Exec(ctx, "notify "+channel)
		return err
	})
	if errors.Is(err, errUndone) {
		err = nil
	}
	return answer, err
}

// refusal returns the answer to a write or a delete whose conditions do not hold; nil if they hold.
func refusal(was *owner.Resource, tag, uid string) *owner.Answer {
	switch {
	case was == nil:
		return &owner.Answer{Outcome: owner.Absent}
	case tag != "" && tag != was.Tag, uid != "" && uid != was.UID:
		return &owner.Answer{Outcome: owner.Conflict, Resource: was}
	}
	return nil
}

// Write implements [owner.Service].
func (s *service) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	if wrong := violations(w.Resource); len(wrong) > 0 {
		return owner.Answer{Outcome: owner.Invalid, Violations: wrong}, nil
	}
	answer, err := s.change(ctx, w.Resource.Key, w.DryRun, func(tx pgx.Tx, was *owner.Resource) (owner.Answer, error) {
		if w.IfAbsent && was != nil {
			return owner.Answer{Outcome: owner.Exists, Resource: was}, nil
		}
		if !w.IfAbsent {
			if refused := refusal(was, w.IfTag, w.IfUID); refused != nil {
				return *refused, nil
			}
		}
		return store(ctx, tx, w.Resource)
	})
	if unstorable(err) {
		wrong := owner.Violation{Path: "spec", Rule: "text", Message: "text without NUL characters is accepted"}
		return owner.Answer{Outcome: owner.Invalid, Violations: []owner.Violation{wrong}}, nil
	}
	return answer, err
}

// store creates or replaces a resource.
func store(ctx context.Context, tx pgx.Tx, r owner.Resource) (owner.Answer, error) {
	status, err := json.Marshal(map[string]string{"writtenBy": access.ActorFrom(ctx).Name})
	if err != nil {
		return owner.Answer{}, err
	}
	rows, err := tx.Query(ctx, `insert into resource
			(kind, namespace, name, write_id, labels, annotations, description, spec, status)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		on conflict (kind, namespace, name) do update set
			tag = gen_random_uuid(), write_id = excluded.write_id, labels = excluded.labels,
			annotations = excluded.annotations, description = excluded.description, spec = excluded.spec,
			status = excluded.status
		returning `+columns,
		r.Kind, r.Namespace, r.Name, r.WriteID, orEmpty(r.Labels), orEmpty(r.Annotations), r.Description, r.Spec, status)
	if err != nil {
		return owner.Answer{}, err
	}
	stored, err := pgx.CollectExactlyOneRow(rows, scan)
	return owner.Answer{Outcome: owner.Done, Resource: &stored}, err
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// unstorable reports whether the database cannot store a text, because the text has a NUL character.
func unstorable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "22021" || pg.Code == "22P05")
}

// violations returns the rules that a resource violates. The gateway checks the rules of the SDL before it calls the
// service, but other callers may not.
func violations(r owner.Resource) []owner.Violation {
	if r.Kind != project || r.Name == "" {
		return []owner.Violation{{Path: "kind", Rule: "kind", Message: "a named Project is accepted"}}
	}
	var spec struct{ Title, Budget any }
	if err := json.Unmarshal(r.Spec, &spec); err != nil {
		return []owner.Violation{{Path: "spec", Rule: "object", Message: "a JSON object is accepted"}}
	}
	var out []owner.Violation
	if title, ok := spec.Title.(string); !ok || title == "" {
		out = append(out, owner.Violation{Path: "spec.title", Rule: "required", Message: "a text is accepted"})
	}
	if budget, ok := spec.Budget.(float64); spec.Budget != nil && (!ok || budget < 0 || budget != float64(int64(budget))) {
		out = append(out, owner.Violation{Path: "spec.budget", Rule: "number", Message: "a number of euros is accepted"})
	}
	return out
}

// Delete implements [owner.Service].
func (s *service) Delete(ctx context.Context, d owner.Delete) (owner.Answer, error) {
	return s.change(ctx, d.Key, d.DryRun, func(tx pgx.Tx, was *owner.Resource) (owner.Answer, error) {
		if refused := refusal(was, d.IfTag, d.IfUID); refused != nil {
			return *refused, nil
		}
		_, err := tx.Exec(ctx, "delete from resource where kind = $1 and namespace = $2 and name = $3",
			d.Key.Kind, d.Key.Namespace, d.Key.Name)
		return owner.Answer{Outcome: owner.Done, Resource: was}, err
	})
}
