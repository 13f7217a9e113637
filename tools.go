//go:build tools

// Package sluice pins the tools that the build runs. Nothing imports it.
package sluice

import (
	_ "github.com/99designs/gqlgen" // v0.17.95, by hand: the module proxy does not list its versions
)
