package reindex

import "time"

// Definition is a definition of a kind's index rows as gateways share it.
type Definition = definition

// DecodeDefinitions reads the shared record.
func DecodeDefinitions(body []byte) (map[string]Definition, error) {
	d, err := decodeDefinitions(body)
	return d.Kinds, err
}

// Claim is what a gateway with the fingerprint makes of the record.
func (d definition) Claim(fingerprint string, now time.Time) (Definition, bool) {
	return d.claim(fingerprint, now)
}
