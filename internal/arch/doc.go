// Package arch holds the layout of the module: which package may import which,
// what hand-written files look like, and that what the documents name is there.
// It has only tests.
package arch
