// Package rpc serves the kinds of a catalogue with standard methods over gRPC, gRPC-Web and Connect. It converts
// requests to calls of package service, and resources to the messages of package proto.
package rpc
