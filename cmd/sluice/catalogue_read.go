package main

import (
	"context"
	"errors"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	gate "github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// catalogue is a catalogue that was read, ready to be served.
type catalogue struct {
	kinds  []descriptor.Kind
	api    *ast.Schema
	places gate.Places
	// files is the hash of the files.
	files   string
	outline gate.Outline
}

// linesError is a refusal of several lines, which are shown as they are. The user can correct its cause.
type linesError struct{ lines []string }

func (e linesError) Error() string { return strings.Join(e.lines, "\n") }

// embeddedFolder is the folder of the files of the embedded catalogue.
const embeddedFolder = "schema/v1"

// readCatalogue reads the catalogue of a folder, or the embedded one, and derives its API.
func readCatalogue(dir string) (catalogue, error) {
	if dir == "" {
		schema, err := kinds.Embedded()
		return derive(schema, embeddedFolder, err)
	}
	schema, err := kinds.ReadDir(dir)
	return derive(schema, dir, err)
}

// derive derives the API of a catalogue, unless it could not be read.
func derive(schema *kinds.Schema, dir string, err error) (catalogue, error) {
	var api *ast.Schema
	if err == nil {
		api, err = schema.API()
	}
	var findings kinds.Findings
	if errors.As(err, &findings) {
		var lines []string
		for _, f := range findings {
			lines = append(lines, f.String())
		}
		return catalogue{}, linesError{lines}
	}
	if err != nil {
		return catalogue{}, usageError{err}
	}
	descriptors := schema.Descriptors()
	return catalogue{kinds: descriptors, api: api, places: gate.Places(schema.Places(dir)), files: schema.Hash, outline: gate.OutlineOf(descriptors)}, nil
}

// changes returns what a catalogue changes of another one, with their places.
func (c catalogue) changes(from catalogue) []gate.Change {
	return c.places.Locate(gate.Compare(from.kinds, c.kinds))
}

// refuseMoves refuses a catalogue that stores a kind elsewhere than the served one does:
// running operations would write to the old place, which is no longer read.
func refuseMoves(changes []gate.Change) error {
	var lines []string
	for _, c := range changes {
		if c.Moves {
			lines = append(lines, c.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return linesError{append(lines, "restart the gateway with this catalogue, while these kinds have no resources")}
}

// candidate is the catalogue as a store is asked to accept it.
func (c catalogue) candidate() gate.Candidate {
	return gate.Candidate{Kinds: c.kinds, Places: c.places}
}

// accept asks the store to accept a catalogue.
func accept(ctx context.Context, g gate.Gate, next gate.Candidate) error {
	err := g.Accept(ctx, next)
	var refused *gate.RefusedError
	if errors.As(err, &refused) {
		return linesError{refused.Lines()}
	}
	return err
}
