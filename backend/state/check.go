package state

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/keyring"
)

// maxProblems is the maximum number of records that an error names.
const maxProblems = 10

// digest is a hash of a key. It saves memory, because there may be a million keys.
type digest [16]byte

func digestOf(key backend.Key) digest {
	sum := sha256.Sum256(key.Append(nil))
	return digest(sum[:16])
}

// Checked describes a file that was read completely and can fill a store.
type Checked struct {
	header Header
	end    End
	// newest maps each key that occurs in several lines to the number of its last line. Lines are counted from 1.
	newest map[digest]int
}

// stands reports whether line n is the last line for its key.
func (f *Checked) stands(n int, l *Line) bool {
	if len(f.newest) == 0 {
		return true
	}
	last, ok := f.newest[digestOf(l.Resource.Key)]
	return !ok || last == n
}

// identity identifies the file. A file that is generated for each start is identified by its source, other files by
// their checksum.
func (f *Checked) identity() string { return cmp.Or(f.header.Source, f.end.SHA256) }

// destination describes the store to fill.
type destination struct {
	shards backend.Sharder // nil for one shard
	keys   *keyring.Keyring
}

// Check reads a file. It returns an error if the file is incomplete, or cannot fill a store with these keys and shards.
// shards is nil for a store with one shard.
func Check(open func() (io.ReadCloser, error), keys *keyring.Keyring, shards backend.Sharder) (*Checked, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return checkFile(f, destination{shards: shards, keys: keys})
}

// checkFile reads a file from its beginning. It returns an error if the file is incomplete, or cannot fill the
// destination.
func checkFile(r io.Reader, to destination) (*Checked, error) {
	in, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	out := &Checked{header: in.Header(), newest: map[digest]int{}}
	var problems problems
	for n := 1; ; n++ {
		l, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err // the problems found before may be due to the same damage
		}
		if l.Later {
			out.newest[digestOf(l.Resource.Key)] = n
		}
		if !l.Deleted && !l.Unreadable {
			problems.add(to.check(l.Resource))
		}
	}
	out.end = in.End()
	return out, problems.err()
}

// check returns an error if a record cannot be stored in the destination.
func (t destination) check(r *backend.Resource) error {
	switch verdictOf(r.Kind) {
	case left, unknown:
		return unknownKindError(r.Key)
	}
	for _, ref := range r.Refs {
		apart := t.shards != nil && t.shards.Shard(ref.Key.Namespace) != t.shards.Shard(r.Namespace)
		if ref.Bound && apart {
			return fmt.Errorf("%s: its guarded reference leads to %s, which is GLOBAL: a store of several shards cannot hold it; use one with one shard (redis-shards)", r.Key, ref.Key)
		}
	}
	if _, err := t.body(r); err != nil {
		return fmt.Errorf("%s: %w", r.Key, err)
	}
	batch := backend.Batch{
		RequestID: "check",
		Deadline:  time.Unix(1, 0),
		Actions:   []backend.Action{restoring(r, r.Body)},
	}
	return batch.Validate(t.shards)
}

// body returns the body of a record in the form in which the destination stores it.
func (t destination) body(r *backend.Resource) ([]byte, error) {
	plain, err := t.keys.Open(r.Key, r.UID, r.Body)
	switch {
	case err != nil:
		return nil, err
	case verdictOf(r.Kind) != movedSensitive:
		return plain, nil
	case t.keys.Current(r.Body):
		return r.Body, nil
	}
	return t.keys.Seal(r.Key, r.UID, plain)
}

// restoring returns the action that stores a record. body is its body.
func restoring(r *backend.Resource, body []byte) backend.Action {
	a := backend.Action{
		Key: r.Key,
		Op:  backend.OpPut,
		Put: backend.Put{
			UID:        r.UID,
			Deleting:   r.Deleting,
			Finalizers: new(r.Finalizers),
			ExpiresAt:  r.ExpiresAt,
			Caller:     true,
			Declared:   r.Declared,
			Refs:       r.Refs,
			Body:       body,
		},
	}
	if verdictOf(r.Kind) != movedLast { // movedLast records replace those that a gateway has written to the empty store
		a.If = backend.Condition{Presence: backend.Absent}
		a.Put.CreatedAt = r.CreatedAt
		a.Put.UpdatedAt = r.UpdatedAt
	}
	return a
}

// problems collects the reasons why a file cannot fill a store.
type problems struct {
	lines   []string
	missing map[string]bool // ids of keys
	more    int
}

func (p *problems) add(err error) {
	var sealed *keyring.Error
	switch {
	case err == nil:
	case errors.As(err, &sealed) && sealed.Missing:
		if p.missing == nil {
			p.missing = map[string]bool{}
		}
		p.missing[sealed.ID] = true
	case len(p.lines) < maxProblems:
		p.lines = append(p.lines, err.Error())
	default:
		p.more++
	}
}

func (p *problems) err() error {
	lines := p.lines
	if len(p.missing) > 0 {
		ids := strings.Join(slices.Sorted(maps.Keys(p.missing)), ", ")
		lines = append([]string{fmt.Sprintf("it has secrets that are encrypted with the key %s, which is not given: give it in encryption-keys-file; "+
			"if it is lost, export once more with --no-secrets, or print the file as manifests, which then lack these secrets, "+
			"with sluice export --from FILE -o manifest, and start with these", ids)}, lines...)
	}
	if p.more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", p.more))
	}
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "; "))
}
