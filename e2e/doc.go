// Package e2e drives the built binary as its users do: by HTTP, by WebSocket
// and by the command line. It has only tests.
package e2e
