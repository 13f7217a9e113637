// Package release has the released versions of the API of a catalogue. A
// version is a folder of frozen files below the catalogue's: the sources as they
// were, and the API that was derived from them. The package reads these folders,
// prunes the schema of the newest API to each version, and finds what of the
// newest catalogue would break a client of a version.
package release
