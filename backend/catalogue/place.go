package catalogue

import "strings"

// Places has the places of declarations in the files of a catalogue, as "file:line".
type Places struct {
	// Folder of the files.
	Folder string
	// Fields by their paths, like "Network.spec.cidr"; kinds by their names.
	Fields map[string]string
	// Types are the definitions of the objects and enums of fields, by the paths of
	// the fields.
	Types map[string]string
}

// Locate sets the places of changes and returns them.
func (p Places) Locate(changes []Difference) []Difference {
	out := make([]Difference, len(changes))
	for i, c := range changes {
		c.Place = p.of(c)
		out[i] = c
	}
	return out
}

func (p Places) of(c Difference) string {
	path := c.Kind
	if c.Path != "" {
		path += "." + c.Path
	}
	if at := p.Fields[path]; at != "" && !c.inType {
		return at
	}
	for path != "" { // the nearest type that is there
		if at := p.Types[path]; at != "" {
			return at
		}
		path = path[:max(strings.LastIndex(path, "."), 0)]
	}
	if at := p.Fields[c.Kind]; at != "" {
		return at
	}
	return p.Folder
}

// ofKind returns the beginning of a line about a kind: its place.
func (p Places) ofKind(name string) string { return prefix(p.Fields[name]) }

// prefix returns a place as the beginning of a line, empty if the place is not known.
func prefix(place string) string {
	if place == "" {
		return ""
	}
	return place + ": "
}
