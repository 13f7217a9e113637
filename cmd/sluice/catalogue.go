package main

import (
	"context"
	"errors"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	gate "github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/kinds"
)

// catalogue is the kinds that a gateway serves.
type catalogue struct{ config.Catalogue }

// linesError is a refusal of several lines, which are shown as they are. It is
// for the user to mend.
type linesError struct{ lines []string }

func (e linesError) Error() string { return strings.Join(e.lines, "\n") }

// load reads the catalogue and derives its API.
func (c catalogue) load() ([]descriptor.Kind, *ast.Schema, error) {
	schema, api, err := readCatalogue(c.Dir)
	if err != nil {
		return nil, nil, err
	}
	return schema.Descriptors(), api, nil
}

// accept holds the catalogue against what the store has.
func (c catalogue) accept(ctx context.Context, kinds []descriptor.Kind, store backend.Store, log *zap.Logger) error {
	err := gate.Gate{Store: store, Logger: log}.Accept(ctx, kinds, c.AllowBreaking)
	var refused *gate.RefusedError
	if errors.As(err, &refused) {
		return linesError{strings.Split(refused.Error(), "\n")}
	}
	return err
}

// readCatalogue reads the catalogue of a folder, or the embedded one, and derives its API.
func readCatalogue(dir string) (schema *kinds.Schema, api *ast.Schema, err error) {
	if dir == "" {
		schema, err = kinds.Embedded()
	} else {
		schema, err = kinds.ReadDir(dir)
	}
	if err == nil {
		api, err = schema.API()
	}
	var findings kinds.Findings
	if errors.As(err, &findings) {
		var lines []string
		for _, f := range findings {
			lines = append(lines, f.String())
		}
		return nil, nil, linesError{lines}
	}
	if err != nil {
		return nil, nil, usageError{err}
	}
	return schema, api, nil
}
