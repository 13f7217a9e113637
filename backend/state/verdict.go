package state

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// verdict is how an export treats the records of a kind.
type verdict uint8

const (
	// moved: the records are resources, whose changes are in the log.
	moved verdict = iota
	// movedSensitive: the records are sensitive values, which change only together with their resources.
	movedSensitive
	// movedLast: the records belong to the gateways. They are read last, because they have no log entries.
	movedLast
	// left: the records are about this store and must not be moved to another one.
	left
	// unknown: a newer release has written the records. An export would lose them.
	unknown
)

// The kinds of internal records, in addition to sensitive values.
const (
	catalogueKind   = "_catalogue"
	controllersKind = "_controllers"
	reconcileKind   = "_reconcile"
	bootstrapKind   = "_bootstrap"
)

// verdictOf returns how the records of a kind are treated.
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

// unknownKindError returns the error for a record whose kind is unknown.
func unknownKindError(key backend.Key) error {
	return backend.FormatErrorf("the record %s is of a kind that this release does not know", key)
}
