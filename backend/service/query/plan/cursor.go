package plan

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/sluicegw/sluice/backend/service/failure"
)

const cursorFormat = 1

// maxCursor is the maximum length of a cursor in bytes.
const maxCursor = 16 << 10

// AppendCursor appends the cursor for a sort key: a format byte, the hash of the connection and the key, encoded in
// base64url. The cursor does not depend on the page.
func AppendCursor(dst []byte, hash uint32, key []byte) []byte {
	var space [128]byte
	b := binary.BigEndian.AppendUint32(append(space[:0], cursorFormat), hash)
	return base64.RawURLEncoding.AppendEncode(dst, append(b, key...))
}

// Cursors parses the cursors of a connection.
type Cursors struct {
	// Kind is the kind of the resources.
	Kind string
	// Hash returns the number that identifies the connection.
	Hash func() uint32
	// IsKey reports whether key has the form of a sort key of the connection.
	IsKey func(key []byte) bool
}

// Key returns the sort key in a cursor; nil if cursor is nil or empty. Errors name the argument of the request that has
// the cursor.
func (c Cursors) Key(argument string, cursor *string) ([]byte, error) {
	if cursor == nil || *cursor == "" {
		return nil, nil
	}
	bad := &failure.Error{Code: failure.CodeCursorInvalid, Path: argument, Kind: c.Kind, Message: argument + ": not a cursor of this connection; take it from pageInfo or an edge of the same field with the same arguments"}
	if len(*cursor) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(b) < 5 || b[0] != cursorFormat || binary.BigEndian.Uint32(b[1:]) != c.Hash() ||
		!c.IsKey(b[5:]) {
		return nil, bad
	}
	return b[5:], nil
}
