// Package arch tests the layout of the module: which packages may import which other packages, the form of hand-written
// files, and the existence of the files and identifiers that documents name. It has only tests.
package arch
