// Package graph is the executable schema of major version 1 of the API,
// generated from schema/v1. The .graphqls files beside it are the public SDL,
// as clients see it.
package graph
