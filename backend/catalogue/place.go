package catalogue

import "strings"

// Places has the places of declarations in the files of a catalogue, as "file:line".
type Places struct {
	// Folder is the folder of the catalogue's files.
	Folder string
	// Fields maps the paths of fields, such as "Network.spec.cidr", and the names of kinds to their places.
	Fields map[string]string
	// Types maps the paths of fields to the places of the definitions of their objects or enums.
	Types map[string]string
}

// Locate returns the changes with [Difference.Place] set.
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
	for path != "" { // the type of the field, or of the nearest object that contains it
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

// ofKind returns the place of a kind as the beginning of a line.
func (p Places) ofKind(name string) string { return prefix(p.Fields[name]) }

// prefix returns a place as the beginning of a line; "" if it is unknown.
func prefix(place string) string {
	if place == "" {
		return ""
	}
	return place + ": "
}
