// Package proto makes the protobuf messages and services of a catalogue at run time. Each kind has
// a message for its resources, with kind, version, metadata, spec and status, and a service with
// the standard methods to create, read, change and watch them. The numbers of fields are kept in a
// file, see [Numbers].
package proto
