// Package arch tests the layout of the module: which packages may import which others, the form of hand-written files,
// and that files and identifiers named in documents exist. It has only tests.
package arch
