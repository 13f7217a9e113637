package redis

import (
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// An entry of a log stream has the revision of the change as its id, and the fields
//
//	h  the head: type, size, time in milliseconds, request id and actor, each ended by a newline;
//	   for a modification, a description of the previous record; the key's tuple; the sum of the head
//	d  the record after the change; for a delete, the last record
//	b  the body, if d has the record without its body
//	c  the sum of the change, and the change ([backend.Put.Change]); empty if there is none
//
// The description of the previous record consists of its revision, updated, expires and deleting, and the length of its
// list of references, each ended by a newline, and of that list. If the change has kept the references, the length is
// empty and there is no list.
//
// The script stores b and c as it gets them. Joining long strings is slow in Lua, which looks up each new string in a
// table of all its strings.
//
// An entry of type s marks the beginning of an epoch and is not a change. Its sequence is 0, and it has no sum.
const (
	typeAdded    = "a"
	typeModified = "m"
	typeDeleted  = "d"
	typeDamaged  = "x" // the delete of a resource that did not decode
	typeStart    = "s"
)

// entrySize returns the size of the change in an entry: see [backend.Event.Size].
func entrySize(m goredis.XMessage) int {
	head, _ := m.Values["h"].(string)
	f := fields{rest: head}
	f.next()
	return int(f.number(31))
}

// checkHead checks the sum at the end of an entry's head. rest is the end of head that was not parsed yet; checkHead
// returns it without the sum.
func checkHead(id, head, rest, changeSum string) (string, error) {
	if len(rest) < sumDigits {
		return "", badRecord()
	}
	var room [sumRoom]byte
	at := len(head) - sumDigits
	b := append(room[:0], id...)
	b = append(b, head[:at]...)
	b = append(b, changeSum...)
	if !sumMatches(b, head[at:]) {
		return "", wrongSum("head")
	}
	return rest[:len(rest)-sumDigits], nil
}

// decodeLogged decodes the resource of an entry. Scripts delete resources without reading their bodies, so the body in
// the entry of a delete may not decode. In that case the result has only the key: see [typeDamaged].
func decodeLogged(word string, key backend.Key, data, body string) (*backend.Resource, error) {
	r, err := decodeParts(key, data, body)
	if err == nil || word != typeDeleted {
		return r, err
	}
	h, headErr := parseHeader(data)
	if headErr != nil || h.check(key) != nil {
		return nil, err
	}
	return &backend.Resource{Key: key}, nil
}

// decodeEntry decodes an entry. ok is false for an entry that is not a change.
func decodeEntry(m goredis.XMessage) (e backend.Event, ok bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("log entry %.60s: %w", m.ID, backend.ErrPositionExpired)
		}
	}()
	head, _ := m.Values["h"].(string)
	data, _ := m.Values["d"].(string)
	body, _ := m.Values["b"].(string)
	stored, _ := m.Values["c"].(string)
	f := fields{rest: head}
	word := f.next()
	f.next() // the size: entrySize reads it
	e.Time = f.time()
	e.RequestID = f.text()
	e.Actor = f.text()
	e.Revision, err = backend.ParseRevision(m.ID)
	f.bad = f.bad || (word == typeStart) != (e.Revision.Seq == 0)
	if err != nil || f.bad || word == typeStart {
		return e, false, errors.Join(err, f.err())
	}
	change, changeSum, err := takeChange(stored)
	if err != nil {
		return e, false, err
	}
	if f.rest, err = checkHead(m.ID, head, f.rest, changeSum); err != nil {
		return e, false, err
	}
	var refs string // the list of references before the change, if the change has replaced it
	replaced := false
	if word == typeModified {
		was, listed := f.envelope(), uint64(0)
		e.Before = &backend.Before{
			Revision:  was.revision,
			UpdatedAt: was.updated,
			ExpiresAt: was.expires,
			Deleting:  was.deleting,
		}
		replaced = !f.empty()
		if replaced {
			listed = f.number(31)
		}
		refs = f.take(listed)
		e.Change = change
	}
	key, err := backend.DecodeKey([]byte(f.rest))
	if err != nil || f.bad {
		return e, false, badRecord()
	}
	if word == typeDamaged {
		e.Type, e.Resource = backend.Deleted, &backend.Resource{Key: key}
		return e, true, nil
	}
	if e.Resource, err = decodeLogged(word, key, data, body); err != nil {
		return e, false, err
	}
	switch word {
	case typeAdded:
		e.Type = backend.Added
	case typeDeleted:
		e.Type = backend.Deleted
	case typeModified:
		e.Type = backend.Modified
		before := backend.Resource{Refs: e.Resource.Refs}
		if replaced {
			before.Refs, err = decodeRefs(refs)
		}
		e.Before.Bound = before.Bound()
	default:
		err = badRecord()
	}
	return e, err == nil, err
}
