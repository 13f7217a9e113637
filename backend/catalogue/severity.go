package catalogue

import (
	"fmt"
	"slices"
)

// Severity is how severe a change of a catalogue is.
type Severity int

// The severities, from the least to the most severe.
const (
	// Safe: clients and resources of the old catalogue work with the new one.
	Safe Severity = iota
	// Dangerous: clients and resources still work, but may behave differently.
	Dangerous
	// BreaksClients: requests that were accepted are refused, or their answers lack something.
	BreaksClients
	// BreaksStored: stored resources cannot be read, are not shown, or are no longer protected.
	BreaksStored
)

// severities returns the names of the severities in JSON.
func severities() []string {
	return []string{"SAFE", "DANGEROUS", "BREAKS_CLIENTS", "BREAKS_STORED"}
}

// String returns the name in JSON.
func (s Severity) String() string { return severities()[s] }

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Severity) UnmarshalText(text []byte) error {
	at := slices.Index(severities(), string(text))
	if at < 0 {
		return fmt.Errorf("%q is no severity of a change", text)
	}
	*s = Severity(at)
	return nil
}

// mark returns the severity in the form in which it ends a line about a change.
func (s Severity) mark() string {
	return [...]string{"", "dangerous", "breaks clients", "breaking"}[s]
}
