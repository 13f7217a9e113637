// Package transport carries GraphQL operations between clients and gqlgen's
// executor: over HTTP by GET and POST, as server-sent events, and over
// WebSocket by graphql-transport-ws and the older graphql-ws. What a subscription
// sends comes from package stream; a transport writes it to its wire.
package transport
