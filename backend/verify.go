package backend

import (
	"context"
	"fmt"
)

// Verifier is implemented by a store that can check everything it has stored, and report what is damaged or missing.
type Verifier interface {
	// Verify reads records, index and log, in bounded memory. It repairs nothing. It returns an error if it could not
	// read everything. Damage is not an error.
	Verify(ctx context.Context, v Verification) (Verified, error)
}

// Verification has the functions that Verify calls.
type Verification struct {
	// Found is called for each damaged or missing part. Required.
	Found func(Damage)
	// Progress, if not nil, is called from time to time with the counts so far.
	Progress func(Verified)
}

// The parts of a store that a [Damage] may concern.
const (
	// PartRecord is the stored record of a resource.
	PartRecord = "record"
	// PartReference, PartDeletion, PartExpiry and PartName are index entries of a resource: for a reference, a
	// requested deletion, the time of expiry, and the name.
	PartReference = "reference"
	PartDeletion  = "deletion"
	PartExpiry    = "expiry"
	PartName      = "name"
	// PartLog is an entry of the log. PartHead is the state of the log as a whole.
	PartLog  = "log"
	PartHead = "head"
	// PartPage is a page of the store's file.
	PartPage = "page"
)

// Damage describes a part of the store that is missing, or not as it was written.
type Damage struct {
	// Part is the kind of the part, such as PartRecord.
	Part string
	// Key is the resource concerned; zero if it is not known.
	Key Key
	// Revision is the revision of the log entry concerned; zero if there is none.
	Revision Revision
	// Problem describes the damage in one line.
	Problem string
}

// String returns the damage in one line.
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
	// Records is the number of resources and of the gateway's own records. Entries is the number of their index
	// entries. Changes is the number of log entries.
	Records, Entries, Changes int64
	// Damaged is the number of calls of Found.
	Damaged int64
}
