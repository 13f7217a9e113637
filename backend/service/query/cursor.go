package query

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// The cursor of a stream of changes is a position, and for callers who may not do everything the stamp of their rights:
//
//	AQEBKg.9ae16a3b
//
// Who resumes there knows the state at that position as far as the caller might see it. With other rights that is another
// state, and the stream does not go on from there.
const stampSeparator = "."

// ChangeCursor returns the cursor of a position for rights with a stamp; see [access.Rights.Stamp].
func ChangeCursor(at backend.Position, stamp string) string {
	if text := at.String(); stamp == "" || text == "" {
		return text
	}
	return at.String() + stampSeparator + stamp
}

// ParseChangeCursor reads what [ChangeCursor] wrote; anything else is [backend.ErrInvalid].
func ParseChangeCursor(cursor string) (at backend.Position, stamp string, err error) {
	text, stamp, stamped := strings.Cut(cursor, stampSeparator)
	if stamped && stamp == "" {
		return at, "", backend.ErrInvalid
	}
	at, err = backend.ParsePosition(text)
	return at, stamp, err
}
