// Package rpc serves the kinds of a catalogue through standard methods over gRPC, gRPC-Web and
// Connect. It translates requests to calls of the resource service, and resources to the messages
// of package proto.
package rpc
