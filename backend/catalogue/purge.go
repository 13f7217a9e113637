package catalogue

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// Purge is a request to remove stored data that no catalogue describes any more: all resources of a kind, or the values
// of a field.
type Purge struct {
	// Kind is the name of the kind. Path is the path of a field in it, in stored names, such as spec.email; empty for
	// the whole kind.
	Kind, Path string
	// Served is the outline of the catalogue that is being served. It must be the newest one that the store has
	// accepted.
	Served Outline
	// Actor is the caller, for the log.
	Actor string
	// DryRun counts without removing anything.
	DryRun bool
	// Keys decrypts and encrypts sensitive values. Default: the values are not encrypted.
	Keys Keys
}

// Keys decrypts and encrypts the records with the sensitive values of resources. at is the key of the record, and uid
// is the uid of the resource. Open decrypts a stored record, and Seal encrypts one.
type Keys interface {
	Open(at backend.Key, uid string, stored []byte) (body []byte, err error)
	Seal(at backend.Key, uid string, body []byte) (stored []byte, err error)
}

// noKeys is for values that are not encrypted. It cannot read encrypted ones.
type noKeys struct{}

func (noKeys) Open(_ backend.Key, _ string, stored []byte) ([]byte, error) { return stored, nil }

func (noKeys) Seal(_ backend.Key, _ string, body []byte) ([]byte, error) { return body, nil }

// Purged is the result of a [Purge].
type Purged struct {
	// Removed is the number of resources that were removed, or from which the values of the field were removed.
	Removed int `json:"removed"`
	// Kept is the number of resources that could not be removed. Why has a line with the reason for each of the first
	// of them.
	Kept int      `json:"kept"`
	Why  []string `json:"why,omitempty"`
}

// keep records that a resource is kept, and why.
func (p *Purged) keep(key backend.Key, why string) {
	if p.Kept++; len(p.Why) < maxReasons {
		p.Why = append(p.Why, key.String()+" "+why)
	}
}

// PurgeError means that a [Purge] was refused, and nothing was removed.
type PurgeError struct{ Reason string }

func (e *PurgeError) Error() string { return e.Reason }

// Purge removes stored data that no catalogue describes any more. As with any deletion, a resource stays if it has
// finalizers or others rely on it. Each removal is a change in the store's log.
func (g Gate) Purge(ctx context.Context, p Purge) (Purged, error) {
	g = g.ready()
	if g.ReadOnly && !p.DryRun {
		return Purged{}, &PurgeError{"this gateway is read-only and removes nothing: ask another one"}
	}
	newest, err := Newest(ctx, g.Store)
	if err != nil {
		return Purged{}, err
	}
	if newest != p.Served.Hash() {
		return Purged{}, &PurgeError{"another gateway serves a newer catalogue, which may name it; ask that gateway"}
	}
	if err := p.check(); err != nil {
		return Purged{}, err
	}
	if p.Keys == nil {
		p.Keys = noKeys{}
	}
	if p.Path != "" {
		return g.purgeField(ctx, p)
	}
	return g.purgeKind(ctx, p)
}

// check returns an error for a kind or field that the catalogue has, or that cannot exist.
func (p Purge) check() error {
	kind, served := p.Served.Kinds[p.Kind]
	switch {
	case p.Kind == "" || strings.HasPrefix(p.Kind, "_"):
		return &PurgeError{fmt.Sprintf("%q is no kind", p.Kind)}
	case p.Path == "" && served:
		return &PurgeError{fmt.Sprintf("kind %s is in the catalogue: delete its resources, or take it out first", p.Kind)}
	case p.Path == "":
		return nil
	case !served:
		return &PurgeError{fmt.Sprintf("kind %s is not in the catalogue: purge the kind", p.Kind)}
	}
	if part, _, inside := strings.Cut(p.Path, "."); !inside || part != "spec" && part != "status" {
		return &PurgeError{fmt.Sprintf("%q: a path is wanted, like %s.spec.email", p.Path, p.Kind)}
	}
	_, named := kind.Fields[p.Path]
	parent := p.Path[:strings.LastIndex(p.Path, ".")]
	above, known := kind.Fields[parent]
	switch {
	case named:
		return &PurgeError{fmt.Sprintf("%s.%s is in the catalogue: take it out first", p.Kind, p.Path)}
	case !known || above.Type != descriptor.TypeObject:
		return &PurgeError{fmt.Sprintf("%s.%s is no object of the catalogue: name the first field on the path that is gone", p.Kind, parent)}
	}
	return nil
}

