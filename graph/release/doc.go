// Package release handles the released versions of a catalogue's API. A version is a folder below the folder of the
// catalogue. Its files do not change after the release: the sources of the catalogue at that time, and the API that was
// derived from them. The package reads these folders, reduces the schema of the newest API to the parts that a version
// has, and finds changes of the newest catalogue that would break clients of a version.
package release
