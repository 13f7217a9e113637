// Package rpc serves the kinds of a catalogue as standard methods over gRPC, gRPC-Web and Connect. Requests become
// calls of the resource service, and resources become messages; the messages are those of package proto.
package rpc
