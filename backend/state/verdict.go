package state

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// verdict decides what an export does with the records of a kind.
type verdict uint8

const (
	// moved: a resource, whose changes are in the log.
	moved verdict = iota
	// movedSensitive: the sensitive values of a resource, which change only together
	// with it.
	movedSensitive
	// movedLast: a record of the gateways that has no log entries. It is read last.
	movedLast
	// left: a record about this store, which must not be moved to another one.
	left
	// unknown: a record of a newer release, which an export would lose.
	unknown
)

// The kinds of internal records, besides those of sensitive values.
const (
	catalogueKind   = "_catalogue"
	controllersKind = "_controllers"
	reconcileKind   = "_reconcile"
	bootstrapKind   = "_bootstrap"
)

// verdictOf returns the verdict on the records of a kind.
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

// unknownKindError is the error for a record without a verdict.
func unknownKindError(key backend.Key) error {
	return backend.FormatErrorf("the record %s is of a kind that this release does not know", key)
}
