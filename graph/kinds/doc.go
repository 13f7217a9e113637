// Package kinds reads a catalogue of kinds, SDL with directives that its authors write, and converts it into
// descriptors and into the schema of the API.
//
// It refuses a catalogue from which no sound API can be derived. The errors name the lines in the authors' files, all
// at once ([Findings]). It does not guess what is missing; in particular it sets no limit for a string or list that an
// author has left without one.
package kinds
