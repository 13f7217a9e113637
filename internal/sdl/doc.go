// Package sdl reads the annotated SDL that the author of a kind writes, and
// turns it into descriptors.
//
// It refuses what would give no sound API, with the author's own file and line
// and everything at once ([Findings]). It makes up nothing: above all no limit
// of a string or list that its author left unbounded.
package sdl
