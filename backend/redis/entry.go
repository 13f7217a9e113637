package redis

import (
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
)

// An entry of a stream has the revision of the change as its id, and the fields
//
//	h  type, size, time in milliseconds, request id, each ended by a newline; the key's tuple
//	d  the record after the change; for a delete, the last one
//	b  the entries before a modification, without references, if it changed them
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
	bad := backend.ErrUnreadable
	if e.Revision, err = parseRevision(m.ID); err != nil {
		return e, false, bad
	}
	head, _ := m.Values["h"].(string)
	data, _ := m.Values["d"].(string)
	var field [4]string
	for i := range field {
		var found bool
		if field[i], head, found = strings.Cut(head, "\n"); !found {
			return e, false, bad
		}
	}
	if field[0] == typeStart {
		return e, false, nil
	}
	key, err := n.key([]byte(head))
	if err != nil {
		return e, false, bad
	}
	ms, err := strconv.ParseInt(field[2], 10, 64)
	if err != nil {
		return e, false, bad
	}
	if e.Time, err = parseMillis(strconv.FormatInt(ms, 10)); err != nil {
		return e, false, bad
	}
	if e.RequestID, err = unescape(field[3]); err != nil {
		return e, false, bad
	}
	if field[0] == typeDamaged {
		e.Type, e.Resource = backend.Deleted, &backend.Resource{Key: key}
		return e, true, nil
	}
	if e.Resource, err = n.record(key, data); err != nil {
		return e, false, bad
	}
	switch field[0] {
	case typeAdded:
		e.Type = backend.Added
	case typeModified:
		e.Type, e.RowsBefore, e.FingerprintBefore = backend.Modified, e.Resource.Rows, e.Resource.Fingerprint
		if before, changed := m.Values["b"].(string); changed {
			if e.FingerprintBefore, e.RowsBefore, err = n.entries([]byte(before)); err != nil {
				return e, false, bad
			}
		}
	case typeDeleted:
		e.Type, e.RowsBefore, e.FingerprintBefore = backend.Deleted, e.Resource.Rows, e.Resource.Fingerprint
	default:
		return e, false, bad
	}
	return e, true, nil
}
