package catalogue

import (
	"fmt"
	"slices"
)

// Severity says who notices a change of a catalogue.
type Severity int

// The severities, the least first.
const (
	// Safe: clients and resources that worked with the old catalogue work with the new one.
	Safe Severity = iota
	// Dangerous: they do, but may behave differently.
	Dangerous
	// BreaksClients: requests that were accepted are refused, or their answers are missing something.
	BreaksClients
	// BreaksStored: stored resources cannot be read, are not shown, or are not protected any more.
	BreaksStored
)

// severities returns the names in JSON.
func severities() []string {
	return []string{"SAFE", "DANGEROUS", "BREAKS_CLIENTS", "BREAKS_STORED"}
}

// String returns the name in JSON.
func (s Severity) String() string { return severities()[s] }

// MarshalText is part of [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is part of [encoding.TextUnmarshaler].
func (s *Severity) UnmarshalText(text []byte) error {
	at := slices.Index(severities(), string(text))
	if at < 0 {
		return fmt.Errorf("%q is no severity of a change", text)
	}
	*s = Severity(at)
	return nil
}

// mark returns what a line about the change ends with.
func (s Severity) mark() string {
	return [...]string{"", "dangerous", "breaks clients", "breaking"}[s]
}
