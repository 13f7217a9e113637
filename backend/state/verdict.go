package state

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// verdict says what becomes of the records of a kind.
type verdict uint8

const (
	// moved: a resource. Its changes are in the log.
	moved verdict = iota
	// movedSensitive: the sensitive values of a resource, with which they change.
	movedSensitive
	// movedLast: a record of the gateways that changes by itself, and has no log entries. It is read last.
	movedLast
	// left: a record that is about one store and must not come into another.
	left
	// unknown: a record of a release that knows more. An export would lose it.
	unknown
)

// The kinds of the internal records, beside those with sensitive values.
const (
	catalogueKind   = "_catalogue"
	controllersKind = "_controllers"
	reconcileKind   = "_reconcile"
	bootstrapKind   = "_bootstrap"
)

// verdictOf returns what becomes of the records of a kind.
func verdictOf(kind string) verdict {
	key := backend.Key{Kind: kind}
	switch {
	case !key.Internal():
		return moved
	case strings.HasPrefix(kind, backend.SensitiveKind("")):
		return movedSensitive
	}
	switch kind {
	case catalogueKind, controllersKind:
		return movedLast
	case reconcileKind, bootstrapKind:
		return left
	}
	return unknown
}

// unknownKindError says that a record is of a kind without a verdict.
func unknownKindError(key backend.Key) error {
	return backend.FormatErrorf("the record %s is of a kind that this release does not know", key)
}
