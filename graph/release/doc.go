// Package release handles the released versions of a catalogue's API. A version is a
// folder of frozen files below the catalogue's folder: the sources at the time of the
// release, and the API that was derived from them. The package reads these folders,
// reduces the schema of the newest API to that of each version, and finds changes of
// the newest catalogue that would break clients of a version.
package release
