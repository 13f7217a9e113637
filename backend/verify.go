package backend

import (
	"context"
	"fmt"
)

// Verifier is implemented by a store that can read all that it has, and tell what of it is damaged or missing.
type Verifier interface {
	// Verify reads records, index and log, in bounded memory. It repairs nothing. The error says why it could not read
	// everything; damage is none.
	Verify(ctx context.Context, v Verification) (Verified, error)
}

// Verification says who is told of damage.
type Verification struct {
	// Found is called for each damage. Required.
	Found func(Damage)
	// Progress is called now and then with what was read so far. Default: no call.
	Progress func(Verified)
}

// The parts of a store that a [Damage] is of.
const (
	// PartRecord is the record of a resource.
	PartRecord = "record"
	// PartReference, PartDeletion, PartExpiry and PartName are entries of the index that lead to a resource.
	PartReference = "reference"
	PartDeletion  = "deletion"
	PartExpiry    = "expiry"
	PartName      = "name"
	// PartLog is an entry of the log, and PartHead is what the store says about the log as a whole.
	PartLog  = "log"
	PartHead = "head"
	// PartPage is a part of the file in which all others are.
	PartPage = "page"
)

// Damage is something that is not as it was written.
type Damage struct {
	// Part is one of those above.
	Part string
	// Key is the resource that it is about; zero if none is known.
	Key Key
	// Revision is that of the log entry; zero if it is about none.
	Revision Revision
	// Problem says what is wrong, in one line.
	Problem string
}

// String is one line.
func (d Damage) String() string {
	at := d.Part
	if d.Key != (Key{}) {
		at += " " + d.Key.String()
	}
	if !d.Revision.IsZero() {
		at += " " + d.Revision.String()
	}
	return fmt.Sprintf("%s: %s", at, d.Problem)
}

// Verified counts what a verification has read.
type Verified struct {
	// Records are resources and the gateway's own records, Entries the index entries that lead to them, and Changes the
	// entries of the log.
	Records, Entries, Changes int64
	// Damaged is how often Found was called.
	Damaged int64
}
