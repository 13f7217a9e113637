// Package generator derives the API of every kind from its annotated SDL: the
// public schema, its executable form, the model, the catalogue of descriptors
// and the bodies of the resolvers.
//
// It drives gqlgen as a plugin. What it writes, it writes anew: whatever an
// earlier run generated is removed first, so that a kind leaves no trace once
// its file is gone. Hand-written files beside generated ones stay as they are.
package generator
