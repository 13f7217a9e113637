// Package proto makes the protobuf messages and services of a catalogue at run time. Each kind has
// a message for its resources, with kind, version, metadata, spec and status, and a service with
// the standard methods to create, read, change and watch them. The numbers of fields are kept in a
// file, see [Numbers].
//
// A schema is made in steps:
//
//	kinds -> types.go      finds their object types and enums
//	      -> assign.go     assigns numbers and names to what has none (Numbers)
//	      -> model.go      makes the messages and enums of the file (model)
//	         method.go     makes its services, and the messages of their methods
//	      -> print.go      writes the model as the text of a .proto file
//	         describe.go   writes the model as a descriptor, from which [Schema] is made
package proto
