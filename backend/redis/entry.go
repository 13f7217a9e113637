package redis

import (
	"fmt"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// An entry of a stream has the revision of the change as its id, and the fields
//
//	h  type, size, time in milliseconds, request id, actor, each ended by a newline; of a
//	   modification what follows below; the key's tuple
//	d  the record after the change; for a delete, the last one
//
// What h has of a modification are the revision, updated, expires and deleting of the
// record before, the length of the list of its references if that is another one, and the
// length of the change, each ended by a newline; then that list, and the change.
//
// An entry of type s marks the beginning of an epoch and is no change.
const (
	typeAdded    = "a"
	typeModified = "m"
	typeDeleted  = "d"
	typeDamaged  = "x" // the delete of what did not decode
	typeStart    = "s"
)

// decodeEntry reads an entry. ok is false for one that is no change.
func decodeEntry(m goredis.XMessage) (e backend.Event, ok bool, err error) {
	return names(nil).entry(m)
}

// entry reads an entry. ok is false for one that is no change.
func (n names) entry(m goredis.XMessage) (e backend.Event, ok bool, err error) {
	if e, ok, err = n.change(m); err != nil {
		return e, false, fmt.Errorf("log entry %.60s: %w", m.ID, backend.ErrPositionExpired)
	}
	return e, ok, nil
}

func (n names) change(m goredis.XMessage) (e backend.Event, ok bool, err error) {
	if e.Revision, err = parseRevision(m.ID); err != nil {
		return e, false, err
	}
	head, _ := m.Values["h"].(string)
	data, _ := m.Values["d"].(string)
	var field [5]string
	if head, err = cut(head, field[:]); err != nil || field[0] == typeStart {
		return e, false, err
	}
	if e.Time, err = parseMillis(field[2]); err != nil {
		return e, false, err
	}
	if e.RequestID, err = unescape(field[3]); err != nil {
		return e, false, err
	}
	if e.Actor, err = unescape(field[4]); err != nil {
		return e, false, err
	}
	var was replaced
	if field[0] == typeModified {
		if was, head, err = cutReplaced(head); err != nil {
			return e, false, err
		}
	}
	key, err := n.key([]byte(head))
	if err != nil {
		return e, false, err
	}
	if field[0] == typeDamaged {
		e.Type, e.Resource = backend.Deleted, &backend.Resource{Key: key}
		return e, true, nil
	}
	if e.Resource, err = n.record(key, data); err != nil {
		return e, false, err
	}
	switch field[0] {
	case typeAdded:
		e.Type = backend.Added
	case typeDeleted:
		e.Type = backend.Deleted
	case typeModified:
		e.Type, e.Change = backend.Modified, was.change
		before := backend.Resource{Refs: e.Resource.Refs}
		if was.others {
			if before.Refs, err = n.references(was.refs); err != nil {
				return e, false, err
			}
		}
		e.Before = &backend.Before{Revision: was.revision, UpdatedAt: was.updated, ExpiresAt: was.expires, Deleting: was.deleting, Bound: before.Bound()}
	default:
		return e, false, badRecord()
	}
	return e, true, nil
}

// replaced is what the entry of a modification has of the state before it.
type replaced struct {
	envelope
	// refs is the list of references, if others: the change replaced it.
	refs   string
	others bool
	change []byte
}

// cutReplaced reads it, and returns what follows.
func cutReplaced(head string) (was replaced, rest string, err error) {
	var field [6]string
	if rest, err = cut(head, field[:]); err != nil {
		return was, "", err
	}
	if was.envelope, err = parseEnvelope(field[:4]); err != nil {
		return was, "", err
	}
	var n [2]uint64
	if was.others = field[4] != ""; was.others {
		n[0], err = strconv.ParseUint(field[4], 10, 31)
	}
	var err2 error
	n[1], err2 = strconv.ParseUint(field[5], 10, 31)
	if err != nil || err2 != nil || n[0]+n[1] > uint64(len(rest)) {
		return was, "", badRecord()
	}
	was.refs, rest = rest[:n[0]], rest[n[0]:]
	if n[1] > 0 {
		was.change = []byte(rest[:n[1]])
	}
	return was, rest[n[1]:], nil
}
