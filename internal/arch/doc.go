// Package arch holds the layout of the module: which package may import which,
// and what hand-written files look like. It has only tests.
package arch
