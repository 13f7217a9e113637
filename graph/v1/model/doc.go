// Package model holds the Go types of major version 1 of the API. JSON of the
// spec and status types is the stored form: enums hold their stored values, and
// what is null is left out.
package model
