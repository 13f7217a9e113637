// Package proto has the protobuf messages and the services of a catalogue: for each kind its resource, with kind,
// version, metadata, spec and status, and the standard methods by which it is created, read, changed and watched. They
// are made of descriptors of kinds at run time. The numbers of fields are kept in a file, see [Numbers].
package proto
