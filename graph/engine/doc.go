// Package engine executes operations of the API over kinds that are data: no Go
// is generated for any of them.
//
// An operation is compiled once to a plan: a tree of op codes, prepared bytes
// and slots. A run of the plan reads the root fields, then the references and inverse
// connections level by level: one call of the service reads the resources of a level,
// one its pages. At last it writes the answer by copying spans of the stored bodies.
// Introspection and fields that are resolved by hand go to the core, a schema that
// gqlgen generates.
//
// The engine calls no field middleware of gqlgen.
package engine