// purgeKind removes the resources of a kind. Because they may refer to each other, it repeats this until nothing more
// can be removed.
func (g Gate) purgeKind(ctx context.Context, p Purge) (Purged, error) {
	total := 0
	for {
		round, err := g.purgeRound(ctx, p)
		total += round.Removed
		if err != nil || p.DryRun || round.Kept == 0 || round.Removed == 0 {
			round.Removed = total
			return round, err
		}
	}
}

func (g Gate) purgeRound(ctx context.Context, p Purge) (out Purged, err error) {
	for page, err := range backend.Pages(ctx, g.Store, backend.Range{Kind: p.Kind, Limit: pageSize}) {
		if err != nil {
			return out, err
		}
		for _, r := range page.Resources {
			if err := g.purgeResource(ctx, p, r, &out); err != nil {
				return out, err
			}
		}
		for _, key := range page.Unreadable {
			out.keep(key, "cannot be read")
		}
	}
	return out, nil
}

func (g Gate) purgeResource(ctx context.Context, p Purge, r *backend.Resource, out *Purged) error {
	holder, err := g.holder(ctx, r.Key)
	switch {
	case err != nil:
		return err
	case holder != nil && (!p.DryRun || holder.Kind != p.Kind):
		out.keep(r.Key, fmt.Sprintf("is held by %s", holder))
		return nil
	case r.Finalizers > 0:
		out.keep(r.Key, "has finalizers: serve its kind again, and let its controller remove them")
		return nil
	case p.DryRun:
		out.Removed++
		return nil
	}
	condition := backend.Condition{
		Presence:     backend.Present,
		Revision:     r.Revision,
		Unreferenced: true,
		Unfinalized:  true,
	}
	actions := []backend.Action{{Key: r.Key, If: condition, Op: backend.OpDelete}}
	apart, err := g.storedApart(ctx, r.Key)
	if err != nil {
		return err
	}
	if apart {
		actions = append(
			actions,
			backend.Action{
				Key: r.Key.Sensitive(),
				If:  backend.Condition{Presence: backend.Present},
				Op:  backend.OpDelete,
			},
		)
	}
	return g.purgeBy(ctx, p, r.Key, actions, out)
}

// holder returns the key of another resource that relies on the resource; nil if there is none.
func (g Gate) holder(ctx context.Context, key backend.Key) (*backend.Key, error) {
	page, err := g.Store.Range(ctx, backend.Range{Referenced: &key, BoundOnly: true, Limit: 2, Bare: true})
	if err != nil {
		return nil, err
	}
	for _, r := range page.Resources {
		if r.Key != key {
			return &r.Key, nil
		}
	}
	if len(page.Unreadable) > 0 {
		return &page.Unreadable[0], nil
	}
	return nil, nil
}

// purgeBy applies actions that remove a resource or a part of it, unless the resource has changed in the meantime.
func (g Gate) purgeBy(ctx context.Context, p Purge, key backend.Key, actions []backend.Action, out *Purged) error {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	_, err := g.Store.Apply(ctx, backend.Batch{
		RequestID: hex.EncodeToString(id),
		Actor:     p.Actor,
		Deadline:  backend.ClockOf(g.Store)().Add(writeTimeout),
		Actions:   actions,
	})
	meanwhile := []error{backend.ErrConflict, backend.ErrNotFound, backend.ErrReferenced, backend.ErrFinalized}
	switch {
	case err == nil:
		out.Removed++
	case slices.ContainsFunc(meanwhile, func(of error) bool { return errors.Is(err, of) }):
		out.keep(key, "was changed meanwhile")
	default:
		return err
	}
	return nil
}

