// Package arch tests the layout of the module: which package may import which, what
// hand-written files look like, and that the files and identifiers that documents name
// exist. It has only tests.
package arch
