// Package engine executes operations of the API over kinds that are data: no Go
// is generated for any of them.
//
// An operation is compiled once to a plan: a tree of op codes, prepared bytes
// and slots. A run of it reads the root fields, then the references and inverse
// connections level by level, with one call of the service for the resources
// and one for the pages of a level, and at last writes the answer by copying
// spans of the stored bodies. Fields that the engine does not know, those of
// introspection and those that are resolved by hand, go to a schema that gqlgen
// generates.
//
// It calls no field middleware of gqlgen's: there is no call for each field.
package engine
