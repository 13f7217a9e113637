package bolt

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/slab"
)

// arena allocates the resources of one read. They share chunks of memory, and a kind or namespace that repeats is
// stored once. The zero value is ready.
type arena struct {
	bodies    slab.Slab[byte]
	resources slab.Slab[backend.Resource]
	refs      slab.Slab[backend.Ref]
	// bare leaves out references. keysOnly leaves out everything that [backend.Range.KeysOnly] does.
	bare, keysOnly bool
	// last is the previous resource, which probably has some of the same strings as the next one.
	last *backend.Resource
}

// chunkBytes is the maximum size of a chunk for bodies.
const chunkBytes = 32 << 10

// resource decodes the result of appendResource. key is the encoded form of k. The result does not share memory with
// form.
func (a *arena) resource(k backend.Key, key, form []byte) (*backend.Resource, error) {
	if err := checkSum(key, form); err != nil {
		return nil, err
	}
	a.bodies.Chunk = chunkBytes
	d, body, err := part(form, resourceForm)
	if err != nil {
		return nil, err
	}
	like := a.last
	if like == nil {
		like = &backend.Resource{}
	}
	r := a.resources.One()
	r.Key = k
	flags := d.byte()
	if flags&flagExpires != 0 {
		r.ExpiresAt = d.time()
	}
	if flags&flagFinalizers != 0 {
		r.Finalizers = d.finalizers()
	}
	r.Revision = d.revision()
	if a.keysOnly {
		r.Finalizers = 0
		a.last = r
		return r, d.cutShort()
	}
	r.Body = a.bodies.Take(len(body))
	copy(r.Body, body)
	r.Deleting, r.SpecRevision = flags&flagDeleting != 0, d.revision()
	r.CreatedAt, r.UpdatedAt = d.time(), d.time()
	r.UID = string(d.bytes())
	r.Declared = reuse(d.bytes(), like.Declared)
	r.BindingVersion = d.bindingVersion()
	if a.bare {
		d.rest = nil
	} else {
		r.Refs = a.references(&d, k.Namespace, like.Refs)
	}
	if flags&^(flagDeleting|flagExpires|flagFinalizers) != 0 {
		d.bad = true
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	a.last = r
	return r, nil
}

func (a *arena) references(d *decoder, namespace string, like []backend.Ref) []backend.Ref {
	n := d.count()
	if n == 0 {
		return nil
	}
	refs := a.refs.Take(n)
	for i := range refs {
		kind := ""
		if i < len(like) {
			kind = like[i].Key.Kind
		}
		refs[i].Key = backend.Key{
			Kind:      reuse(d.bytes(), kind),
			Namespace: reuse(d.bytes(), namespace),
			Name:      string(d.bytes()),
		}
		bound := d.byte()
		refs[i].Bound = bound == 1
		d.bad = d.bad || bound > 1
	}
	return refs
}

// reuse converts bytes to a string. If like has the same bytes, like is returned, so that nothing is allocated.
func reuse(b []byte, like string) string {
	if string(b) == like {
		return like
	}
	return string(b)
}

// key decodes the rest of a key, after the kind: its namespace and its name.
func (a *arena) key(kind string, rest []byte) (backend.Key, error) {
	namespace, rest, err := backend.TakeText(rest)
	if err != nil {
		return backend.Key{}, err
	}
	name, rest, err := backend.TakeText(rest)
	if err != nil {
		return backend.Key{}, err
	}
	if len(rest) > 0 {
		return backend.Key{}, backend.ErrUnreadable
	}
	like := ""
	if a.last != nil {
		like = a.last.Namespace
	}
	return backend.Key{Kind: kind, Namespace: reuse(namespace, like), Name: string(name)}, nil
}
