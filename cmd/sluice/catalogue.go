package main

import (
	"errors"

	"github.com/spf13/pflag"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/kinds"
)

// catalogue says which kinds a gateway serves.
type catalogue struct{ dir string }

func (c *catalogue) flags(f *pflag.FlagSet) {
	f.StringVar(&c.dir, "schema", "", "folder of the SDL files of the kinds to serve; empty: the kinds of this release")
}

// load reads the catalogue and derives its API. What it refuses is the user's to mend.
func (c *catalogue) load() ([]backend.Kind, *ast.Schema, error) {
	schema, err := c.read()
	if err != nil {
		return nil, nil, err
	}
	api, err := schema.API()
	if err != nil {
		return nil, nil, err
	}
	return schema.Descriptors(), api, nil
}

func (c *catalogue) read() (*kinds.Schema, error) {
	if c.dir == "" {
		return kinds.Embedded()
	}
	schema, err := kinds.ReadDir(c.dir)
	var findings kinds.Findings
	if errors.As(err, &findings) {
		return nil, usageError{err}
	}
	return schema, err
}
