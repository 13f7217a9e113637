// Package kinds reads a catalogue of kinds, annotated SDL that its authors
// write, and turns it into descriptors and the API's schema.
//
// It refuses what would give no sound API, with the author's own file and line
// and everything at once ([Findings]). It makes up nothing: above all no limit
// of a string or list that its author left unbounded.
package kinds
