package state

import (
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/keyring"
)

// FileResource is a resource that [Resources] yields.
type FileResource struct {
	*backend.Resource
	// Sensitive is the decrypted record that has the resource's sensitive values. It is nil if there is none or it
	// cannot be decrypted.
	Sensitive *backend.Resource
	// Locked is the error if the sensitive values or the whole body cannot be decrypted; nil otherwise.
	Locked error
	// Unreadable reports whether the store could not read the resource when the file was written. The resource then has
	// only its key.
	Unreadable bool
}

// Resources returns the resources of a file whose keys satisfy wanted, in the order of the file. It reads the file
// twice. If the file is incomplete or was changed, it yields only an error. The sensitive values of the resources are
// kept in memory.
func Resources(
	open func() (io.ReadCloser, error), keys *keyring.Keyring, wanted func(backend.Key) bool,
) iter.Seq2[FileResource, error] {
	return func(yield func(FileResource, error) bool) {
		last := map[digest]int{}
		sensitive := map[backend.Key]*backend.Resource{}
		err := eachLine(open, func(n int, l *Line) bool {
			if l.Later {
				last[digestOf(l.Resource.Key)] = n
			}
			if verdictOf(l.Resource.Kind) == movedSensitive && wanted(resourceOf(l.Resource.Key)) {
				delete(sensitive, l.Resource.Key)
				if !l.Deleted && !l.Unreadable {
					sensitive[l.Resource.Key] = l.Resource
				}
			}
			return true
		})
		if err != nil {
			yield(FileResource{}, err)
			return
		}
		err = eachLine(open, func(n int, l *Line) bool {
			newest, ok := last[digestOf(l.Resource.Key)]
			stands := !ok || newest == n
			if !stands || l.Deleted || verdictOf(l.Resource.Kind) != moved || !wanted(l.Resource.Key) {
				return true
			}
			if l.Unreadable {
				return yield(FileResource{Resource: l.Resource, Unreadable: true}, nil)
			}
			return yield(unlocked(l.Resource, sensitive[l.Resource.Key.Sensitive()], keys), nil)
		})
		if err != nil {
			yield(FileResource{}, err)
		}
	}
}

// resourceOf converts the key of a record with sensitive values to the key of the resource.
func resourceOf(key backend.Key) backend.Key {
	key.Kind = strings.TrimPrefix(key.Kind, backend.SensitiveKind(""))
	return key
}

// unlocked decrypts a resource and its sensitive values.
func unlocked(r, sensitive *backend.Resource, keys *keyring.Keyring) FileResource {
	plain := *r
	out := FileResource{Resource: &plain}
	body, err := keys.Open(r.Key, r.UID, r.Body)
	if err != nil {
		out.Locked = err
		return out
	}
	plain.Body = body
	if sensitive == nil || sensitive.UID != r.UID {
		return out
	}
	values := *sensitive
	values.Body, out.Locked = keys.Open(values.Key, values.UID, values.Body)
	if out.Locked == nil {
		out.Sensitive = &values
	}
	return out
}

// eachLine calls visit for each line of a file, with the number of the line, until visit returns false.
func eachLine(open func() (io.ReadCloser, error), visit func(n int, l *Line) bool) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in, err := NewReader(f)
	for n := 1; err == nil; n++ {
		var l Line
		if l, err = in.Next(); err == nil && !visit(n, &l) {
			return nil
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