// purgeField removes the values of a field from the resources of a kind.
func (g Gate) purgeField(ctx context.Context, p Purge) (out Purged, err error) {
	for page, err := range backend.Pages(ctx, g.Store, backend.Range{Kind: p.Kind, Limit: pageSize}) {
		if err != nil {
			return out, err
		}
		for _, r := range page.Resources {
			if err := g.purgeValues(ctx, p, r, &out); err != nil {
				return out, err
			}
		}
		for _, key := range page.Unreadable {
			out.keep(key, "cannot be read")
		}
	}
	return out, nil
}

// purgeValues removes the values of a field from a resource and from the record with its sensitive values.
func (g Gate) purgeValues(ctx context.Context, p Purge, r *backend.Resource, out *Purged) error {
	path := strings.Split(p.Path, ".")
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		out.keep(r.Key, "cannot be read")
		return nil
	}
	rest, removed := without(gjson.ParseBytes(raw), path)
	put := backend.Put{UID: r.UID, Deleting: r.Deleting, ExpiresAt: r.ExpiresAt, Body: backend.EncodeBody(rest)}
	condition := backend.Condition{Presence: backend.Present, Revision: r.Revision}
	actions := []backend.Action{{Key: r.Key, If: condition, Op: backend.OpPut, Put: put}}
	sensitive, err := g.purgeSensitive(ctx, p, r)
	switch {
	case errors.Is(err, backend.ErrEncrypted):
		out.keep(r.Key, "has sensitive values that this gateway cannot decrypt")
		return nil
	case errors.Is(err, backend.ErrUnreadable):
		out.keep(r.Key, "has sensitive values that cannot be read")
		return nil
	case err != nil:
		return err
	case sensitive != nil:
		actions = append(actions, *sensitive)
	case !removed:
		return nil
	}
	if p.DryRun {
		out.Removed++
		return nil
	}
	return g.purgeBy(ctx, p, r.Key, actions, out)
}

// purgeSensitive returns an action that removes the values of a field from the record with a resource's sensitive
// values; nil if the record does not have any.
func (g Gate) purgeSensitive(ctx context.Context, p Purge, r *backend.Resource) (*backend.Action, error) {
	part, path, _ := strings.Cut(p.Path, ".")
	if part != "spec" || !p.Served.Kinds[p.Kind].Sensitive {
		return nil, nil
	}
	got, err := g.Store.Get(ctx, r.Key.Sensitive())
	if err != nil || got[0] == nil {
		return nil, err
	}
	record := got[0]
	body, err := p.Keys.Open(record.Key, record.UID, record.Body)
	if err != nil {
		return nil, err
	}
	raw, err := backend.DecodeBody(body)
	if err != nil {
		return nil, err
	}
	rest, removed := without(gjson.ParseBytes(raw), strings.Split(path, "."))
	if !removed {
		return nil, nil
	}
	sealed, err := p.Keys.Seal(record.Key, record.UID, backend.EncodeBody(rest))
	if err != nil {
		return nil, err
	}
	return &backend.Action{
		Key: record.Key,
		If:  backend.Condition{Presence: backend.Present, Revision: record.Revision},
		Op:  backend.OpPut,
		Put: backend.Put{UID: record.UID, ExpiresAt: record.ExpiresAt, Body: sealed},
	}, nil
}

// without returns a JSON value without the values at a path, and reports whether there were any. The path may lead
// through lists. The rest of the JSON is unchanged.
func without(value gjson.Result, path []string) (rest []byte, removed bool) {
	if !value.IsObject() && !value.IsArray() {
		return []byte(value.Raw), false
	}
	var b bytes.Buffer
	first := true
	b.WriteByte(value.Raw[0])
	value.ForEach(func(key, member gjson.Result) bool {
		raw, deeper := []byte(member.Raw), path
		if value.IsObject() {
			if key.Str == path[0] && len(path) == 1 {
				removed = true
				return true
			}
			deeper = path[1:]
		}
		if value.IsArray() || key.Str == path[0] {
			var inside bool
			raw, inside = without(member, deeper)
			removed = removed || inside
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if value.IsObject() {
			b.WriteString(key.Raw + ":")
		}
		b.Write(raw)
		return true
	})
	b.WriteByte(value.Raw[len(value.Raw)-1])
	return b.Bytes(), removed
}
