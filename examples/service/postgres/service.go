package main

import (
	"context"
	_ "embed" // the two files beside this one
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

//go:embed projects.graphqls
var sdl string

//go:embed schema.sql
var tables string

const project = "Project"

// service keeps resources in a database.
type service struct{ pool *pgxpool.Pool }

var _ owner.Service = (*service)(nil)

// open creates the tables that do not exist yet.
func open(ctx context.Context, pool *pgxpool.Pool) (*service, error) {
	const oneAtATime = 7310 // two processes may start at once
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", oneAtATime); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, tables)
		return err
	})
	return &service{pool}, err
}

// Describe implements [owner.Service].
func (s *service) Describe(context.Context) (owner.Description, error) {
	kind := owner.Kind{Name: project, Changes: true, Writes: true, Conditional: true, DryRun: true}
	return owner.Description{Service: "projects", Kinds: []owner.Kind{kind}, SDL: sdl}, nil
}

// columns are the columns of a resource, in the order in which [scan] reads them.
const columns = `kind, namespace, name, uid::text, tag::text, write_id, labels, annotations, description, spec, status, created_at`

func scan(row pgx.CollectableRow) (r owner.Resource, err error) {
	err = row.Scan(&r.Kind, &r.Namespace, &r.Name, &r.UID, &r.Tag, &r.WriteID, &r.Labels, &r.Annotations, &r.Description,
		&r.Spec, &r.Status, &r.CreatedAt)
	return r, err
}

// List implements [owner.Service]. A page token has the namespace and the name of the last resource on the page.
// Therefore writes between two pages neither skip nor repeat other resources.
func (s *service) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	const most = 1000
	if size <= 0 || size > most {
		size = most
	}
	var after [2]string // namespace and name
	if token != "" {
		if err := json.Unmarshal([]byte(token), &after); err != nil {
			return owner.Page{}, fmt.Errorf("the page token %q is not one of this service", token)
		}
	}
	rows, err := s.pool.Query(ctx, "select "+columns+` from resource where kind = $1 and (namespace, name) > ($2, $3)
		order by namespace, name limit $4`, kind, after[0], after[1], size)
	if err != nil {
		return owner.Page{}, err
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return owner.Page{}, err
	}
	page := owner.Page{Resources: found}
	if len(found) == size {
		last := found[size-1]
		raw, err := json.Marshal([2]string{last.Namespace, last.Name})
		if err != nil {
			return owner.Page{}, err
		}
		page.Next = string(raw)
	}
	return page, nil
}

// Get implements [owner.Service].
func (s *service) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	kinds := make([]string, len(keys))
	namespaces := make([]string, len(keys))
	names := make([]string, len(keys))
	for i, key := range keys {
		kinds[i] = key.Kind
		namespaces[i] = key.Namespace
		names[i] = key.Name
	}
	rows, err := s.pool.Query(ctx, "select "+columns+` from resource
		where (kind, namespace, name) in (select * from unnest($1::text[], $2::text[], $3::text[]))`, kinds, namespaces, names)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, err
	}
	byKey := map[backend.Key]*owner.Resource{}
	for i := range found {
		byKey[found[i].Key] = &found[i]
	}
	got := make([]owner.Got, len(keys))
	for i, key := range keys {
		got[i].Resource = byKey[key]
	}
	return got, nil
}

// find returns the resource with a key; nil if there is none.
func find(ctx context.Context, tx pgx.Tx, key backend.Key) (*owner.Resource, error) {
	rows, err := tx.Query(ctx, "select "+columns+" from resource where kind = $1 and namespace = $2 and name = $3",
		key.Kind, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &r, err
}
